"""The journal is read from a position, by submission, or for metrics."""

from mergeyard.domain.ids import QueueId, SubmissionId
from mergeyard.domain.states import PullRequestState, QueueState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import Store, StoredEntry, TransitionRow
from mergeyard.ports.writes import AppendEntries, EntryRow
from tests.contract.store.builders import NEXT, OTHER, QUEUE, a_queue, an_entry, opened
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_the_journal_is_read_from_a_position_oldest_first(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(AppendEntries(tuple(an_entry(f"{count}", at=9 - count) for count in range(5))))
        first, second, *rest = await store.entries(QUEUE, 0, 10)
        assert [entry.body for entry in (first, second, *rest)] == [b"0", b"1", b"2", b"3", b"4"]
        assert await store.entries(QUEUE, second.seq, 2) == tuple(rest[:2])
        assert await store.entries(QUEUE, rest[-1].seq, 10) == ()


@asynchronous
async def test_later_entries_have_higher_positions(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        position = 0
        for count in range(5):
            await store.commit(AppendEntries((an_entry(f"{count}"),)))
            (entry,) = await store.entries(QUEUE, position, 10)
            assert (entry.body, entry.seq > position) == (b"%d" % count, True)
            position = entry.seq


@asynchronous
async def test_an_entry_can_belong_to_no_submission_and_to_no_queue(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        without_queue = an_entry("token made", queue=None, submission_id=None, token="t1")
        await store.commit(AppendEntries((without_queue, an_entry("paused", submission_id=None, token="t1"))))
        (entry,) = await store.entries(QUEUE, 0, 10)
        assert entry == StoredEntry(entry.seq, QUEUE, "t1", b"paused")


@asynchronous
async def test_every_queue_has_a_journal_of_its_own(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        entries = [an_entry(f"{count}", queue=OTHER if count % 2 else QUEUE) for count in range(6)]
        await store.commit(AppendEntries(tuple(entries)))
        first, *rest = await store.entries(OTHER, 0, 10)
        assert [entry.body for entry in (first, *rest)] == [b"1", b"3", b"5"]
        assert await store.entries(OTHER, first.seq, 1) == (rest[0],)


@asynchronous
async def test_the_timeline_of_a_submission_is_newest_first(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        entries = (
            an_entry("submitted", submission_id=1, token="t1"),
            an_entry("another's", submission_id=2),
            an_entry("another queue's", submission_id=1, queue=OTHER),
            an_entry("the queue's own", submission_id=None),
            an_entry("tested", submission_id=1),
        )
        await store.commit(AppendEntries(entries))
        timeline = await store.timeline(QUEUE, SubmissionId(1), 9)
        assert [(entry.body, entry.token) for entry in timeline] == [(b"tested", None), (b"submitted", "t1")]


@asynchronous
async def test_metric_entries_are_changes_of_pull_requests_in_these_queues_and_this_time_oldest_first(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        entries = (
            an_entry("too old", at=9),
            an_entry("ended", at=12, to=PullRequestState.FAILED, bisecting=True, in_state=6, in_queue=7),
            an_entry("entered", at=10, source=None, to=PullRequestState.PENDING),
            an_entry("started", at=11, in_state=5, first_run=True),
            an_entry("settings", at=12, kind="QueueChanged"),
            an_entry("another queue's", at=12, queue=OTHER),
            an_entry("too new", at=13),
        )
        await store.commit(AppendEntries(entries))
        assert await store.transitions([QUEUE], Instant(10), Instant(13)) == (
            TransitionRow(QUEUE, Instant(10), None, "pending", "tests_started", False, None, None, False),
            TransitionRow(QUEUE, Instant(11), "pending", "testing", "tests_started", False, 5, None, True),
            TransitionRow(QUEUE, Instant(12), "pending", "failed", "tests_started", True, 6, 7, False),
        )
        assert len(await store.transitions([QUEUE, OTHER], Instant(10), Instant(13))) == 4
        assert await store.transitions([], Instant(0), Instant(13)) == ()


@asynchronous
async def test_the_last_change_into_a_state_ignores_settings_and_other_queues(store: Store):
    def changed(text: str, source: QueueState, to: QueueState, queue: QueueId = QUEUE) -> EntryRow:
        return an_entry(text, kind="QueueChanged", submission_id=None, source=source, to=to, queue=queue)

    running, paused = QueueState.RUNNING, QueueState.PAUSED
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        assert await store.last_change(QUEUE, paused) is None
        entries = (
            changed("long ago", running, paused),
            changed("resumed", paused, running),
            changed("now", running, paused),
            changed("settings", paused, paused),
            changed("another queue's", running, paused, OTHER),
        )
        await store.commit(AppendEntries(entries))
        assert await store.last_change(QUEUE, paused) == b"now"
        assert await store.last_change(QUEUE, running) == b"resumed"


@asynchronous
async def test_the_last_entry_about_the_state_can_give_another_reason_for_it(store: Store):
    def changed(text: str, reason: Reason, queue: QueueId = QUEUE) -> EntryRow:
        state = QueueState.PAUSED
        return an_entry(
            text, kind="QueueChanged", submission_id=None, source=state, to=state, queue=queue, reason=reason
        )

    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        assert await store.last_state_entry(QUEUE) is None
        entries = (
            changed("first", Reason.STATE_REQUESTED),
            changed("found", Reason.AUDIT_MISMATCH),
            changed("settings", Reason.SETTINGS_CHANGED),
            changed("another queue's", Reason.STATE_REQUESTED, OTHER),
        )
        await store.commit(AppendEntries(entries))
        assert await store.last_state_entry(QUEUE) == b"found"
