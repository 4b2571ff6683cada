"""Everything is told in order and at least once, by one at a time, and nobody is asked for nothing."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import Instant, later
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.ports.host import HostTrouble
from mergeyard.ports.sharing import Duty
from mergeyard.ports.store import Relieved, StoredEntry, StoreTrouble
from mergeyard.ports.writes import AppendEntries, DeleteQueue, MoveCursor, Write
from mergeyard.service.background import Background
from mergeyard.service.duties import Duties
from mergeyard.service.telling.following import USUAL, Halfway, Pace
from mergeyard.service.telling.tellers import Tellers
from mergeyard.service.turn import Keeper
from tests.contract.store.given import MAIN, NEXT, OTHER, QUEUE, a_queue, an_entry
from tests.support.asynchronous import asynchronous
from tests.support.clock import HandClock
from tests.support.troubled_store import TroubledStore

HOUR = 3_600_000
AT_A_TIME, LONGEST_WAIT = USUAL.at_a_time, USUAL.longest_wait


class WatchedStore(TroubledStore):
    """Knows how often a journal was read, cannot be read now and then, and may have lost its duty."""

    reads = 0
    unreadable = 0
    """How many of the next readings fail."""
    relieved = False

    async def entries(self, queue: QueueId, after: int, take: int) -> Sequence[StoredEntry]:
        self.reads += 1
        if self.unreadable:
            self.unreadable -= 1
            raise StoreTrouble("the disk cannot be read")
        return await super().entries(queue, after, take)

    async def commit(self, *writes: Write) -> None:
        if self.relieved and any(isinstance(write, MoveCursor) for write in writes):
            raise Relieved("somebody else works for it")
        await super().commit(*writes)


class Crier:
    """Tells a list, unless it is hoarse."""

    def __init__(self, name: str = "crier") -> None:
        self.name = name
        self.told = list[str]()
        self.batches = list[int]()
        self.troubles: Sequence[Exception] = ()
        self.attempts = 0
        self.busy = 0

    async def tell(self, key: QueueKey, queue: QueueId, entries: Sequence[StoredEntry]) -> None:  # noqa: ARG002
        self.busy += 1
        assert self.busy == 1, "two tell at once"
        await asyncio.sleep(0)
        self.busy -= 1
        self.attempts += 1
        if self.troubles:
            first, *self.troubles = self.troubles
            raise first
        self.batches.append(len(entries))
        self.told += [f"{queue} {entry.body.decode()}" for entry in entries]


class Square:
    """Where criers stand: a store with a journal, and keepers who announce what happens."""

    def __init__(self, folder: Path) -> None:
        self.store = WatchedStore(folder / "mergeyard.db")
        self.begin_anew()

    def begin_anew(self) -> None:
        self.clock = HandClock()
        self.background = Background(self.clock)
        self.duties = Duties(self.clock)
        self.tellers = Tellers(self.store, self.clock, self.background, self.duties)
        self.keepers = {QUEUE: self._keeper(QUEUE, MAIN), OTHER: self._keeper(OTHER, NEXT)}

    def _keeper(self, queue: QueueId, key: QueueKey) -> Keeper:
        return Keeper(key, Queue(id=queue, target=TargetBranch(name=key.branch)), 1, self.store, self.clock)

    async def write(self, *words: str, queue: QueueId = QUEUE) -> None:
        await self.store.commit(AppendEntries(tuple(an_entry(word, queue=queue) for word in words)))

    async def happens(self, *words: str, queue: QueueId = QUEUE) -> None:
        await self.write(*words, queue=queue)
        self.announce(queue)
        await self.rest()

    def announce(self, queue: QueueId = QUEUE) -> None:
        self.tellers.follow(self.keepers[queue], None)

    async def begins(self, crier: Crier) -> None:
        await self.tellers.begin(crier)
        await self.rest()

    async def time_passes(self, milliseconds: int) -> None:
        end = later(self.clock.now(), milliseconds)
        while (alarm := self.clock.next_alarm()) is not None and alarm <= end:
            self.clock.move_to(alarm)
            await self.rest()
        self.clock.move_to(end)

    async def rest(self) -> None:
        """Until everybody sleeps, or is done."""
        while busy := asyncio.all_tasks() - self.clock.asleep - {asyncio.current_task()}:
            await asyncio.wait(busy, timeout=0.01, return_when=asyncio.FIRST_COMPLETED)


@asynccontextmanager
async def a_square(folder: Path) -> AsyncGenerator[Square]:
    square = Square(folder)
    await square.store.open()
    await square.store.commit(a_queue(), a_queue(OTHER, key=NEXT))
    try:
        yield square
    finally:
        await square.background.close()
        await square.store.close()


@asynchronous
async def test_what_happens_is_told_in_order_queue_by_queue(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        await square.happens("one", "two")
        await square.happens("three", queue=OTHER)
        await square.happens("four")
        assert crier.told == ["q1 one", "q1 two", "q2 three", "q1 four"]


@asynchronous
async def test_the_past_is_not_told(tmp_path: Path):
    async with a_square(tmp_path) as square:
        await square.write("long ago")
        crier = Crier()
        await square.begins(crier)
        await square.happens("now")
        assert crier.told == ["q1 now"]


@asynchronous
async def test_many_entries_are_told_some_at_a_time(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        await square.happens(*(f"{count}" for count in range(2 * AT_A_TIME + 5)))
        assert crier.batches == [AT_A_TIME, AT_A_TIME, 5]
        assert crier.told == [f"q1 {count}" for count in range(2 * AT_A_TIME + 5)]


@asynchronous
async def test_what_cannot_be_told_now_is_tried_again_before_anything_behind_it(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        crier.troubles = [HostTrouble("gone"), ValueError("a mistake of ours"), HostTrouble("still gone")]
        await square.happens("one")
        await square.happens("two")
        await square.happens("three", queue=OTHER)
        assert crier.told == []
        await square.time_passes(10_000)
        assert sorted(crier.told) == ["q1 one", "q1 two", "q2 three"]
        assert crier.told.index("q1 one") < crier.told.index("q1 two")


@asynchronous
async def test_trouble_is_met_with_patience_that_has_an_end(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        crier.troubles = [HostTrouble("gone")] * 1000
        await square.happens("one")
        await square.time_passes(4 * HOUR)
        assert 4 * HOUR / LONGEST_WAIT < crier.attempts < 3 * 4 * HOUR / LONGEST_WAIT


@asynchronous
async def test_what_was_told_halfway_is_not_told_again(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        await square.write("one", "two", "three")
        second = (await square.store.entries(QUEUE, 0, 9))[1].seq
        crier.troubles = [Halfway(second, "hoarse"), Halfway(None, "hoarse still")]
        square.announce()
        await square.rest()
        assert await square.store.cursor("crier", QUEUE) == second
        await square.time_passes(10_000)
        assert crier.told == ["q1 three"]


@asynchronous
async def test_one_that_is_stuck_does_not_keep_the_others_waiting(tmp_path: Path):
    async with a_square(tmp_path) as square:
        hoarse, clear = Crier("hoarse"), Crier("clear")
        await square.begins(hoarse)
        await square.begins(clear)
        hoarse.troubles = [HostTrouble("gone")]
        await square.happens("one")
        assert (hoarse.told, clear.told) == ([], ["q1 one"])


@asynchronous
async def test_a_crash_before_the_place_is_stored_tells_once_more_and_loses_nothing(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        await square.happens("one")
        await square.write("two")
        square.store.failures = 1
        square.announce()
        await square.rest()
        await square.background.close()
        square.begin_anew()
        await square.begins(crier)
        assert crier.told == ["q1 one", "q1 two", "q1 two"]


@asynchronous
async def test_after_a_restart_it_goes_on_where_it_stopped(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        await square.happens("one")
        await square.background.close()
        await square.write("while nobody was there")
        square.begin_anew()
        await square.begins(crier)
        assert crier.told == ["q1 one", "q1 while nobody was there"]


@asynchronous
async def test_the_journal_is_read_when_something_happened_and_not_else(tmp_path: Path):
    async with a_square(tmp_path) as square:
        await square.begins(Crier())
        await square.happens("one")
        read = square.store.reads
        keeper = square.keepers[QUEUE]
        square.tellers.follow(keeper, keeper.queue)
        await square.tellers.remind()
        await square.time_passes(24 * HOUR)
        assert square.store.reads == read


@asynchronous
async def test_who_does_not_heed_a_turn_is_reminded_of_it(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.tellers.begin(crier, Pace(heeds=lambda _before, _now: False))
        await square.rest()
        await square.happens("one")
        assert crier.told == []
        await square.tellers.remind()
        await square.rest()
        assert crier.told == ["q1 one"]


@asynchronous
async def test_what_happens_while_it_reads_is_not_missed(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        for count in range(50):
            square.announce()
            await square.write(f"{count}")
            square.announce()
        await square.rest()
        assert crier.told == [f"q1 {count}" for count in range(50)]


@asynchronous
async def test_the_last_words_of_a_deleted_queue_are_told(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        await square.store.commit(DeleteQueue(QUEUE, 0, Instant(2)), AppendEntries((an_entry("deleted"),)))
        square.keepers[QUEUE].close()
        square.tellers.leave(square.keepers[QUEUE])
        await square.rest()
        assert crier.told == ["q1 deleted"]


@asynchronous
async def test_last_words_are_told_even_if_somebody_died_over_them(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        await square.store.commit(DeleteQueue(QUEUE, 0, Instant(2)), AppendEntries((an_entry("deleted"),)))
        await square.tellers.remind()
        await square.rest()
        assert crier.told == ["q1 deleted"]


@asynchronous
async def test_who_is_not_on_duty_tells_nothing(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        square.duties.share("one")
        await square.happens("one")
        await square.tellers.remind()
        await square.rest()
        assert crier.told == []


@asynchronous
async def test_who_is_relieved_stops_and_leaves_the_rest_to_the_other(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        square.duties.share("one")
        square.duties.last_until(later(square.clock.now(), HOUR))
        square.duties.set([Duty(MAIN.repo, 1)], lambda _: ())
        square.store.relieved = True
        await square.happens("one")
        await square.time_passes(HOUR)
        assert crier.told == ["q1 one"]
        assert await square.store.cursor("crier", QUEUE) == 0


@asynchronous
async def test_who_leaves_a_queue_stops_trying(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        crier.troubles = [HostTrouble("gone")] * 99
        await square.happens("one")
        square.tellers.leave(square.keepers[QUEUE])
        await square.rest()
        await square.time_passes(HOUR)
        assert crier.attempts == 1


@asynchronous
async def test_one_that_was_dropped_tells_no_more(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        await square.begins(crier)
        square.tellers.drop("crier")
        await square.happens("one")
        assert crier.told == []


@asynchronous
async def test_trouble_of_the_store_is_waited_out(tmp_path: Path):
    async with a_square(tmp_path) as square:
        crier = Crier()
        square.store.failures = 1
        beginning = asyncio.create_task(square.tellers.begin(crier))
        await square.rest()
        await square.time_passes(10_000)
        await beginning
        square.store.unreadable = 2
        await square.happens("one")
        await square.time_passes(10_000)
        assert crier.told == ["q1 one"]
