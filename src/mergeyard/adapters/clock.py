"""The system clock, and a clock that follows it without jumps.

Signatures, verification and expiry dates use `WallClock`. Timeouts and leases use `SlewingClock`: it advances with the
machine's monotonic counter and corrects itself toward the system time by at most a tenth of the time that passes. So no
timeout fires and no lease is extended because an administrator or NTP set the system clock.
"""

import asyncio
import time
from collections.abc import Callable

from mergeyard.domain.timestamps import Instant

NanosecondSource = Callable[[], int]

SLEW_DIVISOR = 10
"""Corrections are limited to one tenth of the elapsed time, in both directions."""
NS_PER_MS = 1_000_000


def read_boot_time_ns() -> int:
    """Also counts the time in which the machine is suspended, where the platform supports that."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class WallClock:
    def __init__(self, wall: NanosecondSource = time.time_ns) -> None:
        self._wall = wall

    def now(self) -> Instant:
        return Instant(self._wall() // NS_PER_MS)

    async def sleep(self, milliseconds: int) -> None:
        await asyncio.sleep(milliseconds / 1000)


class SlewingClock(WallClock):
    def __init__(self, wall: NanosecondSource = time.time_ns, counter: NanosecondSource = read_boot_time_ns) -> None:
        super().__init__(wall)
        self._counter = counter
        self._last_counter_ns = counter()
        self._now_ns = wall()

    def now(self) -> Instant:
        elapsed = self._counter() - self._last_counter_ns
        self._last_counter_ns += elapsed
        self._now_ns += elapsed
        max_correction = elapsed // SLEW_DIVISOR
        self._now_ns += max(-max_correction, min(max_correction, self._wall() - self._now_ns))
        return Instant(self._now_ns // NS_PER_MS)
