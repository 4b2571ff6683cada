"""Whoever tells of the journal goes on where it stopped, and does not begin with the past."""

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.ports.store import Store
from mergeyard.ports.writes import (
    AppendEntries,
    BeginTelling,
    DeleteQueue,
    ForgetTeller,
    KeepConversation,
    MoveCursor,
    NoteStuck,
    TakeHeart,
)
from tests.contract.store.given import NEXT, OTHER, QUEUE, a_queue, an_entry, opened
from tests.support.asynchronous import asynchronous


async def tell_of(store: Store, *words: str) -> int:
    await store.commit(AppendEntries(tuple(map(an_entry, words))))
    return (await store.entries(QUEUE, 0, 99))[-1].seq


async def behind(store: Store, teller: str = "comments") -> list[str]:
    return [queue.id for queue in await store.behind(teller)]


@asynchronous
async def test_who_never_told_anything_stands_at_the_beginning(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        assert await behind(store) == []
        await tell_of(store, "created")
        assert await store.cursor("comments", QUEUE) == 0
        assert await behind(store) == [QUEUE]


@asynchronous
async def test_who_told_everything_is_behind_nothing_until_more_happens(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(MoveCursor("comments", QUEUE, await tell_of(store, "one", "two")))
        assert await behind(store) == []
        last = await tell_of(store, "three")
        assert await behind(store) == [QUEUE]
        assert [entry.seq for entry in await store.entries(QUEUE, await store.cursor("comments", QUEUE), 9)] == [last]


@asynchronous
async def test_a_cursor_never_goes_back(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(MoveCursor("comments", QUEUE, 5))
        await store.commit(MoveCursor("comments", QUEUE, 3))
        assert await store.cursor("comments", QUEUE) == 5


@asynchronous
async def test_every_teller_has_a_place_of_its_own_in_every_queue(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        await store.commit(MoveCursor("comments", QUEUE, 5), MoveCursor("webhook:1", OTHER, 7))
        assert await store.cursor("comments", OTHER) == 0
        assert await store.cursor("webhook:1", QUEUE) == 0
        assert await store.cursor("webhook:1", OTHER) == 7


@asynchronous
async def test_a_new_teller_does_not_tell_the_past_and_misses_nothing_that_comes(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        last = await tell_of(store, "one", "two")
        await store.commit(BeginTelling("comments"))
        assert await store.cursor("comments", QUEUE) == last
        await store.commit(a_queue(OTHER, key=NEXT), AppendEntries((an_entry("created", queue=OTHER),)))
        await tell_of(store, "three")
        assert await behind(store) == [QUEUE, OTHER]


@asynchronous
async def test_who_begins_again_goes_on_where_it_was(store: Store):
    async with opened(store):
        await store.commit(BeginTelling("comments"))
        await store.commit(a_queue())
        await tell_of(store, "created")
        await store.commit(BeginTelling("comments"))
        assert await behind(store) == [QUEUE]


@asynchronous
async def test_the_last_entries_of_a_deleted_queue_are_still_to_be_told(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(BeginTelling("comments"))
        await store.commit(DeleteQueue(QUEUE, 0, Instant(2)), AppendEntries((an_entry("deleted"),)))
        (left,) = await store.behind("comments")
        assert (left.id, left.key.branch) == (QUEUE, "main")
        await store.commit(BeginTelling("later"))
        assert await behind(store, "later") == []


@asynchronous
async def test_a_forgotten_teller_is_new_when_it_comes_again(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(BeginTelling("comments"), MoveCursor("webhook:1", QUEUE, 1))
        last = await tell_of(store, "one")
        await store.commit(ForgetTeller("comments"))
        assert await store.cursor("comments", QUEUE) == 0
        assert await store.cursor("webhook:1", QUEUE) == 1
        await store.commit(BeginTelling("comments"))
        assert await store.cursor("comments", QUEUE) == last


@asynchronous
async def test_who_is_stuck_is_so_since_the_first_time_until_it_moves(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(MoveCursor("comments", QUEUE, 3))
        assert await store.stuck_since("comments", QUEUE) is None
        await store.commit(NoteStuck("comments", QUEUE, Instant(10)))
        await store.commit(NoteStuck("comments", QUEUE, Instant(20)))
        assert await store.stuck_since("comments", QUEUE) == 10
        assert await store.cursor("comments", QUEUE) == 3
        await store.commit(MoveCursor("comments", QUEUE, 4))
        assert await store.stuck_since("comments", QUEUE) is None


@asynchronous
async def test_who_takes_heart_counts_anew(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(NoteStuck("comments", QUEUE, Instant(10)), NoteStuck("webhook:1", QUEUE, Instant(11)))
        await store.commit(TakeHeart("comments"))
        assert await store.stuck_since("comments", QUEUE) is None
        assert await store.stuck_since("webhook:1", QUEUE) == 11


@asynchronous
async def test_a_conversation_is_kept_as_it_is_now_for_every_pull_request(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        await store.commit(KeepConversation(QUEUE, PrNumber(1), b"first"))
        await store.commit(KeepConversation(QUEUE, PrNumber(1), b"second"))
        assert await store.conversation(QUEUE, PrNumber(1)) == b"second"
        assert await store.conversation(QUEUE, PrNumber(2)) is None
        assert await store.conversation(OTHER, PrNumber(1)) is None
