"""Background tasks of the service: started here, so that each is referenced until it ends and cancelled at shutdown."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import structlog

from mergeyard.domain.timestamps import SECOND
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import RateLimited
from mergeyard.ports.store import LeaseLost, StoreUnavailable
from mergeyard.service.errors import RequestRefused

log = structlog.get_logger()

RETRY_DELAY_MS = 1000


def limit_delay(delay_ms: int, error: Exception) -> int:
    """A longer delay than the Git host needs would only add to a silence."""
    if isinstance(error, RateLimited):
        return min(delay_ms, error.wait_s * SECOND)
    return delay_ms


class Background:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        """None after `close`: a decision that was being saved at shutdown still notifies its listeners, and they must
        not start tasks that would never be cancelled."""
        if self._closed:
            work.close()
            return None
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def run_periodically(self, name: str, step: Callable[[], Awaitable[None]], pause_ms: int) -> None:
        """Repeats `step` until `close`. An exception is logged and does not end the loop."""
        self._loops[name] = asyncio.create_task(self._repeat(name, step, pause_ms), name=name)
        self._tasks.add(self._loops[name])

    def list_stopped(self) -> list[str]:
        """The names of periodic loops that ended although they should run."""
        return [name for name, loop in self._loops.items() if loop.done()]

    async def close(self) -> None:
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeat(self, name: str, step: Callable[[], Awaitable[None]], pause_ms: int) -> None:
        while True:
            try:
                await step()
                await self._clock.sleep(pause_ms)
            except (StoreUnavailable, LeaseLost) as error:
                log.warning("background_work_postponed", work=name, error=str(error))
                await self._clock.sleep(RETRY_DELAY_MS)
            except Exception as error:
                log.error("background_work_failed", work=name, error=str(error), exc_info=error)
                await self._clock.sleep(RETRY_DELAY_MS)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        """`RequestRefused` and `LeaseLost` are expected: the queue was deleted, or another replica holds its lease."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, RequestRefused | LeaseLost):
            log.error("background_task_failed", work=str(task.get_coro()), error=str(error), exc_info=error)


async def is_done_before(work: Coroutine[Any, Any, object], *limits: Coroutine[Any, Any, object]) -> bool:
    """Waits for the first of them, cancels the others, and returns whether `work` is done."""
    tasks = [asyncio.create_task(each) for each in (work, *limits)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].done()
    finally:
        for task in tasks:
            task.cancel()


async def retry_until_stored(clock: Clock, store_it: Callable[[], Awaitable[object]]) -> None:
    """Retries while the store is unavailable. Background work has no client that would repeat the request."""
    while True:
        try:
            await store_it()
            return
        except StoreUnavailable as error:
            log.error("store_unavailable", error=str(error))
            await clock.sleep(RETRY_DELAY_MS)
