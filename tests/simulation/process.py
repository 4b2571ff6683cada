"""The life of one replica's process, and the line by which it reaches the world.

What it sent arrives, whatever becomes of it; what comes back finds it dead, stopped or well.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from mergeyard.adapters.clock import NANOSECONDS, CalmClock
from tests.simulation.timing import VirtualLoop
from tests.simulation.weather import Family, Weather

T = TypeVar("T")


class Process:
    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.alive = True
        self.is_relieved: Callable[[], bool] = lambda: False
        """Whether another does its work by now."""
        self._stopped: asyncio.Future[None] | None = None

    @property
    def frozen(self) -> bool:
        return self._stopped is not None

    def kill(self) -> None:
        self.alive = False

    def freeze(self) -> None:
        if self._stopped is None:
            self._stopped = self.loop.create_future()

    def thaw(self) -> None:
        if self._stopped is not None:
            self._stopped.set_result(None)
            self._stopped = None

    async def goes_on(self) -> None:
        """Returns when it may; never to one that is dead."""
        while self._stopped is not None:
            await asyncio.shield(self._stopped)
        if not self.alive:
            await self.loop.create_future()


class ProcessClock(CalmClock):
    """The production clock, on a wall that can be wrong."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.wrong_by = 0
        super().__init__(self._shown, lambda: process.loop.now * NANOSECONDS)

    def _shown(self) -> int:
        return (self._process.loop.now + self.wrong_by) * NANOSECONDS

    async def sleep(self, milliseconds: int) -> None:
        await asyncio.sleep(milliseconds / 1000)
        await self._process.goes_on()


class Line:
    def __init__(self, process: Process, weather: Weather) -> None:
        self._process = process
        self._loop = process.loop
        self._weather = weather

    @property
    def seconds(self) -> int:
        return self._loop.now // 1000

    @property
    def sender(self) -> Process:
        return self._process

    async def call(
        self, effect: Callable[[], T], usual: float, trouble: type[Exception], refusals: Family, losses: Family | None
    ) -> T:
        await self._process.goes_on()
        reply = self._loop.create_future()

        def arrive() -> None:
            error, result = None, None
            if self._weather.strikes(refusals):
                error = trouble("it does not answer")
            else:
                try:
                    result = effect()
                except Exception as raised:
                    error = raised
                if error is None and losses is not None and self._weather.strikes(losses):
                    error = trouble("the answer got lost")
            self._later(usual, lambda: _settle(reply, result, error))

        self._later(usual, arrive)
        answer = await reply
        await self._process.goes_on()
        return answer

    def _later(self, usual: float, step: Callable[[], None]) -> None:
        delay = self._weather.delay(usual)
        if delay:
            self._loop.call_later(delay, step)
        else:
            step()


def _settle(reply: asyncio.Future[T], result: T, error: Exception | None) -> None:
    if reply.cancelled():
        return
    if error is None:
        reply.set_result(result)
    else:
        reply.set_exception(error)
