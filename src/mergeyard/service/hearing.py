"""Listens to the other replicas, and looks from time to time at what it may have missed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import assert_never

import structlog
from msgspec import MsgspecError

from mergeyard.domain.events import PullTouched
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import Mergeability
from mergeyard.ports.forge import CommitNews, PullNews
from mergeyard.ports.sharing import SharedStore
from mergeyard.ports.store import Relieved, StoredQueue, StoreTrouble
from mergeyard.service.background import Background
from mergeyard.service.duties import Duties
from mergeyard.service.errors import Refused
from mergeyard.service.news import NewsRoom
from mergeyard.service.others import CommitHeard, DutiesFree, Others, PullHeard, QueueSaved, StatusKept, read
from mergeyard.service.statuses import Statuses
from mergeyard.service.turn import Keeper
from mergeyard.service.yard import Yard

log = structlog.get_logger()

LOOK_EVERY = 2000


class Hearing:
    def __init__(
        self,
        shared: SharedStore,
        yard: Yard,
        duties: Duties,
        others: Others,
        statuses: Statuses,
        news: NewsRoom,
        background: Background,
    ) -> None:
        self._shared = shared
        self._yard = yard
        self._duties = duties
        self._others = others
        self._statuses = statuses
        self._news = news
        self._background = background
        self._find_work: Callable[[], Awaitable[None]] | None = None
        self._finding: asyncio.Task[None] | None = None

    async def start(self, find_work: Callable[[], Awaitable[None]] | None) -> None:
        """One that wants no work does not look for any."""
        self._find_work = find_work
        await self._shared.listen(self._hear, self.look_at_all)
        self._background.go_on("hearing", self.look_at_all, LOOK_EVERY)

    def _hear(self, text: str) -> None:
        try:
            word = read(text)
        except MsgspecError:
            return  # of a newer version, whose replicas find their own way to tell us
        match word:
            case QueueSaved():
                self._others.heard(word)
                self._background.start(self._hear_of_queue(word))
            case StatusKept():
                self._statuses.hear(word.repo, word.sha)
            case PullHeard():
                if self._duties.covers(word.repo):
                    self._news.look_into([PullNews(word.repo, word.number)])
            case CommitHeard():
                if self._duties.covers(word.repo):
                    self._news.look_into([CommitNews(word.repo, word.sha)])
            case DutiesFree():
                self._look_for_work()
            case _:
                assert_never(word)

    def _look_for_work(self) -> None:
        if self._find_work is not None and (self._finding is None or self._finding.done()):
            self._finding = self._background.start(_quietly(self._find_work))

    async def _hear_of_queue(self, saved: QueueSaved) -> None:
        known = self._yard.of_id(saved.queue)
        if not self._is_followed(saved.repo, known):
            return
        if known is not None:
            await self._follow(StoredQueue(known.id, known.key, saved.version))
            return
        for stored in await self._shared.newer([(saved.queue, 0)]):
            await self._follow(stored)

    async def look_at_all(self) -> None:
        """What is on duty, and what somebody here waits for."""
        replica = self._duties.replica
        known = [keeper for keeper in self._yard if self._duties.covers(keeper.key.repo)]
        stored = await self._shared.on_duty(replica)
        if self._duties.replica != replica:
            return
        self._yard.let_go_of_gone((keeper for keeper in known if self._duties.covers(keeper.key.repo)), stored)
        awaited = [(keeper.id, keeper.version) for keeper in self._yard if keeper.awaited]
        for queue in (*stored, *(await self._shared.newer(awaited) if awaited else ())):
            if self._has_something_new(queue):
                self._background.start(self._follow(queue))
        self._statuses.look_again()

    def _is_followed(self, repo: Repo, known: Keeper | None) -> bool:
        """On duty, or if somebody here waits for something to happen; others look when they are asked."""
        return self._duties.covers(repo) or (known is not None and known.awaited)

    def _has_something_new(self, stored: StoredQueue) -> bool:
        known = self._yard.of_id(stored.id)
        if not self._is_followed(stored.key.repo, known):
            return False
        return known is None or known.version < stored.version or self._asks_for_a_turn(known)

    def _asks_for_a_turn(self, keeper: Keeper) -> bool:
        """Somebody may have brought it up to date without asking the engine what follows."""
        return keeper.considered < keeper.version or any(_looks_asked_for(keeper.queue))

    async def _follow(self, stored: StoredQueue) -> None:
        known = self._yard.of_id(stored.id)
        try:
            keeper = await self._yard.bring(stored)
            if not self._duties.covers(keeper.key.repo):
                return
            if known is None:
                await keeper.wake()
            elif self._asks_for_a_turn(keeper):
                await self._go_on(keeper)
        except (Refused, Relieved):
            return
        except StoreTrouble as trouble:
            log.warning("a queue cannot be followed", queue=str(stored.key), words=str(trouble))

    async def _go_on(self, keeper: Keeper) -> None:
        proof = self._duties.proof(keeper.key.repo)
        await keeper.tell_on_duty(*_looks_asked_for(keeper.queue), proof=proof)


def _looks_asked_for(queue: Queue) -> Iterator[PullTouched]:
    """Who asked for a look through another replica is known by what nobody knows yet."""
    for _, ticket in queue.not_ready:
        stay = queue.submissions[ticket]
        if stay.pull.mergeability is Mergeability.CHECKING and ticket not in queue.looks:
            yield PullTouched(number=stay.number)


async def _quietly(find_work: Callable[[], Awaitable[None]]) -> None:
    try:
        await find_work()
    except StoreTrouble as trouble:
        log.warning("no work can be taken up", words=str(trouble))
