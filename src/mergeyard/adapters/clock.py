"""The clock on the wall, and one that follows it calmly: where somebody sets the wall by an hour, no hour has passed.

What is signed, verified or expires goes by the wall. What is waited for goes by the calm one: its time passes as the
machine counts it, and it approaches the wall by a small part of that. So no timeout runs out, and no lease is extended,
because a clock was set.
"""

import asyncio
import time
from collections.abc import Callable

from mergeyard.domain.instants import Instant

Nanoseconds = Callable[[], int]

HASTE = 10
"""Of so many milliseconds that pass, one more or less is told, until the wall is right."""
NANOSECONDS = 1_000_000


def counted() -> int:
    """Also while the machine sleeps, where it can tell."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class WallClock:
    def __init__(self, wall: Nanoseconds = time.time_ns) -> None:
        self._wall = wall

    def now(self) -> Instant:
        return Instant(self._wall() // NANOSECONDS)

    async def sleep(self, milliseconds: int) -> None:
        await asyncio.sleep(milliseconds / 1000)


class CalmClock(WallClock):
    def __init__(self, wall: Nanoseconds = time.time_ns, counter: Nanoseconds = counted) -> None:
        super().__init__(wall)
        self._counter = counter
        self._counted = counter()
        self._told = wall()

    def now(self) -> Instant:
        passed = self._counter() - self._counted
        self._counted += passed
        self._told += passed
        most = passed // HASTE
        self._told += max(-most, min(most, self._wall() - self._told))
        return Instant(self._told // NANOSECONDS)
