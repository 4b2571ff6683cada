"""Journal consumers: entries are delivered in order, at least once, and by one delivery at a time."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.domain.queue import Queue, TargetBranch
from mergeyard.domain.timestamps import Instant, later
from mergeyard.ports.forge import HostUnavailable, RateLimited
from mergeyard.ports.store import Lease, LeaseLost, StoredEntry, StoreUnavailable
from mergeyard.ports.writes import AppendEntries, DeleteQueue, MoveCursor, Write
from mergeyard.service.background import Background
from mergeyard.service.leases import Leases
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.webhooks.journal_consumers import (
    DEFAULT_CONSUMER_OPTIONS,
    ConsumerOptions,
    JournalConsumers,
    PartiallyDelivered,
)
from tests.contract.store.builders import MAIN, NEXT, OTHER, QUEUE, a_queue, an_entry
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.faulty_store import FaultyStore

HOUR = 3_600_000
BATCH_SIZE, MAX_RETRY_DELAY_MS = DEFAULT_CONSUMER_OPTIONS.batch_size, DEFAULT_CONSUMER_OPTIONS.max_retry_delay_ms


class WatchedStore(FaultyStore):
    """Counts reads of the journal; reads can fail, and the lease can be lost."""

    reads = 0
    unreadable = 0
    """How many of the next reads fail."""
    lease_lost = False

    async def entries(self, queue: QueueId, after: int, take: int) -> Sequence[StoredEntry]:
        self.reads += 1
        if self.unreadable:
            self.unreadable -= 1
            raise StoreUnavailable("the disk cannot be read")
        return await super().entries(queue, after, take)

    async def commit(self, *writes: Write) -> None:
        if self.lease_lost and any(isinstance(write, MoveCursor) for write in writes):
            raise LeaseLost("another replica holds the lease")
        await super().commit(*writes)


class RecordingConsumer:
    """Collects entries in a list, unless it raises one of `errors`."""

    def __init__(self, name: str = "consumer") -> None:
        self.name = name
        self.delivered = list[str]()
        self.batches = list[int]()
        self.errors: Sequence[Exception] = ()
        self.attempts = 0
        self.busy = 0

    async def consume(self, key: QueueKey, queue: QueueId, entries: Sequence[StoredEntry]) -> None:  # noqa: ARG002
        self.busy += 1
        assert self.busy == 1, "two deliveries at the same time"
        await asyncio.sleep(0)
        self.busy -= 1
        self.attempts += 1
        if self.errors:
            first, *self.errors = self.errors
            raise first
        self.batches.append(len(entries))
        self.delivered += [f"{queue} {entry.body.decode()}" for entry in entries]


class ConsumerFixture:
    """A store with a journal, and the queue actors that notify the consumers."""

    def __init__(self, folder: Path) -> None:
        self.store = WatchedStore(folder / "mergeyard.db")
        self.restart()

    def restart(self) -> None:
        self.clock = ManualClock()
        self.background = Background(self.clock)
        self.leases = Leases(self.clock)
        self.consumers = JournalConsumers(self.store, self.clock, self.background, self.leases)
        self.actors = {QUEUE: self._create_actor(QUEUE, MAIN), OTHER: self._create_actor(OTHER, NEXT)}

    def _create_actor(self, queue: QueueId, key: QueueKey) -> QueueActor:
        return QueueActor(key, Queue(id=queue, target_branch=TargetBranch(name=key.branch)), 1, self.store, self.clock)

    async def write(self, *bodies: str, queue: QueueId = QUEUE) -> None:
        await self.store.commit(AppendEntries(tuple(an_entry(body, queue=queue) for body in bodies)))

    async def write_and_notify(self, *bodies: str, queue: QueueId = QUEUE) -> None:
        await self.write(*bodies, queue=queue)
        self.notify(queue)
        await self.wait_until_idle()

    def notify(self, queue: QueueId = QUEUE) -> None:
        self.consumers.on_change(self.actors[queue], None)

    async def start(self, consumer: RecordingConsumer) -> None:
        await self.consumers.start_at_end(consumer)
        await self.wait_until_idle()

    async def advance_time(self, milliseconds: int) -> None:
        end = later(self.clock.now(), milliseconds)
        while (next_wakeup := self.clock.next_wakeup()) is not None and next_wakeup <= end:
            self.clock.move_to(next_wakeup)
            await self.wait_until_idle()
        self.clock.move_to(end)

    async def wait_until_idle(self) -> None:
        """Until every task sleeps or is done."""
        while busy := asyncio.all_tasks() - self.clock.sleeping_tasks - {asyncio.current_task()}:
            await asyncio.wait(busy, timeout=0.01, return_when=asyncio.FIRST_COMPLETED)


@asynccontextmanager
async def open_fixture(folder: Path) -> AsyncGenerator[ConsumerFixture]:
    fixture = ConsumerFixture(folder)
    await fixture.store.open()
    await fixture.store.commit(a_queue(), a_queue(OTHER, key=NEXT))
    try:
        yield fixture
    finally:
        await fixture.background.close()
        await fixture.store.close()


@asynchronous
async def test_entries_are_delivered_in_order_for_each_queue(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        await fixture.write_and_notify("one", "two")
        await fixture.write_and_notify("three", queue=OTHER)
        await fixture.write_and_notify("four")
        assert consumer.delivered == ["q1 one", "q1 two", "q2 three", "q1 four"]


@asynchronous
async def test_entries_before_the_start_are_not_delivered(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        await fixture.write("before")
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        await fixture.write_and_notify("after")
        assert consumer.delivered == ["q1 after"]


@asynchronous
async def test_many_entries_are_delivered_in_batches(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        await fixture.write_and_notify(*(f"{count}" for count in range(2 * BATCH_SIZE + 5)))
        assert consumer.batches == [BATCH_SIZE, BATCH_SIZE, 5]
        assert consumer.delivered == [f"q1 {count}" for count in range(2 * BATCH_SIZE + 5)]


@asynchronous
async def test_a_failed_delivery_is_retried_before_later_entries(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        consumer.errors = [HostUnavailable("gone"), ValueError("a bug"), HostUnavailable("still gone")]
        await fixture.write_and_notify("one")
        await fixture.write_and_notify("two")
        await fixture.write_and_notify("three", queue=OTHER)
        assert consumer.delivered == []
        await fixture.advance_time(10_000)
        assert sorted(consumer.delivered) == ["q1 one", "q1 two", "q2 three"]
        assert consumer.delivered.index("q1 one") < consumer.delivered.index("q1 two")


@asynchronous
async def test_a_retry_waits_no_longer_than_the_limit_of_the_host(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        consumer.errors = [RateLimited("wait", Instant(10_000), Instant(0))] * 50
        await fixture.write_and_notify("one")
        await fixture.advance_time(50 * 10_000)
        assert consumer.delivered == ["q1 one"]


@asynchronous
async def test_the_retry_delay_is_limited(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        consumer.errors = [HostUnavailable("gone")] * 1000
        await fixture.write_and_notify("one")
        await fixture.advance_time(4 * HOUR)
        assert 4 * HOUR / MAX_RETRY_DELAY_MS < consumer.attempts < 3 * 4 * HOUR / MAX_RETRY_DELAY_MS


@asynchronous
async def test_a_partial_delivery_is_continued_after_the_last_delivered_entry(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        await fixture.write("one", "two", "three")
        second = (await fixture.store.entries(QUEUE, 0, 9))[1].seq
        consumer.errors = [PartiallyDelivered(second, "failing"), PartiallyDelivered(None, "still failing")]
        fixture.notify()
        await fixture.wait_until_idle()
        assert await fixture.store.cursor("consumer", QUEUE) == second
        await fixture.advance_time(10_000)
        assert consumer.delivered == ["q1 three"]


@asynchronous
async def test_a_failing_consumer_does_not_delay_the_others(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        failing, working = RecordingConsumer("failing"), RecordingConsumer("working")
        await fixture.start(failing)
        await fixture.start(working)
        failing.errors = [HostUnavailable("gone")]
        await fixture.write_and_notify("one")
        assert (failing.delivered, working.delivered) == ([], ["q1 one"])


@asynchronous
async def test_a_crash_before_the_cursor_is_stored_delivers_again_and_loses_nothing(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        await fixture.write_and_notify("one")
        await fixture.write("two")
        fixture.store.failing_commits = 1
        fixture.notify()
        await fixture.wait_until_idle()
        await fixture.background.close()
        fixture.restart()
        await fixture.start(consumer)
        assert consumer.delivered == ["q1 one", "q1 two", "q1 two"]


@asynchronous
async def test_after_a_restart_delivery_continues_at_the_cursor(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        await fixture.write_and_notify("one")
        await fixture.background.close()
        await fixture.write("during the downtime")
        fixture.restart()
        await fixture.start(consumer)
        assert consumer.delivered == ["q1 one", "q1 during the downtime"]


@asynchronous
async def test_the_journal_is_read_only_after_a_change(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        await fixture.start(RecordingConsumer())
        await fixture.write_and_notify("one")
        read = fixture.store.reads
        actor = fixture.actors[QUEUE]
        fixture.consumers.on_change(actor, actor.queue)
        await fixture.consumers.wake_lagging()
        await fixture.advance_time(24 * HOUR)
        assert fixture.store.reads == read


@asynchronous
async def test_a_consumer_that_was_not_woken_by_a_decision_is_woken_as_lagging(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.consumers.start_at_end(consumer, ConsumerOptions(is_woken_by=lambda _before, _now: False))
        await fixture.wait_until_idle()
        await fixture.write_and_notify("one")
        assert consumer.delivered == []
        await fixture.consumers.wake_lagging()
        await fixture.wait_until_idle()
        assert consumer.delivered == ["q1 one"]


@asynchronous
async def test_entries_written_while_a_consumer_reads_are_not_missed(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        for count in range(50):
            fixture.notify()
            await fixture.write(f"{count}")
            fixture.notify()
        await fixture.wait_until_idle()
        assert consumer.delivered == [f"q1 {count}" for count in range(50)]


@asynchronous
async def test_the_last_entries_of_a_deleted_queue_are_delivered(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        await fixture.store.commit(DeleteQueue(QUEUE, 0, Instant(2)), AppendEntries((an_entry("deleted"),)))
        fixture.actors[QUEUE].close()
        fixture.consumers.on_lease_lost(fixture.actors[QUEUE])
        await fixture.wait_until_idle()
        assert consumer.delivered == ["q1 deleted"]


@asynchronous
async def test_the_last_entries_of_a_deleted_queue_are_delivered_after_a_restart(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        await fixture.store.commit(DeleteQueue(QUEUE, 0, Instant(2)), AppendEntries((an_entry("deleted"),)))
        await fixture.consumers.wake_lagging()
        await fixture.wait_until_idle()
        assert consumer.delivered == ["q1 deleted"]


@asynchronous
async def test_a_replica_without_the_lease_delivers_nothing(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        fixture.leases.require_leases("one")
        await fixture.write_and_notify("one")
        await fixture.consumers.wake_lagging()
        await fixture.wait_until_idle()
        assert consumer.delivered == []


@asynchronous
async def test_a_replica_that_loses_the_lease_stops_delivering(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        fixture.leases.require_leases("one")
        fixture.leases.extend_until(later(fixture.clock.now(), HOUR))
        fixture.leases.replace_all([Lease(MAIN.repo, 1)], lambda _: ())
        fixture.store.lease_lost = True
        await fixture.write_and_notify("one")
        await fixture.advance_time(HOUR)
        assert consumer.delivered == ["q1 one"]
        assert await fixture.store.cursor("consumer", QUEUE) == 0


@asynchronous
async def test_a_replica_that_loses_the_lease_stops_retrying(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        consumer.errors = [HostUnavailable("gone")] * 99
        await fixture.write_and_notify("one")
        fixture.consumers.on_lease_lost(fixture.actors[QUEUE])
        await fixture.wait_until_idle()
        await fixture.advance_time(HOUR)
        assert consumer.attempts == 1


@asynchronous
async def test_a_removed_consumer_gets_no_entries(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        await fixture.start(consumer)
        fixture.consumers.remove("consumer")
        await fixture.write_and_notify("one")
        assert consumer.delivered == []


@asynchronous
async def test_consumers_continue_after_the_store_was_unavailable(tmp_path: Path):
    async with open_fixture(tmp_path) as fixture:
        consumer = RecordingConsumer()
        fixture.store.failing_commits = 1
        starting = asyncio.create_task(fixture.consumers.start_at_end(consumer))
        await fixture.wait_until_idle()
        await fixture.advance_time(10_000)
        await starting
        fixture.store.unreadable = 2
        await fixture.write_and_notify("one")
        await fixture.advance_time(10_000)
        assert consumer.delivered == ["q1 one"]
