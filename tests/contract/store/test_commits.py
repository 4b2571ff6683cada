"""A commit writes all of it or nothing; commits that wait together do not disturb each other."""

import asyncio
from contextlib import suppress

import pytest

from mergeyard.domain.ids import PrNumber, QueueId, Ticket
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.store import Outrun, Store, StoreTrouble
from mergeyard.ports.writes import AppendEntries, Fact
from tests.contract.store.given import QUEUE, REPO, a_queue, a_run, a_stay, a_turn, an_entry, opened
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_what_was_committed_is_there_after_a_restart(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_turn(1, Fact("queue", "", b"all of it"), a_stay(7)))
    async with opened(store):
        loaded = await store.load(QUEUE)
        assert (loaded.version, loaded.facts, loaded.stays) == (1, (Fact("queue", "", b"all of it"),), (b"stay 7",))


@asynchronous
async def test_one_sees_what_one_committed_at_once(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        for version in range(1, 50):
            await store.commit(a_turn(version, a_stay(version)), AppendEntries((an_entry(f"{version}"),)))
            assert await store.stay(QUEUE, Ticket(version)) == b"stay %d" % version
            assert len(await store.entries(QUEUE, 0, 100)) == version


@asynchronous
async def test_a_turn_that_does_not_follow_the_stored_one_is_outrun_and_writes_nothing(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        await store.commit(a_turn(1, Fact("shelf", "key", b"first")))
        for version in (0, 1, 3):
            with pytest.raises(Outrun):
                await store.commit(a_turn(version, Fact("shelf", "key", b"second"), a_stay(1)))
        loaded = await store.load(QUEUE)
        assert (loaded.version, loaded.facts, loaded.stays) == (1, (Fact("shelf", "key", b"first"),), ())


@asynchronous
async def test_a_turn_of_a_queue_that_never_was_is_outrun(store: Store):
    async with opened(store):
        with pytest.raises(Outrun):
            await store.commit(a_turn(1))


@asynchronous
async def test_a_commit_that_fails_in_its_last_write_leaves_nothing_of_its_first(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        with pytest.raises(Outrun):
            await store.commit(AppendEntries((an_entry("never"),)), a_turn(1, a_stay(1)), a_turn(1))
        assert await store.entries(QUEUE, 0, 10) == ()
        assert await store.stay(QUEUE, Ticket(1)) is None


@asynchronous
async def test_of_two_turns_at_once_one_is_outrun(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        racing = [store.commit(a_turn(1, Fact("shelf", "key", b"%d" % racer))) for racer in range(10)]
        outcomes = await asyncio.gather(*racing, return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", *["Outrun"] * 9]
        winner = outcomes.index(None)
        assert (await store.load(QUEUE)).facts == (Fact("shelf", "key", b"%d" % winner),)


@asynchronous
async def test_a_refused_commit_harms_none_of_those_it_waited_with(store: Store):
    async with opened(store):
        queues = [QueueId(f"q{count}") for count in range(20)]
        await store.commit(*(a_queue(queue, key=QueueKey(REPO, queue)) for queue in queues))
        turns = [a_turn(2 if at % 3 == 0 else 1, a_stay(1), queue=queue) for at, queue in enumerate(queues)]
        outcomes = await asyncio.gather(*map(store.commit, turns), return_exceptions=True)
        refused = [isinstance(outcome, Outrun) for outcome in outcomes]
        missing = [await store.stay(queue, Ticket(1)) is None for queue in queues]
        assert refused == missing == [at % 3 == 0 for at in range(20)]


@asynchronous
async def test_a_mistake_of_a_caller_is_told_to_that_caller_alone(store: Store):
    async with opened(store):
        await store.commit(a_queue())
        mistaken = store.commit(AppendEntries((an_entry("nobody's", queue=QueueId("unheard of")),)))
        sound = store.commit(AppendEntries((an_entry("ours"),)))
        mistake, success = await asyncio.gather(mistaken, sound, return_exceptions=True)
        assert isinstance(mistake, Exception)
        assert not isinstance(mistake, StoreTrouble)
        assert success is None
        assert [entry.body for entry in await store.entries(QUEUE, 0, 10)] == [b"ours"]


@asynchronous
async def test_a_caller_that_gives_up_waiting_does_not_disturb_the_others(store: Store):
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
async def test_closing_finishes_what_waits(store: Store):
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
    with pytest.raises(StoreTrouble):
        await store.commit(a_queue())
    async with opened(store):
        await store.commit(a_queue())
    with pytest.raises(StoreTrouble):
        await store.commit(a_turn(1))
    with pytest.raises(StoreTrouble):
        await store.last_stay(QUEUE, PrNumber(1))
    with pytest.raises(StoreTrouble):
        await store.entries(QUEUE, 0, 1)
    with pytest.raises(StoreTrouble):
        await store.check()


@asynchronous
async def test_closing_twice_is_harmless(store: Store):
    async with opened(store):
        await store.close()


@asynchronous
async def test_a_sound_store_passes_its_check(store: Store):
    async with opened(store):
        await store.check()
        await store.check()


@asynchronous
async def test_everything_at_once_adds_up(store: Store):
    async with opened(store):
        queues = [QueueId(f"q{count}") for count in range(8)]
        await store.commit(*(a_queue(queue, key=QueueKey(REPO, queue)) for queue in queues))

        async def work(queue: QueueId) -> None:
            for version in range(1, 21):
                with suppress(Outrun):
                    await store.commit(a_turn(version + 1, Fact("wrong", "", b""), queue=queue))
                await store.commit(a_turn(version, a_stay(version), queue=queue))
                assert len((await store.load(queue)).stays) == version

        await asyncio.gather(*map(work, queues))
        assert [(await store.load(queue)).version for queue in queues] == [20] * 8


ODD = (
    b'{"words": "\\"quoted\\" \\u0000 \\\\ \xc3\xa9 \xf0\x9f\x98\x80"}',
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
        await store.commit(a_turn(1, Fact("shelf", "key", body), a_stay(1, body=body), a_run("run", body=body)))
        loaded = await store.load(QUEUE)
        assert (loaded.facts, loaded.stays, loaded.runs) == ((Fact("shelf", "key", body),), (body,), (body,))


@asynchronous
async def test_turns_of_many_queues_at_once_are_each_saved_or_refused(store: Store):
    async with opened(store):
        queues = [QueueId(f"q{number}") for number in range(8)]
        for queue in queues:
            await store.commit(a_queue(queue, key=QueueKey(REPO, queue)))
        saved = [
            store.commit(a_turn(1 + (queue == "q3"), Fact("shelf", "key", b"one"), queue=queue)) for queue in queues
        ]
        outcomes = await asyncio.gather(*saved, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [Outrun if queue == "q3" else type(None) for queue in queues]
        facts = [(await store.load(queue)).facts for queue in queues]
        assert [len(found) for found in facts] == [int(queue != "q3") for queue in queues]
