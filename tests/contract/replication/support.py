"""Helpers for the tests of replication."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from mergeyard.domain.ids import QueueId, QueueKey, Repo
from mergeyard.ports.store import SharedStore
from mergeyard.ports.writes import CreateQueue
from tests.contract.store.builders import a_queue, opened
from tests.support.polling import ASYNC_POLL_INTERVAL_S, ASYNC_TIMEOUT_S

LONG_MS = 60_000
"""Longer than any test takes."""
SHORT_MS = 50
NO_WAIT_MS = 0

APP, LIB, WEB = (Repo("git.local", "acme", name) for name in ("app", "lib", "web"))

Found = TypeVar("Found")


@asynccontextmanager
async def open_all(*stores: SharedStore) -> AsyncGenerator[None]:
    async with AsyncExitStack() as stack:
        for store in stores:
            await stack.enter_async_context(opened(store))
        yield


def a_queue_of(repo: Repo) -> CreateQueue:
    return a_queue(QueueId(f"queue of {repo.name}"), key=QueueKey(repo, "main"))


async def wait_for_result(ask: Callable[[], Awaitable[Found]]) -> Found:
    async with asyncio.timeout(ASYNC_TIMEOUT_S):
        while not (found := await ask()):
            await asyncio.sleep(ASYNC_POLL_INTERVAL_S)
        return found


class YieldingStore:
    def __init__(self, store: SharedStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def after_others(*given: object) -> object:
            await asyncio.sleep(0)
            return await method(*given)

        return after_others
