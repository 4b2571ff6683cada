"""Takes turns: everything that happened to a queue since the last turn is decided at once and saved at once.

Requests that arrive while a turn is being saved wait for the next one and share it. What a turn decided is seen by
nobody before it is saved, so that an answer, once given, survives a crash.
"""

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NoReturn

import structlog

from mergeyard.domain.decision import Decision
from mergeyard.domain.events import Event, WatchBegan
from mergeyard.domain.ids import PrNumber, QueueId
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Refusal
from mergeyard.domain.repositories import QueueKey
from mergeyard.engine.decide import decide
from mergeyard.ports.clock import Clock
from mergeyard.ports.foretelling import NOTHING_FORETOLD
from mergeyard.ports.store import Outrun, Store, StoreTrouble
from mergeyard.ports.writes import AppendEntries, DeleteQueue, Write
from mergeyard.service import journaling, restoring, shelving
from mergeyard.service.arrivals import Arrivals
from mergeyard.service.asked import (
    Asked,
    Consider,
    Render,
    asked_for,
    fail,
    how_many_may_share,
    new_outcome,
    sorted_out,
    succeed,
)
from mergeyard.service.errors import Code, Refused
from mergeyard.service.measuring import EVENTS, OUTRUN, TURNS
from mergeyard.service.repeating import Repeat
from mergeyard.service.written_targets import WrittenTargets

log = structlog.get_logger()

Listener = Callable[["Keeper", Queue | None], None]
"""Is told of every turn, with the queue as it was before; None: it has not been told of this queue yet."""


class Rejected(Exception):
    """The engine refused a request; nothing of it was written."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


class Keeper:
    """Keeps one queue, and is the only one to change it."""

    def __init__(self, key: QueueKey, queue: Queue, version: int, store: Store, clock: Clock) -> None:
        self.key = key
        self.queue = queue
        self.version = version
        self.considered = 0
        """The version upon which the engine was last asked here; what others saved since may ask for something."""
        self.wake_at: Instant | None = None
        """When the engine wants to be asked again, even if nothing happens until then."""
        self.forecast = NOTHING_FORETOLD
        """When those in it are expected to merge, as was last foretold, if anybody foretells."""
        self.listeners: list[Listener] = []
        self.arrivals = Arrivals()
        self._store = store
        self._clock = clock
        self._inbox: list[Asked] = []
        self._turning: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._waiters: dict[asyncio.Future[None], Callable[[Queue], bool]] = {}
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def id(self) -> QueueId:
        return self.queue.id

    @property
    def awaited(self) -> bool:
        """Whether anybody waits for something to happen to this queue."""
        return bool(self._waiters)

    def has_other_runs_than(self, before: Queue | None) -> bool:
        return before is None or before.runs is not self.queue.runs

    def is_concerned(self, number: PrNumber) -> bool:
        """Whether news of a pull request is news for this queue. Of one on its way here it is noted, for when it is."""
        if self.queue.submission_of(number) is not None:
            return True
        self.arrivals.touch(number)
        return False

    async def tell(
        self,
        *events: Event,
        writes: tuple[Write, ...] = (),
        render: Render = lambda _: b"",
        repeat: Repeat | None = None,
        at_hand: WrittenTargets | None = None,
    ) -> bytes:
        """Gives the answer as it was rendered, once the turn is saved."""
        return await self._ask(Asked(events, new_outcome(), writes, render, repeat, at_hand=at_hand))

    async def tell_on_duty(self, *events: Event, proof: tuple[Write, ...]) -> None:
        """What follows from it is saved only if the proof holds then."""
        await self._ask(Asked(events, new_outcome(), proof=proof))

    async def tell_considering(self, consider: Consider, render: Render, repeat: Repeat | None) -> bytes:
        """For a change that depends on what is there: it gets a turn of its own, so that nobody comes in between."""
        return await self._ask(Asked(consider, new_outcome(), render=render, repeat=repeat))

    async def until(self, settled: Callable[[Queue], bool]) -> None:
        """Waits for the first saved queue of which this is true."""
        if not settled(self.queue):
            reached = asyncio.get_running_loop().create_future()
            self._waiters[reached] = settled
            try:
                await reached
            finally:
                del self._waiters[reached]

    async def wake(self) -> None:
        """Somebody begins to work for it, as after a restart: everybody is told of this queue."""
        await self.tell(WatchBegan())
        self._announce(None)

    async def catch_up(self, version: int) -> None:
        """What other replicas did up to this version, or later, is taken over, and told like a turn of our own."""
        before = self.queue
        async with self._changing:
            if self.version < version:
                await self._reload()
        if self.queue is not before:
            self._spread(before)

    async def retire(self, at: Instant, *writes: Write) -> None:
        """Ends an empty queue: no turn is taken after this one."""
        while True:
            await self.rest()
            self._refuse_unless_empty()
            self._closed = True
            try:
                return await self._store.commit(DeleteQueue(self.id, self.version, at), *writes)
            except Outrun:
                self._closed = False
                await self.catch_up(self.version + 1)
            except BaseException:
                self._closed = False
                raise

    async def rest(self) -> None:
        """Until no turn is being taken."""
        while self._turning is not None:
            await asyncio.shield(self._turning)

    def close(self) -> None:
        """Whoever waits for something to happen waits no longer."""
        self._closed = True
        for reached in self._waiters:
            if not reached.done():
                reached.set_result(None)

    async def _ask(self, asked: Asked) -> bytes:
        if self._closed:
            self._refuse_as_gone()
        self._inbox.append(asked)
        if self._turning is None:
            self._turning = asyncio.create_task(self._take_turns())
        return await asked.outcome

    def _refuse_unless_empty(self) -> None:
        if self._closed:
            self._refuse_as_gone()
        if count := len(self.queue.submissions):
            words = f"The queue for {self.key} holds {count} pull request{'s' if count > 1 else ''}"
            raise Refused(Code.QUEUE_NOT_EMPTY, f"{words}: cancel them or let them merge first.")

    def _refuse_as_gone(self) -> NoReturn:
        raise Refused(Code.QUEUE_NOT_FOUND, f"There is no queue for {self.key}.")

    async def _take_turns(self) -> None:
        while self._inbox:
            together = how_many_may_share(self._inbox)
            asked, self._inbox = self._inbox[:together], self._inbox[together:]
            await self._take_turn(asked)
        self._turning = None

    async def _take_turn(self, asked: list[Asked]) -> None:
        """When something goes wrong, nothing was saved: each request is tried alone, and only the guilty one fails.
        Where the store is in trouble all of them are told at once, so that none waits for the others' attempts."""
        before = self.queue
        try:
            async with self._changing:
                await self._decide_and_save(asked)
        except Exception as error:
            if self.queue is not before:
                self._spread(before)
            alone = len(asked) == 1 or isinstance(error, StoreTrouble)
            for one in asked:
                fail(one, error) if alone else await self._take_turn([one])
        else:
            self._spread(before)

    async def _decide_and_save(self, asked: list[Asked]) -> None:
        """Whoever was outrun by another replica has done nothing yet: it decides again on what is there now."""
        while True:
            try:
                return await self._try_to_save(asked)
            except Outrun:
                OUTRUN.inc()
                await self._reload()

    async def _try_to_save(self, asked: list[Asked]) -> None:
        before, now, begun = self.queue, self._clock.now(), perf_counter()
        told = [one.events(before) if callable(one.events) else one.events for one in asked]
        decision = decide(before, [event for events in told for event in events], now)
        carried, rejected = sorted_out(asked, told, decision)
        answers = [one.render(decision) for one in carried]
        writes = [*asked_for(carried, answers, now), *self._changes(before, decision, carried, now)]
        if writes:
            await self._store.commit(*{proof: None for one in carried for proof in one.proof}, *writes)
        if decision.queue is not before:
            self.version += 1
            self.queue = decision.queue
        self.considered, self.wake_at = self.version, decision.wake_at
        for one, refusal in rejected:
            fail(one, Rejected(refusal))
        for one, answer in zip(carried, answers, strict=True):
            succeed(one, answer)
        EVENTS.inc(sum(map(len, told)))
        TURNS.observe(perf_counter() - begun)

    def _changes(self, before: Queue, decision: Decision, carried: Sequence[Asked], now: Instant) -> list[Write]:
        if decision.queue is before:
            return []
        version, at_hand = self.version + 1, [one.at_hand for one in carried if one.at_hand is not None]
        turn = shelving.changes(before, decision.queue, version, decision.concluded, decision.finished, now, at_hand)
        journal = journaling.entries(before, decision)
        return [turn, AppendEntries(journal)] if journal else [turn]

    def _spread(self, before: Queue) -> None:
        self._release_waiters()
        self._announce(before)

    def _release_waiters(self) -> None:
        for reached, settled in self._waiters.items():
            if not reached.done() and settled(self.queue):
                reached.set_result(None)

    def _announce(self, before: Queue | None) -> None:
        for listen in self.listeners:
            try:
                listen(self, before)
            except Exception as error:
                log.error("nobody was told of a turn", queue=str(self.key), exc_info=error)

    async def _reload(self) -> None:
        changes = await self._store.changes(self.id, self.version)
        if changes is not None:
            self.queue, self.version = restoring.catch_up(self.queue, changes), changes.version
            return
        try:
            loaded = await self._store.load(self.id)
        except LookupError:
            self.close()
            self._refuse_as_gone()
        self.queue, self.version = restoring.begin_anew(loaded), loaded.version
