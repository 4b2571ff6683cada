"""Takes turns: everything that happened to a queue since the last turn is decided at once and saved at once.

Requests that arrive while a turn is being saved wait for the next one and share it. What a turn decided is seen by
nobody before it is saved, so that an answer, once given, survives a crash.
"""

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NoReturn

import structlog
from msgspec import Struct

from mergeyard.domain.decision import Decision
from mergeyard.domain.events import Event
from mergeyard.domain.ids import QueueId
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Refusal
from mergeyard.domain.repositories import QueueKey
from mergeyard.engine.decide import decide
from mergeyard.ports.clock import Clock
from mergeyard.ports.store import AppendEntries, Outrun, Store, StoreTrouble, Write
from mergeyard.service import journaling, shelving
from mergeyard.service.alarm import Alarm
from mergeyard.service.errors import Code, Refused
from mergeyard.service.measuring import EVENTS, TURNS
from mergeyard.service.repeating import Repeat

log = structlog.get_logger()

Render = Callable[[Decision], bytes]
Consider = Callable[[Queue], Sequence[Event]]
"""Reads the queue as it is when its turn comes, and says what to tell it, or raises."""
Listener = Callable[["Keeper", Queue | None], None]
"""Is told of every turn, with the queue as it was before; None: it has not been told of this queue yet."""


class Rejected(Exception):
    """The engine refused a request; nothing of it was written."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


class Asked(Struct, eq=False):
    """What somebody tells the queue, what is to be written along with it, and who waits for the outcome."""

    events: Sequence[Event] | Consider
    writes: tuple[Write, ...]
    render: Render
    repeat: Repeat | None
    outcome: asyncio.Future[bytes]


class Keeper:
    """Keeps one queue, and is the only one to change it."""

    def __init__(self, key: QueueKey, queue: Queue, version: int, store: Store, clock: Clock) -> None:
        self.key = key
        self.queue = queue
        self.listeners: list[Listener] = []
        self._version = version
        self._store = store
        self._clock = clock
        self._inbox: list[Asked] = []
        self._turning: asyncio.Task[None] | None = None
        self._waiters: list[tuple[Callable[[Queue], bool], asyncio.Future[None]]] = []
        self._alarm = Alarm(clock, self.tell)
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def id(self) -> QueueId:
        return self.queue.id

    async def tell(
        self,
        *events: Event,
        writes: tuple[Write, ...] = (),
        render: Render = lambda _: b"",
        repeat: Repeat | None = None,
    ) -> bytes:
        """Gives the answer as it was rendered, once the turn is saved."""
        return await self._ask(events, writes, render, repeat)

    async def tell_considering(self, consider: Consider, render: Render, repeat: Repeat | None) -> bytes:
        """For a change that depends on what is there: it gets a turn of its own, so that nobody comes in between."""
        return await self._ask(consider, (), render, repeat)

    async def until(self, settled: Callable[[Queue], bool]) -> None:
        """Waits for the first saved queue of which this is true."""
        if not settled(self.queue):
            reached = asyncio.get_running_loop().create_future()
            self._waiters.append((settled, reached))
            await reached

    async def wake(self) -> None:
        """Asks the engine whether there is anything to do, and tells everybody of this queue, as after a restart."""
        await self.tell()
        self._announce(None)

    async def retire(self, *writes: Write) -> None:
        """Ends an empty queue: no turn is taken after this one."""
        await self.rest()
        if self._closed:
            self._refuse_as_gone()
        if len(self.queue.submissions):
            count = len(self.queue.submissions)
            words = f"The queue for {self.key} holds {count} pull request{'s' if count > 1 else ''}"
            raise Refused(Code.QUEUE_NOT_EMPTY, f"{words}: cancel them or let them merge first.")
        self._closed = True
        try:
            await self._store.commit(*writes)
        except BaseException:
            self._closed = False
            raise
        self.close()

    async def rest(self) -> None:
        """Until no turn is being taken."""
        while self._turning is not None:
            await asyncio.shield(self._turning)

    def close(self) -> None:
        self._closed = True
        self._alarm.stop()

    async def _ask(
        self,
        events: Sequence[Event] | Consider,
        writes: tuple[Write, ...],
        render: Render,
        repeat: Repeat | None,
    ) -> bytes:
        if self._closed:
            self._refuse_as_gone()
        outcome = asyncio.get_running_loop().create_future()
        self._inbox.append(Asked(events, writes, render, repeat, outcome))
        if self._turning is None:
            self._turning = asyncio.create_task(self._take_turns())
        return await outcome

    def _refuse_as_gone(self) -> NoReturn:
        raise Refused(Code.QUEUE_NOT_FOUND, f"There is no queue for {self.key}.")

    async def _take_turns(self) -> None:
        while self._inbox:
            together = _how_many_may_share(self._inbox)
            asked, self._inbox = self._inbox[:together], self._inbox[together:]
            await self._take_turn(asked)
        self._turning = None

    async def _take_turn(self, asked: list[Asked]) -> None:
        """When something goes wrong, nothing was saved: each request is tried alone, and only the guilty one fails."""
        before = self.queue
        try:
            decision = await self._decide_and_save(asked)
        except Exception as error:
            if len(asked) > 1:
                for one in asked:
                    await self._take_turn([one])
            elif not isinstance(error, Outrun) or not await self._reloaded():
                _fail(asked[0], error)
            else:
                await self._take_turn(asked)
        else:
            self._alarm.set(decision.wake_at)
            self._release_waiters()
            self._announce(before)

    async def _decide_and_save(self, asked: list[Asked]) -> Decision:
        before, now, begun = self.queue, self._clock.now(), perf_counter()
        told = [one.events(before) if callable(one.events) else one.events for one in asked]
        decision = decide(before, [event for events in told for event in events], now)
        carried, rejected = _sort_out(asked, told, decision)
        answers = [one.render(decision) for one in carried]
        writes = [write for one in carried for write in one.writes]
        for one, answer in zip(carried, answers, strict=True):
            if one.repeat is not None:
                writes.append(one.repeat.kept(answer, now))
        if decision.queue is not before:
            writes += self._changes(before, decision)
        if writes:
            await self._store.commit(*writes)
        if decision.queue is not before:
            self._version += 1
            self.queue = decision.queue
        for one, refusal in rejected:
            _fail(one, Rejected(refusal))
        for one, answer in zip(carried, answers, strict=True):
            if not one.outcome.done():
                one.outcome.set_result(answer)
        EVENTS.inc(sum(map(len, told)))
        TURNS.observe(perf_counter() - begun)
        return decision

    def _changes(self, before: Queue, decision: Decision) -> list[Write]:
        turn = shelving.changes(before, decision.queue, self._version + 1, decision.concluded, decision.finished)
        journal = journaling.entries(before, decision)
        return [turn, AppendEntries(journal)] if journal else [turn]

    def _release_waiters(self) -> None:
        for waiter in tuple(self._waiters):
            settled, reached = waiter
            if reached.done() or settled(self.queue):
                self._waiters.remove(waiter)
                if not reached.done():
                    reached.set_result(None)

    def _announce(self, before: Queue | None) -> None:
        for listen in self.listeners:
            try:
                listen(self, before)
            except Exception as error:
                log.error("nobody was told of a turn", queue=str(self.key), exc_info=error)

    async def _reloaded(self) -> bool:
        try:
            loaded = await self._store.load(self.id)
        except (StoreTrouble, LookupError):
            return False
        self.queue, self._version = shelving.restore(loaded), loaded.version
        return True


def _how_many_may_share(inbox: Sequence[Asked]) -> int:
    alone = next((at for at, one in enumerate(inbox) if callable(one.events)), len(inbox))
    return max(1, alone)


def _sort_out(
    asked: Sequence[Asked], told: Sequence[Sequence[Event]], decision: Decision
) -> tuple[list[Asked], list[tuple[Asked, Refusal]]]:
    """Whose requests were carried out, and whose were refused."""
    carried, rejected, place = list[Asked](), list[tuple[Asked, Refusal]](), 0
    for one, events in zip(asked, told, strict=True):
        refusals = [decision.refusals[at] for at in range(place, place + len(events)) if at in decision.refusals]
        place += len(events)
        if refusals:
            rejected.append((one, refusals[0]))
        else:
            carried.append(one)
    return carried, rejected


def _fail(asked: Asked, error: Exception) -> None:
    if not asked.outcome.done():
        asked.outcome.set_exception(error)
