"""The process of one replica, and the connection over which it calls the store, git and the host.

A request that was sent arrives even if the process dies; the reply can find it dead, stopped or running.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from mergeyard.adapters.clock import NS_PER_MS, SlewingClock
from mergeyard.domain.timestamps import Instant
from tests.simulation.faults import Family, FaultInjector

START = Instant(1_700_000_000_000)


class Deadlock(Exception):
    """All tasks wait, and no timer is left."""


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._elapsed = 0.0
        self._selector = self
        self.set_exception_handler(lambda _, __: None)

    @property
    def now(self) -> Instant:
        """The true time of the world; clocks in it can differ."""
        return Instant(START + round(self._elapsed * 1000))

    def time(self) -> float:
        return self._elapsed

    def select(self, timeout: float | None) -> tuple[()]:
        """Where a real loop would wait for sockets, the time advances to the next timer."""
        if timeout is None:
            raise Deadlock
        self._elapsed += timeout
        return ()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # noqa: ARG002
        """Runs the function at once, since threads would not be deterministic."""
        done = self.create_future()
        done.set_result(func(*args))
        return done

    def _process_events(self, _: tuple[()]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


T = TypeVar("T")


class Process:
    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.alive = True
        self.is_superseded: Callable[[], bool] = lambda: False
        """Whether another replica does its work by now."""
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

    async def wait_until_running(self) -> None:
        """Returns once the process is not stopped; never returns in a dead process."""
        while self._stopped is not None:
            await asyncio.shield(self._stopped)
        if not self.alive:
            await self.loop.create_future()


class ProcessClock(SlewingClock):
    """The production clock, on a wall clock that can be wrong."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.offset_ms = 0
        super().__init__(self._wall_time_ns, lambda: process.loop.now * NS_PER_MS)

    def _wall_time_ns(self) -> int:
        return (self._process.loop.now + self.offset_ms) * NS_PER_MS

    async def sleep(self, milliseconds: int) -> None:
        await asyncio.sleep(milliseconds / 1000)
        await self._process.wait_until_running()


class Connection:
    def __init__(self, process: Process, faults: FaultInjector) -> None:
        self._process = process
        self._loop = process.loop
        self._faults = faults

    @property
    def now(self) -> Instant:
        return self._loop.now

    @property
    def seconds(self) -> int:
        return self._loop.now // 1000

    @property
    def sender(self) -> Process:
        return self._process

    async def call(
        self,
        effect: Callable[[], T],
        usual_delay: float,
        error_type: type[Exception],
        refusals: Family,
        losses: Family | None,
    ) -> T:
        await self._process.wait_until_running()
        reply = self._loop.create_future()

        def arrive() -> None:
            error, result = None, None
            if self._faults.occurs(refusals):
                error = error_type("no response")
            else:
                try:
                    result = effect()
                except Exception as raised:
                    error = raised
                if error is None and losses is not None and self._faults.occurs(losses):
                    error = error_type("the response was lost")
            self._later(usual_delay, lambda: _settle(reply, result, error))

        self._later(usual_delay, arrive)
        answer = await reply
        await self._process.wait_until_running()
        return answer

    def _later(self, usual_delay: float, step: Callable[[], None]) -> None:
        delay = self._faults.delay(usual_delay)
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
