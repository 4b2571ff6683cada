"""What the tests of sharing need again and again."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from mergeyard.domain.ids import QueueId
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.ports.sharing import SharedStore
from mergeyard.ports.writes import CreateQueue
from tests.contract.store.given import a_queue, opened
from tests.support.waiting import PATIENCE_IN_SECONDS, PAUSE

LONG = 60_000
"""Milliseconds that no test lasts."""
BRIEFLY = 50
AT_ONCE = 0

APP, LIB, WEB = (Repo("git.local", "acme", name) for name in ("app", "lib", "web"))

Found = TypeVar("Found")


@asynccontextmanager
async def all_opened(*stores: SharedStore) -> AsyncGenerator[None]:
    async with AsyncExitStack() as stack:
        for store in stores:
            await stack.enter_async_context(opened(store))
        yield


def a_queue_of(repo: Repo) -> CreateQueue:
    return a_queue(QueueId(f"queue of {repo.name}"), key=QueueKey(repo, "main"))


async def sooner_or_later(ask: Callable[[], Awaitable[Found]]) -> Found:
    async with asyncio.timeout(PATIENCE_IN_SECONDS):
        while not (found := await ask()):
            await asyncio.sleep(PAUSE)
        return found
