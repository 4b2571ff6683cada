"""Runs journal consumers over the journals of all queues: in order, at least once, with backoff.

The cursor is stored after the entries are consumed, so a crash repeats entries but loses none. A queue is read only
after it changed. An entry that fails is retried, and later entries of the same queue wait for it.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import structlog
from msgspec import Struct

from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import MINUTE, SECOND
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import HostError
from mergeyard.ports.store import LeaseLost, Store, StoredEntry, StoreUnavailable
from mergeyard.ports.writes import MoveCursor, StartConsumer
from mergeyard.service.background import Background, limit_delay, retry_until_stored
from mergeyard.service.leases import Leases
from mergeyard.service.queue_actor import QueueActor

log = structlog.get_logger()

FIRST_RETRY_MS = SECOND

WakePredicate = Callable[[Queue | None, Queue], bool]
"""Takes the queue before a change, if there was one, and after it."""


def wake_on_every_change(before: Queue | None, after: Queue) -> bool:
    return before is not after


class ConsumerOptions(Struct, frozen=True):
    batch_size: int = 100
    """A process that is killed in the middle of a batch consumes at most this many entries again."""
    max_retry_delay_ms: int = 5 * MINUTE
    """The longest delay between two attempts."""
    is_woken_by: WakePredicate = wake_on_every_change
    """Which changes wake the consumer; changes by other replicas are found by the periodic wake-up."""


DEFAULT_CONSUMER_OPTIONS = ConsumerOptions()


class JournalConsumer(Protocol):
    @property
    def name(self) -> str:
        """The key of the stored cursor."""
        ...

    async def consume(self, key: QueueKey, queue: QueueId, entries: Sequence[StoredEntry], /) -> None:
        """Consumes entries, oldest first. After any exception it is called again with all of them, or with those after
        the last one that `PartiallyDelivered` names."""
        ...


class PartiallyDelivered(Exception):
    """The entries up to this one were delivered (None: no entry was); the next one cannot be delivered now."""

    def __init__(self, told: int | None, message: str) -> None:
        super().__init__(message)
        self.delivered_up_to = told


EXPECTED_ERRORS = (PartiallyDelivered, HostError, StoreUnavailable)


@dataclass(eq=False)
class ConsumerLoop:
    consumer: JournalConsumer
    store: Store
    clock: Clock
    background: Background
    leases: Leases
    options: ConsumerOptions
    _dirty: set[QueueId] = field(default_factory=set[QueueId], init=False)
    """Queues that may have new entries."""
    _running: dict[QueueId, asyncio.Task[None]] = field(default_factory=dict[QueueId, asyncio.Task[None]], init=False)

    def wake(self, key: QueueKey, queue: QueueId) -> None:
        """The queue may have new entries."""
        self._dirty.add(queue)
        if queue not in self._running:
            started = self.background.start(self._run(key, queue))
            if started is not None:
                self._running[queue] = started

    def cancel(self, queue: QueueId) -> None:
        """Stops consuming this queue: the replica that took over the lease continues from the stored cursor."""
        running = self._running.pop(queue, None)
        if running is not None:
            running.cancel()

    def stop(self) -> None:
        for queue in tuple(self._running):
            self.cancel(queue)

    async def _run(self, key: QueueKey, queue: QueueId) -> None:
        try:
            attempt = 0
            while queue in self._dirty and self.leases.has_lease(key.repo):
                error = await self._try_batch(key, queue)
                attempt = 0 if error is None else attempt + 1
                if error is not None:
                    await self.clock.sleep(limit_delay(self._retry_delay(attempt), error))
        finally:
            if self._running.get(queue) is asyncio.current_task():
                del self._running[queue]

    async def _try_batch(self, key: QueueKey, queue: QueueId) -> Exception | None:
        try:
            await self._consume_batch(key, queue)
        except LeaseLost:
            self._dirty.discard(queue)
        except Exception as error:  # also unexpected ones: without a retry the entries would never be consumed
            self._dirty.add(queue)
            self._log_error(key, error)
            return error
        return None

    async def _consume_batch(self, key: QueueKey, queue: QueueId) -> None:
        self._dirty.discard(queue)
        cursor = await self.store.cursor(self.consumer.name, queue)
        entries = await self.store.entries(queue, cursor, self.options.batch_size)
        if not entries:
            return
        self._dirty.add(queue)
        try:
            await self.consumer.consume(key, queue, entries)
        except PartiallyDelivered as progress:
            if progress.delivered_up_to is not None:
                await self._move_cursor(key, queue, progress.delivered_up_to)
            raise
        await self._move_cursor(key, queue, entries[-1].seq)

    async def _move_cursor(self, key: QueueKey, queue: QueueId, seq: int) -> None:
        await self.store.commit(*self.leases.lease_assertion(key.repo), MoveCursor(self.consumer.name, queue, seq))

    def _log_error(self, key: QueueKey, error: Exception) -> None:
        if isinstance(error, EXPECTED_ERRORS):
            log.warning("journal_consumer_failed", consumer=self.consumer.name, queue=str(key), error=str(error))
        else:
            log.error("journal_consumer_failed", consumer=self.consumer.name, queue=str(key), exc_info=error)

    def _retry_delay(self, attempt: int) -> int:
        """Doubles with every attempt, with jitter so that consumers do not retry at the same time."""
        max_delay = min(self.options.max_retry_delay_ms, FIRST_RETRY_MS * 2 ** min(attempt - 1, 30))
        return random.randint(max_delay // 2, max_delay)


WAKE_INTERVAL_MS = MINUTE


class JournalConsumers:
    def __init__(self, store: Store, clock: Clock, background: Background, leases: Leases) -> None:
        self._store = store
        self._clock = clock
        self._background = background
        self._leases = leases
        self._loops: dict[str, ConsumerLoop] = {}

    async def start_at_end(
        self, consumer: JournalConsumer, options: ConsumerOptions = DEFAULT_CONSUMER_OPTIONS
    ) -> None:
        """Adds a consumer. The first time its cursor is set to the end of the journal, so that older entries are
        skipped."""
        await retry_until_stored(self._clock, partial(self._store.commit, StartConsumer(consumer.name)))
        self.add(consumer, options)

    def add(self, consumer: JournalConsumer, options: ConsumerOptions = DEFAULT_CONSUMER_OPTIONS) -> None:
        """Adds a consumer that has a cursor, replacing one with the same name, and wakes it for entries that it
        missed."""
        self.remove(consumer.name)
        loop = ConsumerLoop(consumer, self._store, self._clock, self._background, self._leases, options)
        self._loops[consumer.name] = loop
        self._background.start(retry_until_stored(self._clock, partial(self._wake_loop, loop)))

    def remove(self, name: str) -> None:
        loop = self._loops.pop(name, None)
        if loop is not None:
            loop.stop()

    def on_change(self, queue_actor: QueueActor, before: Queue | None) -> None:
        for loop in self._loops.values():
            if loop.options.is_woken_by(before, queue_actor.queue):
                loop.wake(queue_actor.key, queue_actor.id)

    def on_lease_lost(self, queue_actor: QueueActor) -> None:
        """A deleted queue has final entries to consume; one that another replica took over is left to that replica."""
        is_deleted = queue_actor.is_closed and self._leases.has_lease(queue_actor.key.repo)
        for loop in self._loops.values():
            if is_deleted:
                loop.wake(queue_actor.key, queue_actor.id)
            else:
                loop.cancel(queue_actor.id)

    async def wake_lagging(self) -> None:
        """Wakes consumers that lag, for example because a queue was deleted right before a crash."""
        for loop in tuple(self._loops.values()):
            await self._wake_loop(loop)

    async def _wake_loop(self, loop: ConsumerLoop) -> None:
        for queue in await self._store.queues_with_unread_entries(loop.consumer.name):
            if self._leases.has_lease(queue.key.repo):
                loop.wake(queue.key, queue.id)
