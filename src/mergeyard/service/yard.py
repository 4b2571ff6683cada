"""All queues of this service, each with its keeper."""

from collections.abc import Iterator

from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.ports.clock import Clock
from mergeyard.ports.store import Store
from mergeyard.service import shelving
from mergeyard.service.errors import Code, Refused
from mergeyard.service.turn import Keeper, Listener


class Yard:
    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.listeners: list[Listener] = []
        """They are told of every turn of every queue."""
        self._keepers: dict[QueueKey, Keeper] = {}

    async def open(self) -> None:
        for stored in await self.store.queues():
            loaded = await self.store.load(stored.id)
            keeper = Keeper(stored.key, shelving.restore(loaded), loaded.version, self.store, self.clock)
            self.take_in(keeper)

    async def close(self) -> None:
        """After the turns that are being taken: whoever waits for one gets an answer."""
        for keeper in self:
            keeper.close()
            await keeper.rest()

    def __iter__(self) -> Iterator[Keeper]:
        return iter(tuple(self._keepers.values()))

    def of_repo(self, repo: Repo) -> tuple[Keeper, ...]:
        return tuple(keeper for keeper in self if keeper.key.repo == repo)

    def find(self, key: QueueKey) -> Keeper | None:
        return self._keepers.get(key)

    def keeper(self, key: QueueKey) -> Keeper:
        found = self.find(key)
        if found is None:
            raise queue_not_found(key)
        return found

    def take_in(self, keeper: Keeper) -> None:
        keeper.listeners = self.listeners
        self._keepers[keeper.key] = keeper

    def let_go(self, keeper: Keeper) -> None:
        self._keepers.pop(keeper.key, None)


def queue_not_found(key: QueueKey) -> Refused:
    return Refused(Code.QUEUE_NOT_FOUND, f"There is no queue for {key}: create it with createQueue.")
