"""A clock that stands still until the test moves it."""

import asyncio
import heapq
from itertools import count
from typing import Any

from msgspec import Struct

from mergeyard.domain.timestamps import Instant

START_TIME = Instant(1_700_000_000_000)


class Sleeper(Struct, order=True):
    until: Instant
    order: int
    waking: asyncio.Future[None]
    task: asyncio.Task[Any]


class ManualClock:
    def __init__(self, now: Instant = START_TIME) -> None:
        self._now = now
        self._sleepers: list[Sleeper] = []
        self._order = count()
        self._next_sleep: asyncio.Future[None] | None = None

    def now(self) -> Instant:
        return self._now

    async def sleep(self, milliseconds: int) -> None:
        if milliseconds <= 0:
            return await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        waking = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, Sleeper(Instant(self._now + milliseconds), next(self._order), waking, task))
        if self._next_sleep is not None and not self._next_sleep.done():
            self._next_sleep.set_result(None)
        return await waking

    @property
    def sleeping_tasks(self) -> set[asyncio.Task[Any]]:
        """Tasks that wait only for this clock."""
        return {sleeper.task for sleeper in self._sleepers if not sleeper.waking.done()}

    def next_sleep(self) -> asyncio.Future[None]:
        """Done as soon as another task sleeps on this clock."""
        if self._next_sleep is None or self._next_sleep.done():
            self._next_sleep = asyncio.get_running_loop().create_future()
        return self._next_sleep

    def next_wakeup(self) -> Instant | None:
        """When the next sleeping task wakes up."""
        while self._sleepers and self._sleepers[0].waking.done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0].until if self._sleepers else None

    def move_to(self, instant: Instant) -> None:
        self._now = max(self._now, instant)
        while self._sleepers and self._sleepers[0].until <= self._now:
            sleeper = heapq.heappop(self._sleepers)
            if not sleeper.waking.done():
                sleeper.waking.set_result(None)
