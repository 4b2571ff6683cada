"""All queues of this service, each with its keeper.

Where others write to the same store, a keeper is brought up to date before anybody asks it, so that whoever has written
through one replica reads it through every other.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from mergeyard.domain.ids import QueueId
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.tokens import Token
from mergeyard.ports.clock import Clock
from mergeyard.ports.sharing import SharedStore
from mergeyard.ports.store import Store, StoredQueue
from mergeyard.service import restoring
from mergeyard.service.errors import Code, Refused
from mergeyard.service.turn import Keeper, Listener

MOST_AT_ONCE = 8
"""That are being loaded: one that takes long keeps nobody from the others."""


class Yard:
    def __init__(self, store: Store, clock: Clock, shared: SharedStore | None = None) -> None:
        self.store = store
        self.clock = clock
        self.listeners: list[Listener] = []
        """They are told of every turn of every queue."""
        self._shared = shared
        self._keepers: dict[QueueKey, Keeper] = {}
        self._by_id: dict[QueueId, Keeper] = {}
        self._by_repo = defaultdict[Repo, dict[QueueId, Keeper]](dict)
        self._loading = asyncio.Semaphore(MOST_AT_ONCE)
        self.farewells: list[Callable[[Keeper], None]] = []
        """Are told of every keeper that is let go."""

    async def close(self) -> None:
        """After the turns that are being taken: whoever waits for one gets an answer."""
        for keeper in self:
            keeper.close()
            await keeper.rest()

    def __iter__(self) -> Iterator[Keeper]:
        """Those that are here, as they are here."""
        return iter(tuple(self._keepers.values()))

    def of_repo(self, repo: Repo) -> tuple[Keeper, ...]:
        return tuple(self._by_repo[repo].values()) if repo in self._by_repo else ()

    async def of_repo_now(self, repo: Repo) -> tuple[Keeper, ...]:
        """All of its queues, as they are now."""
        if self._shared is None:
            return self.of_repo(repo)
        return tuple([await self.bring(queue) for queue in await self._shared.of_repo(repo)])

    async def seen_by(self, token: Token) -> list[Keeper]:
        """Every queue that it may see, as it is now."""
        if self._shared is None:
            return [keeper for keeper in self if token.sees(keeper.key.repo)]
        stored = [queue for queue in await self.store.queues() if token.sees(queue.key.repo)]
        return await asyncio.gather(*map(self.bring, stored))

    async def open(self) -> None:
        for queue in await self.store.queues():
            await self.bring(queue)

    def let_go_of_gone(self, known: Iterable[Keeper], stored: Iterable[StoredQueue]) -> None:
        """Those that were here before one asked, and are stored no more."""
        there = {queue.id for queue in stored}
        for keeper in known:
            if keeper.id not in there:
                self.let_go(keeper)

    def of_id(self, queue: QueueId) -> Keeper | None:
        return self._by_id.get(queue)

    async def find(self, key: QueueKey) -> Keeper | None:
        if self._shared is None:
            return self._keepers.get(key)
        stored = await self._shared.find(key)
        if stored is not None:
            return await self.bring(stored)
        if key in self._keepers:
            self.let_go(self._keepers[key])
        return None

    async def keeper(self, key: QueueKey) -> Keeper:
        found = await self.find(key)
        if found is None:
            raise queue_not_found(key)
        return found

    async def bring(self, stored: StoredQueue) -> Keeper:
        """The keeper of this queue, at this version or a later one."""
        keeper = self._by_id.get(stored.id) or await self._load(stored)
        if keeper.version < stored.version:
            await keeper.catch_up(stored.version)
        return keeper

    async def _load(self, stored: StoredQueue) -> Keeper:
        """Several may load the same one: the first that is done is its keeper."""
        async with self._loading:
            try:
                loaded = await self.store.load(stored.id)
            except LookupError:
                raise queue_not_found(stored.key) from None
            return self.take_in(Keeper(stored.key, restoring.restore(loaded), loaded.version, self.store, self.clock))

    def take_in(self, keeper: Keeper) -> Keeper:
        """A queue has one keeper here: if somebody brought it meanwhile, that one stays."""
        known = self._keepers.get(keeper.key)
        if known is not None and known.id == keeper.id:
            return known
        if known is not None:
            self.let_go(known)
        keeper.listeners = self.listeners
        self._keepers[keeper.key] = self._by_id[keeper.id] = self._by_repo[keeper.key.repo][keeper.id] = keeper
        return keeper

    def welcome(self, keeper: Keeper) -> None:
        """A queue that is new altogether: everybody hears of it, as of a turn."""
        known = self.take_in(keeper)
        for listen in self.listeners:
            listen(known, None)

    def let_go(self, keeper: Keeper) -> None:
        keeper.close()
        if self._by_id.pop(keeper.id, None) is None:
            return
        del self._keepers[keeper.key]
        del self._by_repo[keeper.key.repo][keeper.id]
        if not self._by_repo[keeper.key.repo]:
            del self._by_repo[keeper.key.repo]
        for farewell in self.farewells:
            farewell(keeper)


def queue_not_found(key: QueueKey) -> Refused:
    return Refused(Code.QUEUE_NOT_FOUND, f"There is no queue for {key}: create it with createQueue.")
