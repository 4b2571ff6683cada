"""The store as a replica reaches it: every call takes its way there and back, and may fail on either."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from mergeyard.ports.sharing import SharedStore
from mergeyard.ports.store import Store, StoreTrouble
from tests.simulation.process import Line
from tests.simulation.store.store import MemoryStore
from tests.simulation.weather import Family

USUAL = {"commit": 0.02, "report": 0.01, "claim": 0.02, "enlist": 0.02}
"""Reading is quick, and takes no time on most days."""
LOCAL = frozenset({"open", "close", "listen"})


class FarStore:
    def __init__(self, store: MemoryStore, line: Line, losses: Family | None) -> None:
        self._store = store
        self._line = line
        self._losses = losses

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._store, name)
        if name in LOCAL:
            return method

        async def call(*args: Any, **named: Any) -> Any:
            def effect() -> Any:
                return at_once(method(*args, **named))

            return await self._line.call(effect, USUAL.get(name, 0), StoreTrouble, Family.STORE, self._losses)

        return call


def on_a_server(store: MemoryStore, line: Line) -> SharedStore:
    return cast("SharedStore", FarStore(store, line, losses=Family.STORE))


def embedded(store: MemoryStore, line: Line) -> Store:
    """Whether it wrote something is never in doubt."""
    return cast("Store", FarStore(store, line, losses=None))


def at_once(work: Any) -> Any:
    """The result of something that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError(f"{work} waits")
