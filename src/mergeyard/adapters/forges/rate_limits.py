"""Rate limits of a forge: pauses when the forge asks for it, and reserves the last of the budget for landings."""

from collections.abc import Mapping

from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import HostUnavailable

RESERVE_DIVISOR = 10
"""The last tenth of the budget is reserved for requests that a landing needs."""
DEFAULT_PAUSE_S = 60
"""When a forge asks for a pause without saying how long, and the maximum after failures."""
MAX_PAUSE_S = 3600
UNAUTHORIZED = 401
"""Counts as a failure: forges lock out clients that retry wrong credentials, then also with the right ones."""


class RateLimits:
    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._paused_until = Instant(0)
        self._remaining: int | None = None
        self._limit = 0
        self._resets_at = Instant(0)
        self._consecutive_failures = 0

    def raise_if_paused(self) -> None:
        """Raises `HostUnavailable` during a pause."""
        now = self._clock.now()
        if now < self._paused_until:
            seconds = -(-(self._paused_until - now) // SECOND)
            raise HostUnavailable(f"{self._name} asks us to wait for {seconds} seconds")

    def raise_if_only_reserve_left(self) -> None:
        """Raises `HostUnavailable` when only the reserve for landings is left."""
        if self._remaining is None or self._clock.now() >= self._resets_at:
            return
        if self._remaining * RESERVE_DIVISOR < self._limit:
            raise HostUnavailable(
                f"{self._name} allows {self._remaining} more requests for now, which are reserved for landings"
            )

    def record_response(self, status: int, headers: Mapping[str, str]) -> None:
        """Records the status and rate-limit headers of a response."""
        self._count_failures(status)
        remaining = _read_number(headers, "x-ratelimit-remaining", "ratelimit-remaining")
        if remaining is not None:
            self._record_budget(remaining, headers)
        retry_after = _read_number(headers, "retry-after")
        if status == 429 or (status == 403 and (retry_after is not None or remaining == 0)):
            self._pause(retry_after, self._resets_at if remaining == 0 else Instant(0))

    def _count_failures(self, status: int) -> None:
        """Exponential backoff: 0, 1, 2, 4, … 60 seconds."""
        now = self._clock.now()
        if status < 500 and status != UNAUTHORIZED:
            self._consecutive_failures = 0
        elif now >= self._paused_until:  # concurrent requests that fail for the same reason count once
            self._consecutive_failures += 1
            pause = min(2 ** min(self._consecutive_failures - 1, 10) // 2, DEFAULT_PAUSE_S)
            self._paused_until = Instant(now + pause * SECOND)

    def _record_budget(self, remaining: int, headers: Mapping[str, str]) -> None:
        self._remaining = remaining
        self._limit = _read_number(headers, "x-ratelimit-limit", "ratelimit-limit") or 0
        self._resets_at = Instant((_read_number(headers, "x-ratelimit-reset", "ratelimit-reset") or 0) * SECOND)

    def _pause(self, seconds: int | None, resets_at: Instant) -> None:
        now = self._clock.now()
        until = max(now + DEFAULT_PAUSE_S * SECOND, resets_at) if seconds is None else now + seconds * SECOND
        self._paused_until = Instant(min(until, now + MAX_PAUSE_S * SECOND))


def _read_number(headers: Mapping[str, str], *names: str) -> int | None:
    value = next((headers[name] for name in names if name in headers), "")
    return int(value[:15]) if value.isascii() and value.isdecimal() else None
