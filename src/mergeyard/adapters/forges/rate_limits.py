"""What the replies of a forge say about errors and limits, and how we keep to the limits.

`RateLimits` pauses when the forge asks for it, paces writes, and keeps the last of the budget for what matters most.
"""

from asyncio import Lock
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar, cast

import msgspec
from msgspec import Struct

from mergeyard.domain.timestamps import HOUR, MINUTE, SECOND, Instant, later
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import (
    AllowanceKept,
    HostAccessLost,
    HostError,
    HostRefused,
    HostUnavailable,
    RateLimited,
    RequestBudget,
    RequestPurpose,
    current_purpose,
)

MAX_DETAIL_CHARS = 300
MAX_HEADER_CHARS = 200
MAX_ERROR_BYTES = 2000
LIMIT_MESSAGES = ("rate limit", "abuse", "login attempts exceeded")
"""Parts of GitHub's messages when it answers 403 to requests that it would accept later."""
CONTENT_LIMIT_MESSAGE = "content creation"
TOO_FAST_MESSAGES = ("submitted too quickly", "been spammed")
"""Parts of GitHub's messages when it answers 422 because writes came too fast."""
ENDPOINT_LIMIT_MESSAGE = "this endpoint"
BUDGET_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "ratelimit-limit", "ratelimit-remaining")
SUSPENDED_MESSAGE = "has been suspended"
"""The owner can end the suspension of an app at any time."""
TRANSIENT_STATUSES = (401, 408, 429)
"""Can succeed later; 401 because credentials are being renewed."""
REQUEST_ID_HEADERS = ("x-github-request-id", "x-request-id")

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

T = TypeVar("T")


class Reply(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def raise_for_status(self, *, allowed: Collection[int] = ()) -> Self:
        """Returns itself for a 2xx status or one of `allowed`; otherwise raises `to_error()`."""
        if not self.is_success and self.status not in allowed:
            raise self.to_error()
        return self

    def decode(self, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(self.body, type=kind)
        except DECODE_ERRORS as error:
            raise HostUnavailable(f"unexpected response from {self.url}: {error}") from error

    @property
    def detail(self) -> str:
        return extract_error_detail(self.body)

    @property
    def is_rate_limited(self) -> bool:
        """Some forges report a rate limit as 403 or 422, with a header or only with a message."""
        if self.status == 422:
            return _contains_any(self.detail, TOO_FAST_MESSAGES)
        if self.status != 403:
            return self.status == 429
        if "retry-after" in self.headers or self.headers.get("x-ratelimit-remaining") == "0":
            return True
        return _contains_any(self.detail, LIMIT_MESSAGES)

    def find_limited_kind(self, endpoint: str, kinds: Sequence[str]) -> str:
        """Which calls have to pause after this reply. `kinds`: those of a write, the narrowest last. A limit of writes
        delays no reads. It delays urgent writes only if one of them exceeded it, or if the forge names a time."""
        if self._limits_only_endpoint:
            return endpoint
        if not kinds or not (self.status == 422 or CONTENT_LIMIT_MESSAGE in self.detail.lower()):
            return ALL_CALLS
        return WRITES if "retry-after" in self.headers else kinds[-1]

    @property
    def _limits_only_endpoint(self) -> bool:
        """GitLab then sends no budget."""
        if self.status != 429 or any(header in self.headers for header in BUDGET_HEADERS):
            return False
        detail = self.detail.lower()
        return ENDPOINT_LIMIT_MESSAGE in detail or not ("retry-after" in self.headers or "secondary" in detail)

    @property
    def is_transient(self) -> bool:
        """Whether a retry can succeed."""
        is_passing = self.is_rate_limited or self.status >= 500 or self.status in TRANSIENT_STATUSES
        return is_passing or self._is_suspended

    @property
    def _is_suspended(self) -> bool:
        return self.status == 403 and SUSPENDED_MESSAGE in self.detail.lower()

    def _classify_error(self) -> type[HostError]:
        """A limit of the forge is no refusal, whatever its status: the same request is accepted later."""
        if self.is_rate_limited:
            return HostUnavailable
        if self.status == UNAUTHORIZED or self._is_suspended:
            return HostAccessLost
        return HostRefused if self.status >= 400 and not self.is_transient else HostUnavailable

    def to_error(self) -> HostError:
        kind = self._classify_error()
        ids = (self.headers[name][:MAX_HEADER_CHARS] for name in REQUEST_ID_HEADERS if name in self.headers)
        request = "".join(f" (request {each})" for each in list(ids)[:1])
        return kind(f"{self.url} answered {self.status}: {self.detail}{request}")


def _contains_any(text: str, parts: Collection[str]) -> bool:
    return any(part in text.lower() for part in parts)


MESSAGE_KEYS = ("message", "error_description", "error")
ERROR_KEYS = ("resource", "field", "code")
"""In one of GitHub's `errors` without a message: what is wrong with which field of what."""
MAX_DETAIL_ITEMS = 10
MAX_DETAIL_DEPTH = 5


def extract_error_detail(body: bytes) -> str:
    """The readable part of an error response, shortened: the message, then the reasons if there are any."""
    try:
        decoded = msgspec.json.decode(body)
    except DECODE_ERRORS:
        decoded = body[: 4 * MAX_DETAIL_CHARS].decode(errors="replace")
    return " ".join(_to_text(decoded, MAX_DETAIL_DEPTH).split())[:MAX_DETAIL_CHARS]


def _to_text(value: Any, depth: int) -> str:
    if isinstance(value, list | dict) and depth == 0:
        return "…"
    if isinstance(value, list):
        items = cast(list[Any], value)[:MAX_DETAIL_ITEMS]
        return ", ".join(filter(None, (_to_text(item, depth - 1) for item in items)))
    if not isinstance(value, dict):
        return str(value)[: 4 * MAX_DETAIL_CHARS]
    members = cast(dict[str, Any], value)
    message = next((members[key] for key in MESSAGE_KEYS if members.get(key)), None)
    if message is not None or "errors" in members:
        parts = (_to_text(part, depth - 1) for part in (message, members.get("errors")) if part)
        return ": ".join(filter(None, parts))
    if "code" in members:
        return " ".join(_to_text(members[key], depth - 1) for key in ERROR_KEYS if key in members)
    named = [(key, _to_text(part, depth - 1)) for key, part in list(members.items())[:MAX_DETAIL_ITEMS]]
    return ", ".join(text if key == "base" else f"{key[:MAX_DETAIL_CHARS]}: {text}" for key, text in named)


KEPT_PERCENT = {RequestPurpose.DISPLAY: 20, RequestPurpose.WAITING: 10, RequestPurpose.MERGING: 0}
"""The part of the budget that requests of a purpose leave to those that matter more. One merge costs up to 50 of
GitHub's 5,000 requests an hour: the last tenth lets ten pull requests merge without any word about them, the tenth
before lets people give commands and get answers while dialogs and progress have already stopped."""
DEFAULT_PAUSE_S = 60
"""When a forge asks for a pause without saying how long, and the maximum after failures."""
MAX_PAUSE_S = 3600
UNAUTHORIZED = 401
"""Counts as a failure: forges lock out clients that retry wrong credentials, then also with the right ones."""
ALL_CALLS = ""
"""The kind of call whose pause stops every request."""
OUTAGE = "outage"
"""Stops every request as well, but the forge asked for nothing: it fails or does not respond."""
WRITES = "writes"
"""The kind of call of all writes, also urgent ones."""
ORDINARY_WRITES = "ordinary writes"
"""The kind of call of all writes that are not urgent, in addition to `WRITES`."""
SPREAD = 3
"""Above `spread_after` a write waits for an hour divided by three times what is left. So of the 200 that are left after
200 writes at once, 10 are left an hour later: no silence is longer than two minutes, and a steady load gets 300 writes
an hour. Without this, 400 writes in ten minutes would end in fifty minutes in which no command gets an answer."""
MAX_WAITING_WRITES = 30
"""More of them would wait longer than a retry later takes."""


class WritePace(Struct, frozen=True):
    """How fast we send writes. Urgent ones do not wait, but count."""

    interval_ms: int
    per_minute: int
    per_hour: int
    spread_after: int | None = None
    """When so many of an hour's writes are used, progress is not written, and the rest, which are answers and ends, is
    spread over the hour."""


GITHUB_CLOUD_PACE = WritePace(interval_ms=SECOND, per_minute=60, per_hour=400, spread_after=200)
"""GitHub's cloud accepts 80 writes a minute and 500 an hour, and asks for a second between two. The rest is for urgent
writes, and for other programs that use the same account."""


class Pause(Struct):
    until: Instant = Instant(0)
    length_s: int = 0
    """The length that we chose, because the forge did not name one; 0 otherwise."""

    def start(self, now: Instant, seconds: int | None) -> None:
        """Without `seconds`, the pause doubles if the limit is exceeded again soon after the last pause."""
        if seconds is None and now < self.until:
            return  # concurrent requests that exceed the same limit count once
        if seconds is None:
            repeats = now < self.until + self.length_s * SECOND
            self.length_s = min(2 * self.length_s, MAX_PAUSE_S) if repeats else DEFAULT_PAUSE_S
        else:
            self.length_s = 0
        self.until = Instant(now + min(self.length_s if seconds is None else seconds, MAX_PAUSE_S) * SECOND)


class RateLimits:
    def __init__(self, name: str, clock: Clock, pace: WritePace | None = None) -> None:
        self.name = name
        self._clock = clock
        self._pace = pace
        self._pauses = defaultdict[str, Pause](Pause)
        self._remaining: int | None = None
        self._limit = 0
        self._resets_at = Instant(0)
        self._consecutive_failures = 0
        self._written_at = deque[Instant](maxlen=pace.per_hour if pace else 1)
        self._writing = Lock()
        self._waiting_writes = 0

    def copy_unused(self) -> "RateLimits":
        """For another budget of the same forge: GitHub counts GraphQL queries and app installations separately."""
        return RateLimits(self.name, self._clock, self._pace)

    def raise_if_paused(self, *kinds: str) -> None:
        """Raises `RateLimited` during a pause of all calls, or of one of these kinds, and `HostUnavailable` shortly
        after the forge failed."""
        now, failed_until = self._clock.now(), self._paused_until(OUTAGE)
        if now < failed_until:
            wait_s = _to_seconds(failed_until - now)
            raise HostUnavailable(f"{self.name} failed: the next request is sent in {wait_s} seconds")
        until = max(self._paused_until(kind) for kind in (ALL_CALLS, *kinds))
        if now < until:
            message = f"{self.name} asks us to wait for {_to_seconds(until - now)} seconds"
            raise RateLimited(message, until, now)

    def _paused_until(self, kind: str) -> Instant:
        return self._pauses[kind].until if kind in self._pauses else Instant(0)

    def raise_if_kept(self) -> None:
        """Raises `RateLimited` when nothing is left, and `AllowanceKept` when what is left is kept for requests that
        matter more than the current one."""
        now = self._clock.now()
        if self._remaining is None or now >= self._resets_at:
            return
        if self._remaining == 0:
            wait_s = _to_seconds(self._resets_at - now)
            message = f"{self.name} allows no request for {wait_s} seconds"
            raise RateLimited(message, self._resets_at, now)
        if self._remaining * 100 < self._limit * KEPT_PERCENT[current_purpose()]:
            raise AllowanceKept(
                f"{self.name} allows {self._remaining} more requests for now, which are kept for merges",
                self._resets_at,
                now,
            )

    def read_budget(self, account: str, api: str) -> RequestBudget | None:
        """None while the forge has not reported one."""
        if self._remaining is None or not self._limit:
            return None
        is_renewed = self._clock.now() >= self._resets_at
        return RequestBudget(
            account=account,
            api=api,
            limit=self._limit,
            remaining=self._limit if is_renewed else self._remaining,
            resets_at=self._resets_at,
        )

    @asynccontextmanager
    async def write(self, *kinds: str) -> AsyncGenerator[None]:
        """The caller sends one write of these kinds inside. Ordinary ones wait for their turn and go one at a time. If
        a pause starts meanwhile, this raises `HostUnavailable` and the write does not count, because it is not sent."""
        if self._pace is None or ORDINARY_WRITES not in kinds:
            self._count_write(kinds)
            yield
            return
        if self._waiting_writes >= MAX_WAITING_WRITES:
            raise self._to_pace_error(self._waiting_writes * self._pace.interval_ms)
        self._waiting_writes += 1
        try:
            async with self._writing:
                await self._wait_for_turn(self._pace)
                self._count_write(kinds)
                yield
        finally:
            self._waiting_writes -= 1

    def _count_write(self, kinds: Collection[str]) -> None:
        self.raise_if_paused(*kinds)
        self._written_at.append(self._clock.now())

    async def _wait_for_turn(self, pace: WritePace) -> None:
        """Raises `AllowanceKept` when the writes of this minute or hour are used up for longer than an interval."""
        while True:
            now, free_at = self._clock.now(), self._find_next_turn(pace)
            if now >= free_at:
                return
            if free_at - now > pace.interval_ms:
                raise self._to_pace_error(free_at - now)
            await self._clock.sleep(free_at - now)

    def _find_next_turn(self, pace: WritePace) -> int:
        sent = self._written_at
        windows = [(1, pace.interval_ms), (pace.per_minute, MINUTE), (pace.per_hour, HOUR)]
        if pace.spread_after is not None:
            used = self._count_writes_of_last_hour()
            left = pace.per_hour - used
            if current_purpose() is RequestPurpose.DISPLAY:
                windows.append((pace.spread_after, HOUR))
            if used >= pace.spread_after and left > 0:
                windows.append((1, HOUR // (SPREAD * left)))
        return max((sent[-count] + window for count, window in windows if len(sent) >= count), default=0)

    def _count_writes_of_last_hour(self) -> int:
        began_at = self._clock.now() - HOUR
        return sum(at > began_at for at in self._written_at)

    def _to_pace_error(self, wait_ms: int) -> AllowanceKept:
        now = self._clock.now()
        message = (
            f"{self.name} limits how much we write: the next comment or check can be sent in "
            f"{_to_seconds(wait_ms)} seconds"
        )
        return AllowanceKept(message, later(now, wait_ms), now)

    def to_error(self, message: str, kind: str) -> RateLimited:
        """For a response that was recorded with a limit of this kind."""
        return RateLimited(message, self._paused_until(kind), self._clock.now())

    def record_response(self, status: int, headers: Mapping[str, str], kind: str = ALL_CALLS) -> None:
        """Records the status and rate-limit headers of a response. `kind`: the calls that a limit is about."""
        self._count_failures(status)
        remaining = _read_number(headers, "x-ratelimit-remaining", "ratelimit-remaining")
        if remaining is not None:
            self._record_budget(remaining, headers)
        retry_after = _read_number(headers, "retry-after")
        if status != 429 and not (status == 403 and (retry_after is not None or remaining == 0)):
            return
        now = self._clock.now()
        if retry_after is None and remaining == 0:
            retry_after = max(DEFAULT_PAUSE_S, _to_seconds(self._resets_at - now))
        self._forget_old_pauses(now)
        self._pauses[kind].start(now, retry_after)

    def _forget_old_pauses(self, now: Instant) -> None:
        """The kinds contain names from paths, so there can be many over time."""
        for kind in [kind for kind, pause in self._pauses.items() if pause.until + pause.length_s * SECOND <= now]:
            del self._pauses[kind]

    def _count_failures(self, status: int) -> None:
        """Exponential backoff: 0, 1, 2, 4, … 60 seconds."""
        now, pause = self._clock.now(), self._pauses[OUTAGE]
        if status < 500 and status != UNAUTHORIZED:
            self._consecutive_failures = 0
        elif now >= pause.until:  # concurrent requests that fail for the same reason count once
            self._consecutive_failures += 1
            pause.start(now, min(2 ** min(self._consecutive_failures - 1, 10) // 2, DEFAULT_PAUSE_S))

    def _record_budget(self, remaining: int, headers: Mapping[str, str]) -> None:
        self._remaining = remaining
        self._limit = _read_number(headers, "x-ratelimit-limit", "ratelimit-limit") or 0
        self._resets_at = Instant((_read_number(headers, "x-ratelimit-reset", "ratelimit-reset") or 0) * SECOND)


def _to_seconds(milliseconds: int) -> int:
    """Rounded up."""
    return -(-milliseconds // SECOND)


def _read_number(headers: Mapping[str, str], *names: str) -> int | None:
    value = next((headers[name] for name in names if name in headers), "")
    return int(value[:15]) if value.isascii() and value.isdecimal() else None
