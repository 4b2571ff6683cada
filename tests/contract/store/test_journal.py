"""The journal is read from a place on, by stay, or as figures."""

from mergeyard.domain.ids import QueueId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.states import PrState, QueueState
from mergeyard.ports.store import Figure, Store, StoredEntry
from mergeyard.ports.writes import AppendEntries, EntryRow
from tests.contract.store.given import NEXT, OTHER, QUEUE, a_queue, an_entry, opened
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_the_journal_is_read_from_a_place_on_oldest_first(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(AppendEntries(tuple(an_entry(f"{count}", at=9 - count) for count in range(5))))
        first, second, *rest = await store.entries(QUEUE, 0, 10)
        assert [entry.body for entry in (first, second, *rest)] == [b"0", b"1", b"2", b"3", b"4"]
        assert await store.entries(QUEUE, second.seq, 2) == tuple(rest[:2])
        assert await store.entries(QUEUE, rest[-1].seq, 10) == ()


@asynchronous
async def test_what_is_appended_later_stands_behind_every_place_read_before(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        place = 0
        for count in range(5):
            await store.commit(AppendEntries((an_entry(f"{count}"),)))
            (entry,) = await store.entries(QUEUE, place, 10)
            assert (entry.body, entry.seq > place) == (b"%d" % count, True)
            place = entry.seq


@asynchronous
async def test_an_entry_may_belong_to_no_stay_and_even_to_no_queue(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        nobodys = an_entry("token made", queue=None, ticket=None, token="t1")
        await store.commit(AppendEntries((nobodys, an_entry("paused", ticket=None, token="t1"))))
        (entry,) = await store.entries(QUEUE, 0, 10)
        assert entry == StoredEntry(entry.seq, QUEUE, "t1", b"paused")


@asynchronous
async def test_every_queue_has_a_journal_of_its_own(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        told = [an_entry(f"{count}", queue=OTHER if count % 2 else QUEUE) for count in range(6)]
        await store.commit(AppendEntries(tuple(told)))
        first, *rest = await store.entries(OTHER, 0, 10)
        assert [entry.body for entry in (first, *rest)] == [b"1", b"3", b"5"]
        assert await store.entries(OTHER, first.seq, 1) == (rest[0],)


@asynchronous
async def test_the_timeline_of_a_stay_is_newest_first(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        told = (
            an_entry("submitted", ticket=1, token="t1"),
            an_entry("another's", ticket=2),
            an_entry("another queue's", ticket=1, queue=OTHER),
            an_entry("the queue's own", ticket=None),
            an_entry("tested", ticket=1),
        )
        await store.commit(AppendEntries(told))
        timeline = await store.timeline(QUEUE, Ticket(1), 9)
        assert [(entry.body, entry.token) for entry in timeline] == [(b"tested", None), (b"submitted", "t1")]


@asynchronous
async def test_figures_are_what_happened_to_pull_requests_of_these_queues_in_this_time_oldest_first(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        told = (
            an_entry("too old", at=9),
            an_entry("ended", at=12, to=PrState.FAILED, bisecting=True, in_state=6, in_queue=7),
            an_entry("entered", at=10, source=None, to=PrState.PENDING),
            an_entry("started", at=11, in_state=5, first_run=True),
            an_entry("settings", at=12, kind="QueueChanged"),
            an_entry("another queue's", at=12, queue=OTHER),
            an_entry("too new", at=13),
        )
        await store.commit(AppendEntries(told))
        assert await store.figures([QUEUE], Instant(10), Instant(13)) == (
            Figure(QUEUE, Instant(10), None, "pending", "tests_started", False, None, None, False),
            Figure(QUEUE, Instant(11), "pending", "testing", "tests_started", False, 5, None, True),
            Figure(QUEUE, Instant(12), "pending", "failed", "tests_started", True, 6, 7, False),
        )
        assert len(await store.figures([QUEUE, OTHER], Instant(10), Instant(13))) == 4
        assert await store.figures([], Instant(0), Instant(13)) == ()


@asynchronous
async def test_the_last_change_into_a_state_is_no_change_of_settings_and_no_other_queues(store: Store):
    def changed(words: str, source: QueueState, to: QueueState, queue: QueueId = QUEUE) -> EntryRow:
        return an_entry(words, kind="QueueChanged", ticket=None, source=source, to=to, queue=queue)

    running, paused = QueueState.RUNNING, QueueState.PAUSED
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        assert await store.last_change(QUEUE, paused) is None
        told = (
            changed("long ago", running, paused),
            changed("resumed", paused, running),
            changed("now", running, paused),
            changed("settings", paused, paused),
            changed("another queue's", running, paused, OTHER),
        )
        await store.commit(AppendEntries(told))
        assert await store.last_change(QUEUE, paused) == b"now"
        assert await store.last_change(QUEUE, running) == b"resumed"
