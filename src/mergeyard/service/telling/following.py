"""Follows the journals of all queues for one teller, and lets it tell of everything, in order, at least once.

Nothing is lost by a crash: how far it told is stored, after it was told. Nobody is asked who has nothing new: a turn
wakes it. What cannot be told now is tried again, and what happened behind it waits.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog
from msgspec import Struct

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import MINUTE, SECOND
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.clock import Clock
from mergeyard.ports.host import HostTrouble
from mergeyard.ports.store import Relieved, Store, StoredEntry, StoreTrouble
from mergeyard.ports.writes import MoveCursor
from mergeyard.service.background import Background
from mergeyard.service.duties import Duties

log = structlog.get_logger()

SHORTEST_WAIT = SECOND

Heeds = Callable[[Queue | None, Queue], bool]
"""Is shown the queue before a turn, if there was one, and after it."""


def every_turn(before: Queue | None, now: Queue) -> bool:
    return before is not now


class Pace(Struct, frozen=True):
    at_a_time: int = 100
    """So many are told again when a process is killed in the middle."""
    longest_wait: int = 5 * MINUTE
    """Between two attempts."""
    heeds: Heeds = every_turn
    """Which turns wake it; of what others brought it is reminded now and then."""


USUAL = Pace()


class Teller(Protocol):
    @property
    def name(self) -> str:
        """Under which it is stored how far it told."""
        ...

    async def tell(self, key: QueueKey, queue: QueueId, entries: Sequence[StoredEntry], /) -> None:
        """Oldest first. Whatever it raises, it is asked again for all of it, or for what is behind a `Halfway`."""
        ...


class Halfway(Exception):
    """Entries up to this one were told, if there was any; the next cannot be told now."""

    def __init__(self, told: int | None, words: str) -> None:
        super().__init__(words)
        self.told = told


EXPECTED = (Halfway, HostTrouble, StoreTrouble)


class Following:
    def __init__(
        self,
        teller: Teller,
        store: Store,
        clock: Clock,
        background: Background,
        duties: Duties,
        pace: Pace = USUAL,
    ) -> None:
        self.teller = teller
        self._store = store
        self._clock = clock
        self._background = background
        self._duties = duties
        self.pace = pace
        self._news = set[QueueId]()
        """Of these there may be something to tell."""
        self._under_way: dict[QueueId, asyncio.Task[None]] = {}

    def wake(self, key: QueueKey, queue: QueueId) -> None:
        """Something may have happened there."""
        self._news.add(queue)
        if queue not in self._under_way:
            begun = self._background.start(self._tell_all(key, queue))
            if begun is not None:
                self._under_way[queue] = begun

    def leave(self, queue: QueueId) -> None:
        """Somebody else tells of it now, from where this one stopped."""
        under_way = self._under_way.pop(queue, None)
        if under_way is not None:
            under_way.cancel()

    def stop(self) -> None:
        for queue in tuple(self._under_way):
            self.leave(queue)

    async def _tell_all(self, key: QueueKey, queue: QueueId) -> None:
        try:
            attempt = 0
            while queue in self._news and self._duties.covers(key.repo):
                if attempt:
                    await self._clock.sleep(self._wait(attempt))
                attempt = 0 if await self._went_well(key, queue) else attempt + 1
        finally:
            if self._under_way.get(queue) is asyncio.current_task():
                del self._under_way[queue]

    async def _went_well(self, key: QueueKey, queue: QueueId) -> bool:
        try:
            await self._tell_some(key, queue)
        except Relieved:
            self._news.discard(queue)
        except Exception as trouble:  # whatever it is: nobody else would tell of it
            self._news.add(queue)
            self._complain(key, trouble)
            return False
        return True

    async def _tell_some(self, key: QueueKey, queue: QueueId) -> None:
        self._news.discard(queue)
        cursor = await self._store.cursor(self.teller.name, queue)
        entries = await self._store.entries(queue, cursor, self.pace.at_a_time)
        if not entries:
            return
        self._news.add(queue)
        try:
            await self.teller.tell(key, queue, entries)
        except Halfway as halfway:
            if halfway.told is not None:
                await self._move(key, queue, halfway.told)
            raise
        await self._move(key, queue, entries[-1].seq)

    async def _move(self, key: QueueKey, queue: QueueId, seq: int) -> None:
        await self._store.commit(*self._duties.proof(key.repo), MoveCursor(self.teller.name, queue, seq))

    def _complain(self, key: QueueKey, trouble: Exception) -> None:
        if isinstance(trouble, EXPECTED):
            log.warning("not told, but tried again", teller=self.teller.name, queue=str(key), words=str(trouble))
        else:
            log.error("not told, but tried again", teller=self.teller.name, queue=str(key), exc_info=trouble)

    def _wait(self, attempt: int) -> int:
        """Twice as long every time, and never all at once."""
        longest = min(self.pace.longest_wait, SHORTEST_WAIT * 2 ** min(attempt - 1, 30))
        return random.randint(longest // 2, longest)
