"""Registry of the queue actors in this process, one per queue.

With a shared store, an actor is brought to the stored version before a request uses it. So a client that wrote through
one replica reads its own write through every other replica.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from mergeyard.domain.access import Token
from mergeyard.domain.ids import QueueId, QueueKey, Repo
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.store import SharedStore, Store, StoredQueue
from mergeyard.service import persistence
from mergeyard.service.background import is_done_before
from mergeyard.service.callbacks import call_each
from mergeyard.service.errors import queue_not_found
from mergeyard.service.queue_actor import Listener, QueueActor

MAX_CONCURRENT_LOADS = 8
"""More than one, so that a large queue does not delay the others."""


class QueueRegistry:
    def __init__(self, store: Store, clock: Clock, shared: SharedStore | None = None) -> None:
        self.store = store
        self.clock = clock
        self.listeners: list[Listener] = []
        """Called after every decision of every queue."""
        self._shared = shared
        self._by_key: dict[QueueKey, QueueActor] = {}
        self._by_id: dict[QueueId, QueueActor] = {}
        self._by_repo = defaultdict[Repo, dict[QueueId, QueueActor]](dict)
        self._load_slots = asyncio.Semaphore(MAX_CONCURRENT_LOADS)
        self.on_evicted: list[Callable[[QueueActor], None]] = []
        """Called with every actor that is removed from the registry."""

    async def close(self) -> None:
        """Waits for the decisions in progress, so that every accepted request gets its response."""
        for queue_actor in self:
            queue_actor.close()
            await queue_actor.wait_idle()

    def __iter__(self) -> Iterator[QueueActor]:
        """The actors in memory, at the version that is in memory."""
        return iter(tuple(self._by_key.values()))

    def cached_by_repo(self, repo: Repo) -> tuple[QueueActor, ...]:
        """The actors of a repository that are in memory, at the version that is in memory."""
        return tuple(self._by_repo[repo].values()) if repo in self._by_repo else ()

    async def load_by_repo(self, repo: Repo) -> tuple[QueueActor, ...]:
        """All queues of a repository at their stored versions."""
        if self._shared is None:
            return self.cached_by_repo(repo)
        return tuple([await self.load(queue) for queue in await self._shared.queues_of_repo(repo)])

    async def list_visible(self, token: Token) -> list[QueueActor]:
        """All queues that the token can see, at their stored versions."""
        if self._shared is None:
            return [queue_actor for queue_actor in self if token.can_access(queue_actor.key.repo)]
        stored = [queue for queue in await self.store.queues() if token.can_access(queue.key.repo)]
        return await asyncio.gather(*map(self.load, stored))

    async def load_all(self) -> None:
        for queue in await self.store.queues():
            await self.load(queue)

    def evict_deleted(self, known: Iterable[QueueActor], stored: Iterable[StoredQueue]) -> None:
        """Evicts those of `known` that are missing in `stored`. `known` must be collected before the store is read;
        otherwise a queue that was created meanwhile counts as deleted."""
        stored_ids = {queue.id for queue in stored}
        for queue_actor in known:
            if queue_actor.id not in stored_ids:
                self.evict(queue_actor)

    def cached_by_id(self, queue: QueueId) -> QueueActor | None:
        """The actor in memory, at the version that is in memory."""
        return self._by_id.get(queue)

    async def find(self, key: QueueKey) -> QueueActor | None:
        if self._shared is None:
            return self._by_key.get(key)
        stored = await self._shared.find_queue(key)
        if stored is not None:
            return await self.load(stored)
        if key in self._by_key:
            self.evict(self._by_key[key])
        return None

    async def get(self, key: QueueKey) -> QueueActor:
        """Like `find`, but raises RequestRefused when there is no such queue."""
        found = await self.find(key)
        if found is None:
            raise queue_not_found(key)
        return found

    async def load(self, stored: StoredQueue) -> QueueActor:
        """The actor of a stored queue, at `stored.version` or later."""
        queue_actor = self._by_id.get(stored.id) or await self._load_actor(stored)
        if queue_actor.version < stored.version:
            await queue_actor.catch_up(stored.version)
        return queue_actor

    async def _load_actor(self, stored: StoredQueue) -> QueueActor:
        """Two tasks can load the same queue at once: `add` keeps the actor of the first and returns it to both."""
        async with self._load_slots:
            try:
                loaded = await self.store.load(stored.id)
            except LookupError:
                raise queue_not_found(stored.key) from None
            return self.add(
                QueueActor(stored.key, persistence.decode_queue(loaded), loaded.version, self.store, self.clock)
            )

    def add(self, queue_actor: QueueActor) -> QueueActor:
        """Returns the actor that is registered for this queue: an earlier one, if there is one, or this one."""
        key, queue_id = queue_actor.key, queue_actor.id
        known = self._by_key.get(key)
        if known is not None and known.id == queue_id:
            return known
        if known is not None:
            self.evict(known)
        queue_actor.listeners = self.listeners
        self._by_key[key] = self._by_id[queue_id] = self._by_repo[key.repo][queue_id] = queue_actor
        return queue_actor

    def add_created(self, queue_actor: QueueActor) -> None:
        """Registers a queue that was just created, and announces it to all listeners."""
        self.add(queue_actor).announce()

    def evict(self, queue_actor: QueueActor) -> None:
        queue_actor.close()
        if self._by_id.pop(queue_actor.id, None) is None:
            return
        key = queue_actor.key
        del self._by_key[key]
        del self._by_repo[key.repo][queue_actor.id]
        if not self._by_repo[key.repo]:
            del self._by_repo[key.repo]
        call_each(self.on_evicted, queue_actor, event="eviction_listener_failed", queue=str(key))


class ChangeWaiter:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shutdown = asyncio.Event()

    @property
    def is_stopping(self) -> bool:
        return self._shutdown.is_set()

    def stop(self) -> None:
        """Releases all waiting requests, which would otherwise delay the shutdown."""
        self._shutdown.set()

    async def wait_for_change(self, queue_actor: QueueActor, known: Queue, until: Instant) -> bool:
        """Whether the queue is no longer `known`, or was deleted, by the time `until`."""
        left = until - self._clock.now()
        if left <= 0:
            return False
        change = queue_actor.wait_until(lambda queue: queue is not known or queue_actor.is_closed)
        return await is_done_before(change, self._clock.sleep(left), self._shutdown.wait())
