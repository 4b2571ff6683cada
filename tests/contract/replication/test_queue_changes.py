"""A replica finds the queues of other replicas and their changes without reading everything again."""

from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.domain.states import PullRequestState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import ChangedRow, QueueChanges, SharedStore, StoredQueue
from mergeyard.ports.writes import DeleteQueue, QueuePart
from tests.contract.replication.support import open_all
from tests.contract.store.builders import MAIN, NEXT, OTHER, QUEUE, REPO, a_decision, a_queue, a_run, a_submission
from tests.support.asynchronous import asynchronous

MEMORY = 1000
"""Turns that every store remembers."""


@asynchronous
async def test_a_queue_is_found_by_its_branch_at_the_version_that_another_replica_gave_it(
    one: SharedStore, other: SharedStore
):
    async with open_all(one, other):
        await one.commit(a_queue())
        assert await other.find_queue(MAIN) == StoredQueue(QUEUE, MAIN, 0)
        await one.commit(a_decision(1))
        assert await other.find_queue(MAIN) == StoredQueue(QUEUE, MAIN, 1)
        assert await other.find_queue(NEXT) is None


@asynchronous
async def test_a_deleted_queue_is_not_found_but_its_successor_is(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        await one.commit(a_queue())
        await one.commit(DeleteQueue(QUEUE, 0, Instant(9)))
        assert await other.find_queue(MAIN) is None
        await one.commit(a_queue(OTHER))
        assert await other.find_queue(MAIN) == StoredQueue(OTHER, MAIN, 0)


@asynchronous
async def test_queues_with_another_version_are_reported_as_newer(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        queues = [QueueId(f"q{count}") for count in range(4)]
        await one.commit(*(a_queue(queue, key=QueueKey(REPO, queue)) for queue in queues))
        known = [(queue, 0) for queue in queues]
        assert await other.changed_queues(known) == ()
        await one.commit(a_decision(1, queue=queues[1]), a_decision(1, queue=queues[2]))
        await one.commit(DeleteQueue(queues[2], 1, Instant(9)), DeleteQueue(queues[3], 0, Instant(9)))
        assert await other.changed_queues(known) == (StoredQueue(queues[1], QueueKey(REPO, queues[1]), 1),)
        assert await other.changed_queues([(queues[1], 1), (QueueId("never was"), 0)]) == ()
        assert await other.changed_queues([]) == ()


@asynchronous
async def test_changes_are_all_that_was_written_after_a_version(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        await one.commit(a_queue())
        await one.commit(
            a_decision(
                1,
                QueuePart("a", "1", b"old"),
                QueuePart("b", "1", b"old"),
                a_submission(1),
                a_submission(2),
                a_run("z"),
            )
        )
        await one.commit(a_decision(2, QueuePart("a", "2", b"new"), a_submission(3), a_run("y")))
        await one.commit(
            a_decision(
                3, QueuePart("b", "1", b"newer"), a_submission(1, state=PullRequestState.TESTING, body=b"tested")
            )
        )
        assert await other.changes(QUEUE, 1) == QueueChanges(
            version=3,
            parts=(QueuePart("a", "2", b"new"), QueuePart("b", "1", b"newer")),
            submissions=(ChangedRow(True, b"tested"), ChangedRow(True, b"submission 3")),
            runs=(ChangedRow(True, b"y"),),
        )
        assert await other.changes(QUEUE, 3) == QueueChanges(version=3, parts=(), submissions=(), runs=())


@asynchronous
async def test_a_row_that_left_the_queue_is_a_change_that_is_not_live(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        await one.commit(a_queue())
        await one.commit(a_decision(1, a_submission(1), a_run("r")))
        ended = a_submission(1, state=PullRequestState.MERGED, body=b"merged")
        await one.commit(a_decision(2, ended, a_run("r", live=False, body=b"let go")))
        changes = await other.changes(QUEUE, 1)
        assert changes is not None
        assert (changes.submissions, changes.runs) == ((ChangedRow(False, b"merged"),), (ChangedRow(False, b"let go"),))


@asynchronous
async def test_a_deleted_part_is_a_change_without_a_body_unless_it_was_written_again(
    one: SharedStore, other: SharedStore
):
    async with open_all(one, other):
        await one.commit(a_queue())
        await one.commit(a_decision(1, *(QueuePart("a", key, b"put") for key in "1234")))
        await one.commit(
            a_decision(2, QueuePart("a", "1", None), QueuePart("a", "2", None), QueuePart("never", "there", None))
        )
        await one.commit(a_decision(3, QueuePart("a", "2", b"again"), QueuePart("a", "3", None)))
        await one.commit(a_decision(4, QueuePart("a", "3", b"again")))
        await one.commit(a_decision(5, QueuePart("a", "3", None)))

        async def facts_since(version: int) -> dict[str, bytes | None]:
            changes = await other.changes(QUEUE, version)
            assert changes is not None
            assert {fact.kind for fact in changes.parts} <= {"a"}
            assert len(changes.parts) == len({fact.key for fact in changes.parts})
            return {fact.key: fact.body for fact in changes.parts}

        assert await facts_since(1) == {"1": None, "2": b"again", "3": None}
        assert await facts_since(2) == {"2": b"again", "3": None}
        assert await facts_since(4) == {"3": None}
        assert await facts_since(5) == {}


@asynchronous
async def test_deleted_parts_are_remembered_for_a_thousand_decisions(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        await one.commit(a_queue())
        await one.commit(a_decision(1, QueuePart("a", "1", b"put")))
        await one.commit(a_decision(2, QueuePart("a", "1", None)))
        await one.commit(*(a_decision(version) for version in range(3, 2 + MEMORY)))
        changes = await other.changes(QUEUE, 1)
        assert changes is not None
        assert (changes.version, changes.parts) == (1 + MEMORY, (QueuePart("a", "1", None),))
        await one.commit(a_decision(2 + MEMORY))
        assert await other.changes(QUEUE, 1) is None
        assert await other.changes(QUEUE, 2) == QueueChanges(version=2 + MEMORY, parts=(), submissions=(), runs=())


@asynchronous
async def test_a_deleted_queue_has_no_changes(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        await one.commit(a_queue())
        await one.commit(DeleteQueue(QUEUE, 0, Instant(9)))
        assert await other.changes(QUEUE, 0) is None
        assert await other.changes(OTHER, 0) is None


@asynchronous
async def test_applying_all_changes_leads_to_the_stored_queue(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
        await one.commit(a_queue())
        known, version = dict[tuple[str, str], bytes | None](), 0
        for turn in range(1, 61):
            put, dropped = QueuePart("a", str(turn % 7), b"%d" % turn), QueuePart("a", str(turn % 5), None)
            await one.commit(a_decision(turn, *((put, dropped) if turn % 7 != turn % 5 else (put,))))
            if turn % 4:
                continue
            changes = await other.changes(QUEUE, version)
            assert changes is not None
            known.update({(fact.kind, fact.key): fact.body for fact in changes.parts})
            version = changes.version
            loaded = await other.load(QUEUE)
            assert loaded.version == version
            there = {place: body for place, body in known.items() if body is not None}
            assert there == {(fact.kind, fact.key): fact.body for fact in loaded.parts}
