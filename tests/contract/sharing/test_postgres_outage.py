"""While the database is gone everybody hears so in words, and when it is back everything goes on by itself."""

import asyncio
import time
from contextlib import suppress

import pytest

from mergeyard.adapters.store_postgres.connecting import connect_one
from mergeyard.adapters.store_postgres.store import SECONDS_TO_CHECK, PostgresStore
from mergeyard.domain.ids import PrNumber, QueueId
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.store import StoreTrouble
from mergeyard.ports.writes import AppendEntries
from tests.contract.store.given import QUEUE, REPO, a_queue, a_stay, a_turn, an_entry, opened
from tests.support.asynchronous import asynchronous
from tests.support.postgres import PostgresServer
from tests.support.waiting import come_true

TAKEOVER_IN_SECONDS = 15


@asynchronous
async def test_everything_is_trouble_while_the_database_is_gone_and_works_again_afterwards(server: PostgresServer):
    store = PostgresStore(await asyncio.to_thread(server.fresh_database))
    async with opened(store):
        await store.commit(a_queue())
        await asyncio.to_thread(server.stop)
        for attempt in (
            lambda: store.commit(a_turn(1)),
            lambda: store.load(QUEUE),
            lambda: store.last_stay(QUEUE, PrNumber(1)),
            lambda: store.report("one", 1),
            lambda: store.call_out("word"),
        ):
            with pytest.raises(StoreTrouble, match=r"reached|lost|stopped"):
                await attempt()
        begun = time.monotonic()
        with pytest.raises(StoreTrouble):
            await store.check()
        assert time.monotonic() - begun < SECONDS_TO_CHECK + 1
        await asyncio.to_thread(server.start)
        await store.check()
        await store.commit(a_turn(1, a_stay(1)))
        assert (await store.load(QUEUE)).version == 1


@asynchronous
async def test_nothing_that_was_promised_is_lost_when_the_database_crashes_under_load(server: PostgresServer):
    store = PostgresStore(await asyncio.to_thread(server.fresh_database))
    promised = dict[QueueId, int]()
    queues = [QueueId(f"q{count}") for count in range(8)]

    async def take_turns(queue: QueueId) -> None:
        """Until somebody has pulled the plug."""
        while True:
            version = promised.get(queue, 0) + 1
            told = AppendEntries((an_entry("turn", queue=queue),))
            await store.commit(a_turn(version, a_stay(version), queue=queue), told)
            promised[queue] = version

    async with opened(store):
        await store.commit(*(a_queue(queue, key=QueueKey(REPO, queue)) for queue in queues))
        for _ in range(2):
            promised.update({queue: (await store.load(queue)).version for queue in queues})
            goal = {queue: version + 20 for queue, version in promised.items()}
            turning = [asyncio.create_task(take_turns(queue)) for queue in queues]
            await come_true(lambda goal=goal: all(promised[queue] >= goal[queue] for queue in queues))
            await asyncio.to_thread(server.crash)
            outcomes = await asyncio.gather(*turning, return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} == {StoreTrouble}
            await asyncio.to_thread(server.start)
            for queue in queues:
                loaded = await store.load(queue)
                assert loaded.version in {promised[queue], promised[queue] + 1}
                assert len(loaded.stays) == len(await store.entries(queue, 0, 10_000)) == loaded.version


@asynchronous
async def test_a_database_that_does_not_answer_fails_the_check_quickly(server: PostgresServer):
    """Somebody holds the row that the check writes to, as a server that hangs would."""
    url = await asyncio.to_thread(server.fresh_database)
    async with opened(PostgresStore(url)) as store:
        holder = await connect_one(url)
        async with holder.transaction():
            await holder.execute("SELECT FROM pulse FOR UPDATE")
            begun = time.monotonic()
            with pytest.raises(StoreTrouble, match="does not answer"):
                await store.check()
            assert time.monotonic() - begun < SECONDS_TO_CHECK + 1
        await holder.close()
        await store.check()


@asynchronous
async def test_a_replica_that_stops_in_the_middle_of_a_commit_locks_others_out_only_for_seconds(url: str):
    async with opened(PostgresStore(url)) as store:
        await store.commit(a_queue())
        stopped = await connect_one(url)
        begun = time.monotonic()
        with suppress(StoreTrouble, ConnectionError):
            await stopped.execute("BEGIN")
            await stopped.execute("UPDATE queues SET version = 1")
        await store.commit(a_turn(1, a_stay(1)))
        assert time.monotonic() - begun < TAKEOVER_IN_SECONDS
        stopped.terminate()
