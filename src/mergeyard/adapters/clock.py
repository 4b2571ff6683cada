"""The clock on the wall."""

import asyncio
import time

from mergeyard.domain.instants import Instant


class WallClock:
    def now(self) -> Instant:
        return Instant(time.time_ns() // 1_000_000)

    async def sleep(self, milliseconds: int) -> None:
        await asyncio.sleep(milliseconds / 1000)
