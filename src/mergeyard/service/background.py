"""Work that goes on beside the requests: started here, so that nothing is lost sight of and all of it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import structlog

from mergeyard.ports.clock import Clock
from mergeyard.ports.store import Relieved, StoreTrouble
from mergeyard.service.errors import Refused

log = structlog.get_logger()

BETWEEN_ATTEMPTS = 1000


class Background:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        """A turn that was being saved when all was closed finds nobody who would begin anything for it."""
        if self._closed:
            work.close()
            return None
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def go_on(self, name: str, step: Callable[[], Awaitable[None]], pause: int) -> None:
        """Again and again, whatever happens in between."""
        self._loops[name] = asyncio.create_task(self._repeat(name, step, pause), name=name)
        self._tasks.add(self._loops[name])

    def stopped(self) -> list[str]:
        """What should go on and does not."""
        return [name for name, loop in self._loops.items() if loop.done()]

    async def close(self) -> None:
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeat(self, name: str, step: Callable[[], Awaitable[None]], pause: int) -> None:
        while True:
            try:
                await step()
                await self._clock.sleep(pause)
            except (StoreTrouble, Relieved) as trouble:
                log.warning("background work is put off", work=name, words=str(trouble))
                await self._clock.sleep(BETWEEN_ATTEMPTS)
            except Exception as error:
                log.error("background work failed and goes on", work=name, exc_info=error)
                await self._clock.sleep(BETWEEN_ATTEMPTS)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Whoever worked for a queue that is deleted, or somebody else's now, was refused, and that is all."""
        self._tasks.discard(task)
        trouble = None if task.cancelled() else task.exception()
        if trouble is not None and not isinstance(trouble, Refused | Relieved):
            log.error("background work failed", work=str(task.get_coro()), exc_info=trouble)


async def insist(clock: Clock, store_it: Callable[[], Awaitable[None]]) -> None:
    """Nobody would ask again for what goes on beside the requests, so it is stored as soon as that is possible."""
    while True:
        try:
            return await store_it()
        except StoreTrouble as trouble:
            log.error("the store is in trouble", words=str(trouble))
            await clock.sleep(BETWEEN_ATTEMPTS)
