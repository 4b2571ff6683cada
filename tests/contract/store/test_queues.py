"""A branch has one queue at a time; the history of a deleted queue remains."""

import pytest

from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo, RunId, SubmissionId
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import AlreadyExists, Store, StoredQueue, VersionConflict
from mergeyard.ports.writes import AppendEntries, DeleteQueue, QueuePart, SaveImpactedTargets
from tests.contract.store.builders import (
    HEAD,
    MAIN,
    NEXT,
    OTHER,
    QUEUE,
    REPO,
    a_decision,
    a_queue,
    a_run,
    a_submission,
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
async def test_a_new_queue_is_empty_and_at_version_zero(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        assert await store.queues() == (StoredQueue(QUEUE, MAIN, 0),)
        loaded = await store.load(QUEUE)
        assert (loaded.version, loaded.parts, loaded.submissions, loaded.runs) == (0, (), (), ())


@asynchronous
async def test_a_branch_has_one_queue(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        with pytest.raises(AlreadyExists):
            await store.commit(a_queue(OTHER), AppendEntries((an_entry("created", queue=QUEUE),)))
        assert await store.entries(QUEUE, 0, 10) == ()
        await store.commit(a_queue(OTHER, key=NEXT))
        await store.commit(a_queue(QueueId("q3"), key=QueueKey(Repo(REPO.host, REPO.owner, "lib"), "main")))
        assert [queue.id for queue in await store.queues()] == [QUEUE, OTHER, "q3"]


@asynchronous
async def test_a_queue_can_save_its_first_decision_in_the_commit_that_creates_it(store: Store):
    async with opened(store):
        await store.commit(
            a_queue(), a_decision(1, QueuePart("queue", "", b"new")), AppendEntries((an_entry("created"),))
        )
        assert await store.queues() == (StoredQueue(QUEUE, MAIN, 1),)


@asynchronous
async def test_parts_are_added_replaced_and_deleted(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(
            a_decision(1, QueuePart("b", "1", b"one"), QueuePart("a", "2", b"two"), QueuePart("a", "1", b"three"))
        )
        await store.commit(
            a_decision(2, QueuePart("a", "1", None), QueuePart("b", "1", b"four"), QueuePart("never", "there", None))
        )
        assert (await store.load(QUEUE)).parts == (QueuePart("a", "2", b"two"), QueuePart("b", "1", b"four"))


@asynchronous
async def test_the_last_version_of_a_part_in_one_decision_counts(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        parts = (
            QueuePart("a", "1", b"one"),
            QueuePart("a", "1", b"two"),
            QueuePart("b", "1", b"three"),
            QueuePart("b", "1", None),
        )
        submissions = (a_submission(1, body=b"submitted"), a_submission(1, body=b"tested"))
        await store.commit(
            a_decision(1, *parts, *submissions, a_run("r", body=b"planned"), a_run("r", body=b"started"))
        )
        loaded = await store.load(QUEUE)
        assert (loaded.parts, loaded.submissions, loaded.runs) == (
            (QueuePart("a", "1", b"two"),),
            (b"tested",),
            (b"started",),
        )


@asynchronous
async def test_queues_are_independent(store: Store):
    async with opened(store):
        await store.commit(a_queue(), a_queue(OTHER, key=NEXT))
        await store.commit(
            a_decision(1, QueuePart("a", "1", b"mine"), a_submission(1, body=b"mine"), a_run("r", body=b"mine"))
        )
        yours = (QueuePart("a", "1", b"yours"), a_submission(1, body=b"yours"), a_run("r", body=b"yours"))
        await store.commit(a_decision(1, *yours, queue=OTHER))
        mine, theirs = await store.load(QUEUE), await store.load(OTHER)
        assert (mine.parts[0].body, mine.submissions, mine.runs) == (b"mine", (b"mine",), (b"mine",))
        assert (theirs.parts[0].body, theirs.submissions, theirs.runs) == (b"yours", (b"yours",), (b"yours",))


@asynchronous
async def test_a_deleted_queue_is_not_found_but_its_history_remains(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(
            a_decision(1, QueuePart("a", "1", b"fact"), a_submission(1), a_run("r", started=1, decided=2))
        )
        await store.commit(AppendEntries((an_entry("entry"),)))
        await store.commit(DeleteQueue(QUEUE, 1, Instant(9)))
        assert await store.queues() == ()
        with pytest.raises(LookupError):
            await store.load(QUEUE)
        assert await store.last_submission(QUEUE, PullRequestNumber(1)) == b"submission 1"
        assert await store.run(QUEUE, RunId("r")) == b"r"
        assert [entry.body for entry in await store.timeline(QUEUE, SubmissionId(1), 9)] == [b"entry"]


@asynchronous
async def test_nothing_is_written_to_a_deleted_queue(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(DeleteQueue(QUEUE, 0, Instant(9)))
        with pytest.raises(VersionConflict):
            await store.commit(a_decision(1))
        with pytest.raises(VersionConflict):
            await store.commit(DeleteQueue(QUEUE, 0, Instant(10)))


@asynchronous
async def test_a_queue_that_changed_meanwhile_is_not_deleted(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_decision(1, QueuePart("a", "1", b"fact")))
        for version in (0, 2):
            with pytest.raises(VersionConflict):
                await store.commit(DeleteQueue(QUEUE, version, Instant(9)))
        assert (await store.load(QUEUE)).parts == (QueuePart("a", "1", b"fact"),)


@asynchronous
async def test_a_branch_can_get_a_new_queue_that_starts_empty(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_decision(1, QueuePart("a", "1", b"fact"), a_submission(1)))
        await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(1), HEAD, b"targets", Instant(1)))
        await store.commit(DeleteQueue(QUEUE, 1, Instant(9)), a_queue(OTHER))
        assert await store.queues() == (StoredQueue(OTHER, MAIN, 0),)
        loaded = await store.load(OTHER)
        assert (loaded.parts, loaded.submissions, await store.last_submission(OTHER, PullRequestNumber(1))) == (
            (),
            (),
            None,
        )
        assert not await store.has_any_impacted_targets(REPO)


@asynchronous
async def test_all_past_queues_of_a_repository_are_listed(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(DeleteQueue(QUEUE, 0, Instant(9)), a_queue(OTHER))
        assert sorted(await store.all_queue_ids(REPO)) == sorted([QUEUE, OTHER])
        assert not await store.all_queue_ids(Repo("git.local", "acme", "lib"))


@asynchronous
async def test_an_unknown_queue_cannot_be_loaded(store: Store):
    async with opened(store):
        with pytest.raises(LookupError):
            await store.load(QUEUE)
