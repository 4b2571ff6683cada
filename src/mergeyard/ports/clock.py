"""The time, and waiting for it: a real clock in production, a hand-moved one in tests."""

from typing import Protocol

from mergeyard.domain.instants import Instant


class Clock(Protocol):
    def now(self) -> Instant: ...

    async def sleep(self, milliseconds: int) -> None: ...
