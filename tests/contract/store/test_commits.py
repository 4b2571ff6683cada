"""A commit writes everything or nothing; commits in one group do not disturb each other."""

import asyncio
from contextlib import suppress

import pytest

from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, SubmissionId
from mergeyard.ports.store import Store, StoreUnavailable, VersionConflict
from mergeyard.ports.writes import AppendEntries, QueuePart
from tests.contract.store.builders import QUEUE, REPO, a_decision, a_queue, a_run, a_submission, an_entry, opened
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_what_was_committed_is_there_after_a_restart(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_decision(1, QueuePart("queue", "", b"all of it"), a_submission(7)))
    async with opened(store):
        loaded = await store.load(QUEUE)
        assert (loaded.version, loaded.parts, loaded.submissions) == (
            1,
            (QueuePart("queue", "", b"all of it"),),
            (b"submission 7",),
        )


@asynchronous
async def test_a_commit_is_visible_at_once(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        for version in range(1, 50):
            await store.commit(a_decision(version, a_submission(version)), AppendEntries((an_entry(f"{version}"),)))
            assert await store.submission(QUEUE, SubmissionId(version)) == b"submission %d" % version
            assert len(await store.entries(QUEUE, 0, 100)) == version


@asynchronous
async def test_a_decision_that_does_not_follow_the_stored_version_is_a_conflict_and_writes_nothing(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_decision(1, QueuePart("shelf", "key", b"first")))
        for version in (0, 1, 3):
            with pytest.raises(VersionConflict):
                await store.commit(a_decision(version, QueuePart("shelf", "key", b"second"), a_submission(1)))
        loaded = await store.load(QUEUE)
        assert (loaded.version, loaded.parts, loaded.submissions) == (1, (QueuePart("shelf", "key", b"first"),), ())


@asynchronous
async def test_a_decision_of_an_unknown_queue_is_a_conflict(store: Store):
    async with opened(store):
        with pytest.raises(VersionConflict):
            await store.commit(a_decision(1))


@asynchronous
async def test_a_commit_that_fails_in_its_last_write_leaves_nothing_of_its_first(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        with pytest.raises(VersionConflict):
            await store.commit(AppendEntries((an_entry("never"),)), a_decision(1, a_submission(1)), a_decision(1))
        assert await store.entries(QUEUE, 0, 10) == ()
        assert await store.submission(QUEUE, SubmissionId(1)) is None


@asynchronous
async def test_all_but_one_of_concurrent_decisions_are_conflicts(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        racing = [store.commit(a_decision(1, QueuePart("shelf", "key", b"%d" % racer))) for racer in range(10)]
        outcomes = await asyncio.gather(*racing, return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", *["VersionConflict"] * 9]
        winner = outcomes.index(None)
        assert (await store.load(QUEUE)).parts == (QueuePart("shelf", "key", b"%d" % winner),)


@asynchronous
async def test_a_refused_commit_does_not_affect_others_in_its_group(store: Store):
    async with opened(store):
        queues = [QueueId(f"q{count}") for count in range(20)]
        await store.commit(*(a_queue(queue, key=QueueKey(REPO, queue)) for queue in queues))
        turns = [a_decision(2 if at % 3 == 0 else 1, a_submission(1), queue=queue) for at, queue in enumerate(queues)]
        outcomes = await asyncio.gather(*map(store.commit, turns), return_exceptions=True)
        refused = [isinstance(outcome, VersionConflict) for outcome in outcomes]
        missing = [await store.submission(queue, SubmissionId(1)) is None for queue in queues]
        assert refused == missing == [at % 3 == 0 for at in range(20)]


@asynchronous
async def test_an_error_of_one_caller_is_raised_only_for_that_caller(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        mistaken = store.commit(AppendEntries((an_entry("mistaken", queue=QueueId("unknown")),)))
        sound = store.commit(AppendEntries((an_entry("ours"),)))
        mistake, success = await asyncio.gather(mistaken, sound, return_exceptions=True)
        assert isinstance(mistake, Exception)
        assert not isinstance(mistake, StoreUnavailable)
        assert success is None
        assert [entry.body for entry in await store.entries(QUEUE, 0, 10)] == [b"ours"]


@asynchronous
async def test_a_cancelled_commit_does_not_disturb_others(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        waiting = [asyncio.create_task(store.commit(AppendEntries((an_entry(f"{at}"),)))) for at in range(30)]
        await asyncio.sleep(0)
        for task in waiting[::3]:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        kept = {entry.body for entry in await store.entries(QUEUE, 0, 100)}
        assert kept >= {b"%d" % at for at in range(30) if at % 3}
        await store.commit(AppendEntries((an_entry("after"),)))


@asynchronous
async def test_closing_finishes_pending_commits(store: Store):
    await store.open()
    await store.commit(a_queue())
    waiting = [asyncio.create_task(store.commit(AppendEntries((an_entry(f"{at}"),)))) for at in range(30)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*waiting)
    async with opened(store):
        assert len(await store.entries(QUEUE, 0, 100)) == 30


@asynchronous
async def test_a_closed_store_refuses(store: Store):
    with pytest.raises(StoreUnavailable):
        await store.commit(a_queue())
    async with opened(store):
        await store.commit(a_queue())
    with pytest.raises(StoreUnavailable):
        await store.commit(a_decision(1))
    with pytest.raises(StoreUnavailable):
        await store.last_submission(QUEUE, PullRequestNumber(1))
    with pytest.raises(StoreUnavailable):
        await store.entries(QUEUE, 0, 1)
    with pytest.raises(StoreUnavailable):
        await store.check()


@asynchronous
async def test_closing_twice_is_harmless(store: Store):
    async with opened(store):
        await store.close()


@asynchronous
async def test_an_intact_store_passes_its_check(store: Store):
    async with opened(store):
        await store.check()
        await store.check()


@asynchronous
async def test_concurrent_decisions_and_conflicts_of_many_queues_add_up(store: Store):
    async with opened(store):
        queues = [QueueId(f"q{count}") for count in range(8)]
        await store.commit(*(a_queue(queue, key=QueueKey(REPO, queue)) for queue in queues))

        async def work(queue: QueueId) -> None:
            for version in range(1, 21):
                with suppress(VersionConflict):
                    await store.commit(a_decision(version + 1, QueuePart("wrong", "", b""), queue=queue))
                await store.commit(a_decision(version, a_submission(version), queue=queue))
                assert len((await store.load(queue)).submissions) == version

        await asyncio.gather(*map(work, queues))
        assert [(await store.load(queue)).version for queue in queues] == [20] * 8


ODD = (
    b'{"message": "\\"quoted\\" \\u0000 \\\\ \xc3\xa9 \xf0\x9f\x98\x80"}',
    b"\n\t ' ; --",
    b"",
    b"\xff\xfe no text",
    b"x" * 100_000,
)


@pytest.mark.parametrize("body", ODD)
@asynchronous
async def test_bodies_come_back_byte_for_byte(store: Store, body: bytes):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(
            a_decision(1, QueuePart("shelf", "key", body), a_submission(1, body=body), a_run("run", body=body))
        )
        loaded = await store.load(QUEUE)
        assert (loaded.parts, loaded.submissions, loaded.runs) == ((QueuePart("shelf", "key", body),), (body,), (body,))


@asynchronous
async def test_concurrent_decisions_of_many_queues_are_each_saved_or_refused(store: Store):
    async with opened(store):
        queues = [QueueId(f"q{number}") for number in range(8)]
        for queue in queues:
            await store.commit(a_queue(queue, key=QueueKey(REPO, queue)))
        saved = [
            store.commit(a_decision(1 + (queue == "q3"), QueuePart("shelf", "key", b"one"), queue=queue))
            for queue in queues
        ]
        outcomes = await asyncio.gather(*saved, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [
            VersionConflict if queue == "q3" else type(None) for queue in queues
        ]
        facts = [(await store.load(queue)).parts for queue in queues]
        assert [len(found) for found in facts] == [int(queue != "q3") for queue in queues]
