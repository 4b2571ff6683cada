"""An event loop whose time is a number: nobody waits, and the same steps always follow each other."""

import asyncio
from collections.abc import Callable
from typing import Any

from mergeyard.domain.instants import Instant

START = Instant(1_700_000_000_000)


class Standstill(Exception):
    """Everybody waits for something that never comes."""


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._passed = 0.0
        self._selector = self
        self.set_exception_handler(lambda _, __: None)

    @property
    def now(self) -> Instant:
        """The true time of the world, which no clock in it need show."""
        return Instant(START + round(self._passed * 1000))

    def time(self) -> float:
        return self._passed

    def select(self, timeout: float | None) -> tuple[()]:
        """Where a real loop would wait for sockets, the time moves on to the next alarm."""
        if timeout is None:
            raise Standstill
        self._passed += timeout
        return ()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # noqa: ARG002
        """There is no thread whose pace could differ."""
        done = self.create_future()
        done.set_result(func(*args))
        return done

    def _process_events(self, _: tuple[()]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass
