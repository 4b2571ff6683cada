"""Keeps within the limits of a forge: waits when told to, and keeps the last of the budget for landings."""

from collections.abc import Mapping

from mergeyard.domain.instants import SECOND, Instant
from mergeyard.ports.clock import Clock
from mergeyard.ports.host import HostTrouble

KEPT_SHARE = 10
"""One in so many calls is kept for what must not wait."""
PAUSE = 60
"""Seconds, when a forge wants us to wait and does not say how long."""
LONGEST_PAUSE = 3600
LOCKED_OUT = 401
"""Whoever tries again and again with a key that does not fit is locked out, also with the right one."""


class Limits:
    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._silent_until = Instant(0)
        self._left: int | None = None
        self._of = 0
        self._renewed_at = Instant(0)
        self._failures = 0
        """How often in a row it was in trouble."""

    def check(self) -> None:
        """Raises while the forge wants to hear nothing of us."""
        now = self._clock.now()
        if now < self._silent_until:
            seconds = -(-(self._silent_until - now) // SECOND)
            raise HostTrouble(f"{self._name} asks us to wait for {seconds} seconds")

    def spare(self) -> None:
        """Raises when only that is left of the budget which landings need."""
        if self._left is None or self._clock.now() >= self._renewed_at:
            return
        if self._left * KEPT_SHARE < self._of:
            words = f"{self._name} lets us ask {self._left} more times for now, which we keep for landings"
            raise HostTrouble(words)

    def note(self, status: int, headers: Mapping[str, str]) -> None:
        """What the forge answered; of what is silent or in trouble, more is asked only after a while."""
        self._count_failures(status)
        left = _number(headers, "x-ratelimit-remaining", "ratelimit-remaining")
        if left is not None:
            self._learn_budget(left, headers)
        wait = _number(headers, "retry-after")
        if status == 429 or (status == 403 and (wait is not None or left == 0)):
            self._fall_silent(wait, self._renewed_at if left == 0 else Instant(0))

    def _count_failures(self, status: int) -> None:
        now = self._clock.now()
        if status < 500 and status != LOCKED_OUT:
            self._failures = 0
        elif now >= self._silent_until:  # of several calls at once, whose trouble is the same, one counts
            self._failures += 1
            pause = min(2 ** min(self._failures - 1, 10) // 2, PAUSE)
            self._silent_until = Instant(now + pause * SECOND)

    def _learn_budget(self, left: int, headers: Mapping[str, str]) -> None:
        self._left, self._of = left, _number(headers, "x-ratelimit-limit", "ratelimit-limit") or 0
        self._renewed_at = Instant((_number(headers, "x-ratelimit-reset", "ratelimit-reset") or 0) * SECOND)

    def _fall_silent(self, seconds: int | None, renewed_at: Instant) -> None:
        now = self._clock.now()
        until = max(now + PAUSE * SECOND, renewed_at) if seconds is None else now + seconds * SECOND
        self._silent_until = Instant(min(until, now + LONGEST_PAUSE * SECOND))


def _number(headers: Mapping[str, str], *names: str) -> int | None:
    given = next((headers[name] for name in names if name in headers), "")
    return int(given[:15]) if given.isascii() and given.isdecimal() else None
