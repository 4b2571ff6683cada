"""Lets people wait for something to happen to a queue, until the server ends."""

import asyncio

from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.ports.clock import Clock
from mergeyard.service.turn import Keeper


class Live:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ending = asyncio.Event()

    @property
    def ending(self) -> bool:
        return self._ending.is_set()

    def end(self) -> None:
        """Whoever waits is let go at once, so that nobody holds the server up."""
        self._ending.set()

    async def something_happens(self, keeper: Keeper, seen: Queue, until: Instant) -> bool:
        """Whether the queue became another than the one that was seen, or was deleted, before the time is over."""
        left = until - self._clock.now()
        if left <= 0:
            return False
        turn = asyncio.create_task(keeper.until(lambda queue: queue is not seen or keeper.closed))
        ends = [asyncio.create_task(end) for end in (self._clock.sleep(left), self._ending.wait())]
        try:
            await asyncio.wait([turn, *ends], return_when=asyncio.FIRST_COMPLETED)
            return turn.done()
        finally:
            for task in (turn, *ends):
                task.cancel()
