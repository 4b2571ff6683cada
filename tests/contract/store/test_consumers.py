"""Consumers of the journal continue at their cursor and start at the end of the past."""

from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import Store
from mergeyard.ports.writes import (
    AppendEntries,
    ClearStalled,
    DeleteConsumer,
    DeleteQueue,
    MarkStalled,
    MoveCursor,
    SaveThreadState,
    StartConsumer,
)
from tests.contract.store.builders import NEXT, OTHER, QUEUE, a_queue, an_entry, opened
from tests.support.asynchronous import asynchronous


async def append(store: Store, *texts: str) -> int:
    await store.commit(AppendEntries(tuple(map(an_entry, texts))))
    return (await store.entries(QUEUE, 0, 99))[-1].seq


async def unread_queues(store: Store, consumer: str = "comments") -> list[str]:
    return [queue.id for queue in await store.queues_with_unread_entries(consumer)]


@asynchronous
async def test_a_new_cursor_is_at_the_beginning(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        assert await unread_queues(store) == []
        await append(store, "created")
        assert await store.cursor("comments", QUEUE) == 0
        assert await unread_queues(store) == [QUEUE]


@asynchronous
async def test_a_consumer_that_read_everything_has_nothing_unread_until_more_happens(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(MoveCursor("comments", QUEUE, await append(store, "one", "two")))
        assert await unread_queues(store) == []
        last = await append(store, "three")
        assert await unread_queues(store) == [QUEUE]
        assert [entry.seq for entry in await store.entries(QUEUE, await store.cursor("comments", QUEUE), 9)] == [last]


@asynchronous
async def test_a_cursor_never_goes_back(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(MoveCursor("comments", QUEUE, 5))
        await store.commit(MoveCursor("comments", QUEUE, 3))
        assert await store.cursor("comments", QUEUE) == 5


@asynchronous
async def test_every_consumer_has_its_own_cursor_in_every_queue(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        await store.commit(MoveCursor("comments", QUEUE, 5), MoveCursor("webhook:1", OTHER, 7))
        assert await store.cursor("comments", OTHER) == 0
        assert await store.cursor("webhook:1", QUEUE) == 0
        assert await store.cursor("webhook:1", OTHER) == 7


@asynchronous
async def test_a_new_consumer_skips_the_past_and_misses_no_later_entry(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        last = await append(store, "one", "two")
        await store.commit(StartConsumer("comments"))
        assert await store.cursor("comments", QUEUE) == last
        await store.commit(a_queue(OTHER, key=NEXT), AppendEntries((an_entry("created", queue=OTHER),)))
        await append(store, "three")
        assert await unread_queues(store) == [QUEUE, OTHER]


@asynchronous
async def test_a_consumer_that_starts_again_continues_at_its_cursor(store: Store):
    async with opened(store):
        await store.commit(StartConsumer("comments"))
        await store.commit(a_queue())
        await append(store, "created")
        await store.commit(StartConsumer("comments"))
        assert await unread_queues(store) == [QUEUE]


@asynchronous
async def test_the_last_entries_of_a_deleted_queue_are_still_unread(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(StartConsumer("comments"))
        await store.commit(DeleteQueue(QUEUE, 0, Instant(2)), AppendEntries((an_entry("deleted"),)))
        (left,) = await store.queues_with_unread_entries("comments")
        assert (left.id, left.key.branch) == (QUEUE, "main")
        await store.commit(StartConsumer("later"))
        assert await unread_queues(store, "later") == []


@asynchronous
async def test_a_deleted_consumer_is_new_when_it_starts_again(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(StartConsumer("comments"), MoveCursor("webhook:1", QUEUE, 1))
        last = await append(store, "one")
        await store.commit(DeleteConsumer("comments"))
        assert await store.cursor("comments", QUEUE) == 0
        assert await store.cursor("webhook:1", QUEUE) == 1
        await store.commit(StartConsumer("comments"))
        assert await store.cursor("comments", QUEUE) == last


@asynchronous
async def test_a_stalled_consumer_keeps_its_first_time_until_it_moves(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(MoveCursor("comments", QUEUE, 3))
        assert await store.stalled_since("comments", QUEUE) is None
        await store.commit(MarkStalled("comments", QUEUE, Instant(10)))
        await store.commit(MarkStalled("comments", QUEUE, Instant(20)))
        assert await store.stalled_since("comments", QUEUE) == 10
        assert await store.cursor("comments", QUEUE) == 3
        await store.commit(MoveCursor("comments", QUEUE, 4))
        assert await store.stalled_since("comments", QUEUE) is None


@asynchronous
async def test_clearing_a_stall_affects_one_consumer(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(MarkStalled("comments", QUEUE, Instant(10)), MarkStalled("webhook:1", QUEUE, Instant(11)))
        await store.commit(ClearStalled("comments"))
        assert await store.stalled_since("comments", QUEUE) is None
        assert await store.stalled_since("webhook:1", QUEUE) == 11


@asynchronous
async def test_the_latest_thread_state_of_every_pull_request_is_stored(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        await store.commit(SaveThreadState(QUEUE, PullRequestNumber(1), b"first"))
        await store.commit(SaveThreadState(QUEUE, PullRequestNumber(1), b"second"))
        assert await store.thread_state(QUEUE, PullRequestNumber(1)) == b"second"
        assert await store.thread_state(QUEUE, PullRequestNumber(2)) is None
        assert await store.thread_state(OTHER, PullRequestNumber(1)) is None
