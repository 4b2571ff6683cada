"""A branch has one queue at a time; what a deleted one did remains."""

import pytest

from mergeyard.domain.ids import PrNumber, QueueId, RunId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.ports.store import Outrun, Store, StoredQueue, Taken
from mergeyard.ports.writes import AppendEntries, DeleteQueue, Fact, KeepTargets
from tests.contract.store.given import (
    HEAD,
    MAIN,
    NEXT,
    OTHER,
    QUEUE,
    REPO,
    a_queue,
    a_run,
    a_stay,
    a_turn,
    an_entry,
    opened,
)
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_a_new_store_holds_nothing(store: Store):
    async with opened(store):
        assert await store.queues() == ()
        assert await store.tokens() == ()
        assert await store.entries(QUEUE, 0, 10) == ()


@asynchronous
async def test_a_new_queue_is_empty_and_at_version_nought(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        assert await store.queues() == (StoredQueue(QUEUE, MAIN, 0),)
        loaded = await store.load(QUEUE)
        assert (loaded.version, loaded.facts, loaded.stays, loaded.runs) == (0, (), (), ())


@asynchronous
async def test_a_branch_has_one_queue(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        with pytest.raises(Taken):
            await store.commit(a_queue(OTHER), AppendEntries((an_entry("created", queue=QUEUE),)))
        assert await store.entries(QUEUE, 0, 10) == ()
        await store.commit(a_queue(OTHER, key=NEXT))
        await store.commit(a_queue(QueueId("q3"), key=QueueKey(Repo(REPO.host, REPO.owner, "lib"), "main")))
        assert [queue.id for queue in await store.queues()] == [QUEUE, OTHER, "q3"]


@asynchronous
async def test_a_queue_may_take_its_first_turn_in_the_commit_that_creates_it(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_turn(1, Fact("queue", "", b"new")), AppendEntries((an_entry("created"),)))
        assert await store.queues() == (StoredQueue(QUEUE, MAIN, 1),)


@asynchronous
async def test_facts_are_put_replaced_and_taken_away(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_turn(1, Fact("b", "1", b"one"), Fact("a", "2", b"two"), Fact("a", "1", b"three")))
        await store.commit(a_turn(2, Fact("a", "1", None), Fact("b", "1", b"four"), Fact("never", "there", None)))
        assert (await store.load(QUEUE)).facts == (Fact("a", "2", b"two"), Fact("b", "1", b"four"))


@asynchronous
async def test_what_a_turn_names_twice_is_as_it_was_named_last(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        facts = (Fact("a", "1", b"one"), Fact("a", "1", b"two"), Fact("b", "1", b"three"), Fact("b", "1", None))
        stays = (a_stay(1, body=b"submitted"), a_stay(1, body=b"tested"))
        await store.commit(a_turn(1, *facts, *stays, a_run("r", body=b"planned"), a_run("r", body=b"started")))
        loaded = await store.load(QUEUE)
        assert (loaded.facts, loaded.stays, loaded.runs) == ((Fact("a", "1", b"two"),), (b"tested",), (b"started",))


@asynchronous
async def test_queues_do_not_mix(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        await store.commit(a_turn(1, Fact("a", "1", b"mine"), a_stay(1, body=b"mine"), a_run("r", body=b"mine")))
        yours = (Fact("a", "1", b"yours"), a_stay(1, body=b"yours"), a_run("r", body=b"yours"))
        await store.commit(a_turn(1, *yours, queue=OTHER))
        mine, theirs = await store.load(QUEUE), await store.load(OTHER)
        assert (mine.facts[0].body, mine.stays, mine.runs) == (b"mine", (b"mine",), (b"mine",))
        assert (theirs.facts[0].body, theirs.stays, theirs.runs) == (b"yours", (b"yours",), (b"yours",))


@asynchronous
async def test_a_deleted_queue_is_found_no_more_but_what_it_did_remains(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_turn(1, Fact("a", "1", b"fact"), a_stay(1), a_run("r", started=1, decided=2)))
        await store.commit(AppendEntries((an_entry("told"),)))
        await store.commit(DeleteQueue(QUEUE, 1, Instant(9)))
        assert await store.queues() == ()
        with pytest.raises(LookupError):
            await store.load(QUEUE)
        assert await store.last_stay(QUEUE, PrNumber(1)) == b"stay 1"
        assert await store.run(QUEUE, RunId("r")) == b"r"
        assert [entry.body for entry in await store.timeline(QUEUE, Ticket(1), 9)] == [b"told"]


@asynchronous
async def test_nothing_is_written_to_a_deleted_queue(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(DeleteQueue(QUEUE, 0, Instant(9)))
        with pytest.raises(Outrun):
            await store.commit(a_turn(1))
        with pytest.raises(Outrun):
            await store.commit(DeleteQueue(QUEUE, 0, Instant(10)))


@asynchronous
async def test_a_queue_that_took_a_turn_meanwhile_is_not_deleted(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_turn(1, Fact("a", "1", b"fact")))
        for version in (0, 2):
            with pytest.raises(Outrun):
                await store.commit(DeleteQueue(QUEUE, version, Instant(9)))
        assert (await store.load(QUEUE)).facts == (Fact("a", "1", b"fact"),)


@asynchronous
async def test_a_branch_may_get_a_queue_again_that_starts_with_nothing(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_turn(1, Fact("a", "1", b"fact"), a_stay(1)))
        await store.commit(KeepTargets(QUEUE, PrNumber(1), HEAD, b"targets", Instant(1)))
        await store.commit(DeleteQueue(QUEUE, 1, Instant(9)), a_queue(OTHER))
        assert await store.queues() == (StoredQueue(OTHER, MAIN, 0),)
        loaded = await store.load(OTHER)
        assert (loaded.facts, loaded.stays, await store.last_stay(OTHER, PrNumber(1))) == ((), (), None)
        assert not await store.any_targets(REPO)


@asynchronous
async def test_of_a_repository_all_queues_are_known_that_it_ever_had(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(DeleteQueue(QUEUE, 0, Instant(9)), a_queue(OTHER))
        assert sorted(await store.queues_ever(REPO)) == sorted([QUEUE, OTHER])
        assert not await store.queues_ever(Repo("git.local", "acme", "lib"))


@asynchronous
async def test_there_is_nothing_to_load_of_a_queue_that_never_was(store: Store):
    async with opened(store):
        with pytest.raises(LookupError):
            await store.load(QUEUE)
