"""What GitHub refuses before it handles a request: too many requests, wrong credentials, ended API versions.

github.limits.content_per_minute, github.limits.content_per_hour = 80, 500    # as documented; off by default
github.limits.versions["2022-11-28"] = VersionEnd(announced_at, ends_at)      # then 410 from `ends_at` on

github.limits.points_per_minute = DOCUMENTED_POINTS_PER_MINUTE               # as documented; off by default
github.limits.leave(499)                                                     # of the 5,000 requests of this hour

Each number that GitHub documents is a default, except the secondary limits: many tests write more.
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime

from msgspec import Struct

from mergeyard.domain.timestamps import HOUR, MINUTE, SECOND, Instant
from mergeyard.ports.external import Clock
from tests.support.forges.github.calls import ApiError

REQUESTS_PER_HOUR = 5000
DOCUMENTED_CONTENT_PER_MINUTE = 80
DOCUMENTED_CONTENT_PER_HOUR = 500
DOCUMENTED_POINTS_PER_MINUTE = {"core": 900, "graphql": 2000}
READ_POINTS, WRITE_POINTS = 1, 5
NOT_MODIFIED = 304
READ_METHODS = ("GET", "HEAD", "OPTIONS")
POINTS_REFUSAL = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
CONTENT_REFUSAL = (
    "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. "
    "Please retry your request again later."
)


class VersionEnd(Struct, frozen=True):
    """When support of an API version ends: headers announce it until then."""

    deprecated_at: Instant
    ends_at: Instant


class Budget(Struct):
    """The requests of an account to one resource, in the current hour."""

    resets_at: Instant = Instant(0)
    used: int = 0


class Limits:
    def __init__(self, clock: Clock) -> None:
        self.requests_per_hour = REQUESTS_PER_HOUR
        self.content_per_minute: int | None = None
        self.content_per_hour: int | None = None
        self.points_per_minute: Mapping[str, int] = {}
        """By resource. A read costs one point, a write five, a GraphQL query one."""
        self.retry_after_s: int | None = 60
        """Sent with the refusal of more content; None: GitHub does not always say how long to wait."""
        self.comment_interval_s = 0
        """An account that comments again within this time gets 422 "was submitted too quickly"."""
        self.max_failed_logins: int | None = None
        """So many wrong credentials lock out every caller, also those with right ones, for `lockout_s`."""
        self.lockout_s = 600
        self.versions: dict[str, VersionEnd | None] = {"2022-11-28": None, "2026-03-10": None}
        """API versions that GitHub ever supported, the oldest first. Others are refused."""
        self._clock = clock
        self._budgets = defaultdict[tuple[str, str], Budget](Budget)
        self._written = defaultdict[str, list[Instant]](list[Instant])
        self._points = defaultdict[tuple[str, str], list[Instant]](list[Instant])
        self._commented: dict[str, Instant] = {}
        self._failed_logins: list[Instant] = []

    # Credentials

    def raise_if_locked_out(self) -> None:
        recent = self._select_recent(self._failed_logins, self.lockout_s * SECOND)
        if self.max_failed_logins is not None and len(recent) >= self.max_failed_logins:
            raise ApiError(403, "Maximum number of login attempts exceeded. Please try again later.")

    def record_failed_login(self) -> None:
        self._failed_logins.append(self._clock.now())

    # API versions

    def check_version(self, version: str | None) -> dict[str, str]:
        """Headers that announce the end of the version. Without a version GitHub takes the oldest that it supports."""
        if version is None:
            return {}
        if version not in self.versions:
            known = ", ".join(f'"{name}"' for name in self.versions)
            raise ApiError(
                400,
                f'The version you specified in the "X-GitHub-API-Version" request header, "{version}", is not a '
                f"supported version. The following versions are currently supported: {known}.",
            )
        end = self.versions[version]
        if end is None:
            return {}
        if self._clock.now() >= end.ends_at:
            raise ApiError(410, f"The API version {version} is no longer supported.")
        return {"deprecation": format_http_date(end.deprecated_at), "sunset": format_http_date(end.ends_at)}

    # Requests

    def leave(self, requests: int) -> None:
        """So many requests are left to each account that sent one, until its hour ends."""
        for account, resource in tuple(self._budgets):
            self._renew(account, resource).used = self.requests_per_hour - requests

    def is_exhausted(self, account: str, resource: str) -> bool:
        return self._renew(account, resource).used >= self.requests_per_hour

    def raise_if_exhausted(self, account: str, resource: str) -> None:
        if self.is_exhausted(account, resource):
            raise ApiError(403, f"API rate limit exceeded for {account}.")

    def charge_points(self, account: str, resource: str, method: str) -> None:
        """Raises when the account used its points of this minute."""
        spent, limit = self._points[account, resource], self.points_per_minute.get(resource)
        if limit is not None and len(self._select_recent(spent, MINUTE)) >= limit:
            wait = {} if self.retry_after_s is None else {"retry-after": str(self.retry_after_s)}
            raise ApiError(403, POINTS_REFUSAL, headers=wait)
        is_write = resource == "core" and method not in READ_METHODS
        points = WRITE_POINTS if is_write else READ_POINTS
        spent += [self._clock.now()] * points

    def charge(self, account: str, resource: str, status: int) -> dict[str, str]:
        """The headers of a response. One that says that nothing changed costs nothing."""
        budget = self._renew(account, resource)
        cost = 0 if status == NOT_MODIFIED else 1
        budget.used = min(budget.used + cost, self.requests_per_hour)
        return {
            "x-ratelimit-limit": str(self.requests_per_hour),
            "x-ratelimit-remaining": str(self.requests_per_hour - budget.used),
            "x-ratelimit-used": str(budget.used),
            "x-ratelimit-reset": str(budget.resets_at // SECOND),
            "x-ratelimit-resource": resource,
        }

    def _renew(self, account: str, resource: str) -> Budget:
        budget, now = self._budgets[account, resource], self._clock.now()
        if now >= budget.resets_at:
            budget.used, budget.resets_at = 0, Instant((now // SECOND) * SECOND + HOUR)
        return budget

    # Content

    def record_content(self, account: str, *, is_comment: bool) -> None:
        """Raises if the account writes too much or comments too quickly."""
        now, written = self._clock.now(), self._written[account]
        allowed = ((MINUTE, self.content_per_minute), (HOUR, self.content_per_hour))
        if any(limit is not None and len(self._select_recent(written, span)) >= limit for span, limit in allowed):
            wait = {} if self.retry_after_s is None else {"retry-after": str(self.retry_after_s)}
            raise ApiError(403, CONTENT_REFUSAL, headers=wait)
        previous = self._commented.get(account)
        if is_comment and previous is not None and now < previous + self.comment_interval_s * SECOND:
            problem = {"resource": "IssueComment", "field": "data", "code": "unprocessable"}
            raise ApiError(422, "Validation Failed", errors=[problem | {"message": "was submitted too quickly"}])
        written.append(now)
        if is_comment:
            self._commented[account] = now

    def _select_recent(self, times: list[Instant], span_ms: int) -> list[Instant]:
        now = self._clock.now()
        return [at for at in times if now < at + span_ms]


def format_http_date(instant: Instant) -> str:
    return format_datetime(datetime.fromtimestamp(instant // SECOND, UTC), usegmt=True)
