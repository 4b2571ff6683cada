"""A replica finds the queues of others, and what they changed, without reading everything again."""

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.states import PrState
from mergeyard.ports.sharing import SharedStore
from mergeyard.ports.store import Changed, Changes, StoredQueue
from mergeyard.ports.writes import DeleteQueue, Fact
from tests.contract.sharing.given import all_opened
from tests.contract.store.given import MAIN, NEXT, OTHER, QUEUE, REPO, a_queue, a_run, a_stay, a_turn
from tests.support.asynchronous import asynchronous

MEMORY = 1000
"""Turns that every store remembers."""


@asynchronous
async def test_a_queue_is_found_by_its_branch_at_the_version_that_another_replica_gave_it(
    one: SharedStore, other: SharedStore
):
    async with all_opened(one, other):
        await one.commit(a_queue())
        assert await other.find(MAIN) == StoredQueue(QUEUE, MAIN, 0)
        await one.commit(a_turn(1))
        assert await other.find(MAIN) == StoredQueue(QUEUE, MAIN, 1)
        assert await other.find(NEXT) is None


@asynchronous
async def test_a_deleted_queue_is_not_found_but_its_successor_is(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue())
        await one.commit(DeleteQueue(QUEUE, 0, Instant(9)))
        assert await other.find(MAIN) is None
        await one.commit(a_queue(OTHER))
        assert await other.find(MAIN) == StoredQueue(OTHER, MAIN, 0)


@asynchronous
async def test_those_queues_are_newer_that_have_another_version(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        queues = [QueueId(f"q{count}") for count in range(4)]
        await one.commit(*(a_queue(queue, key=QueueKey(REPO, queue)) for queue in queues))
        known = [(queue, 0) for queue in queues]
        assert await other.newer(known) == ()
        await one.commit(a_turn(1, queue=queues[1]), a_turn(1, queue=queues[2]))
        await one.commit(DeleteQueue(queues[2], 1, Instant(9)), DeleteQueue(queues[3], 0, Instant(9)))
        assert await other.newer(known) == (StoredQueue(queues[1], QueueKey(REPO, queues[1]), 1),)
        assert await other.newer([(queues[1], 1), (QueueId("never was"), 0)]) == ()
        assert await other.newer([]) == ()


@asynchronous
async def test_changes_are_all_that_was_written_after_a_version(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue())
        await one.commit(a_turn(1, Fact("a", "1", b"old"), Fact("b", "1", b"old"), a_stay(1), a_stay(2), a_run("z")))
        await one.commit(a_turn(2, Fact("a", "2", b"new"), a_stay(3), a_run("y")))
        await one.commit(a_turn(3, Fact("b", "1", b"newer"), a_stay(1, state=PrState.TESTING, body=b"tested")))
        assert await other.changes(QUEUE, 1) == Changes(
            version=3,
            facts=(Fact("a", "2", b"new"), Fact("b", "1", b"newer")),
            stays=(Changed(True, b"tested"), Changed(True, b"stay 3")),
            runs=(Changed(True, b"y"),),
        )
        assert await other.changes(QUEUE, 3) == Changes(version=3, facts=(), stays=(), runs=())


@asynchronous
async def test_what_left_the_queue_is_a_change_that_is_not_live(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue())
        await one.commit(a_turn(1, a_stay(1), a_run("r")))
        ended = a_stay(1, state=PrState.MERGED, body=b"merged")
        await one.commit(a_turn(2, ended, a_run("r", live=False, body=b"let go")))
        changes = await other.changes(QUEUE, 1)
        assert changes is not None
        assert (changes.stays, changes.runs) == ((Changed(False, b"merged"),), (Changed(False, b"let go"),))


@asynchronous
async def test_a_dropped_fact_is_a_change_without_a_body_unless_it_came_back(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue())
        await one.commit(a_turn(1, *(Fact("a", key, b"put") for key in "1234")))
        await one.commit(a_turn(2, Fact("a", "1", None), Fact("a", "2", None), Fact("never", "there", None)))
        await one.commit(a_turn(3, Fact("a", "2", b"again"), Fact("a", "3", None)))
        await one.commit(a_turn(4, Fact("a", "3", b"again")))
        await one.commit(a_turn(5, Fact("a", "3", None)))

        async def facts_since(version: int) -> dict[str, bytes | None]:
            changes = await other.changes(QUEUE, version)
            assert changes is not None
            assert {fact.shelf for fact in changes.facts} <= {"a"}
            assert len(changes.facts) == len({fact.key for fact in changes.facts})
            return {fact.key: fact.body for fact in changes.facts}

        assert await facts_since(1) == {"1": None, "2": b"again", "3": None}
        assert await facts_since(2) == {"2": b"again", "3": None}
        assert await facts_since(4) == {"3": None}
        assert await facts_since(5) == {}


@asynchronous
async def test_what_was_dropped_is_remembered_for_a_thousand_turns_and_not_one_more(
    one: SharedStore, other: SharedStore
):
    async with all_opened(one, other):
        await one.commit(a_queue())
        await one.commit(a_turn(1, Fact("a", "1", b"put")))
        await one.commit(a_turn(2, Fact("a", "1", None)))
        await one.commit(*(a_turn(version) for version in range(3, 2 + MEMORY)))
        changes = await other.changes(QUEUE, 1)
        assert changes is not None
        assert (changes.version, changes.facts) == (1 + MEMORY, (Fact("a", "1", None),))
        await one.commit(a_turn(2 + MEMORY))
        assert await other.changes(QUEUE, 1) is None
        assert await other.changes(QUEUE, 2) == Changes(version=2 + MEMORY, facts=(), stays=(), runs=())


@asynchronous
async def test_there_are_no_changes_of_a_queue_that_is_there_no_more(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue())
        await one.commit(DeleteQueue(QUEUE, 0, Instant(9)))
        assert await other.changes(QUEUE, 0) is None
        assert await other.changes(OTHER, 0) is None


@asynchronous
async def test_applying_changes_upon_changes_leads_to_what_is_stored(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue())
        known, version = dict[tuple[str, str], bytes | None](), 0
        for turn in range(1, 61):
            put, dropped = Fact("a", str(turn % 7), b"%d" % turn), Fact("a", str(turn % 5), None)
            await one.commit(a_turn(turn, *((put, dropped) if turn % 7 != turn % 5 else (put,))))
            if turn % 4:
                continue
            changes = await other.changes(QUEUE, version)
            assert changes is not None
            known.update({(fact.shelf, fact.key): fact.body for fact in changes.facts})
            version = changes.version
            loaded = await other.load(QUEUE)
            assert loaded.version == version
            there = {place: body for place, body in known.items() if body is not None}
            assert there == {(fact.shelf, fact.key): fact.body for fact in loaded.facts}
