"""Replicas that write at the same time neither lock each other out nor hide from each other what they wrote."""

import asyncio
from contextlib import suppress
from itertools import permutations

from mergeyard.domain.ids import QueueId
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.sharing import SharedStore
from mergeyard.ports.store import Outrun
from mergeyard.ports.writes import AppendEntries
from tests.contract.sharing.given import all_opened
from tests.contract.store.given import QUEUE, REPO, a_queue, a_stay, a_turn, an_entry
from tests.support.asynchronous import asynchronous
from tests.support.postgres import ask

QUEUES = [QueueId(f"q{count}") for count in range(3)]
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


@asynchronous
async def test_commits_of_several_queues_never_wait_in_a_circle(one: SharedStore, other: SharedStore, url: str):
    async with all_opened(one, other):
        await one.commit(*(a_queue(queue, key=QueueKey(REPO, queue)) for queue in QUEUES))

        async def race(store: SharedStore, order: tuple[QueueId, ...]) -> int:
            """How often it was first."""
            first = 0
            for version in range(1, 31):
                with suppress(Outrun):
                    await store.commit(*(a_turn(version, a_stay(version), queue=queue) for queue in order))
                    first += 1
            return first

        wins = await asyncio.gather(*(race(store, order) for store in (one, other) for order in permutations(QUEUES)))
        assert sum(wins) == 30
        assert [(await one.load(queue)).version for queue in QUEUES] == [30] * 3
    assert await ask(url, DEADLOCKS) == [(0,)]


@asynchronous
async def test_who_follows_a_journal_misses_nothing_of_what_others_append(one: SharedStore, other: SharedStore):
    async with all_opened(one, other):
        await one.commit(a_queue())

        async def append(store: SharedStore, name: str) -> None:
            for count in range(20):
                told = AppendEntries(tuple(an_entry(f"{name} {count} {part}") for part in range(3)))
                await store.commit(told)

        names = [f"{name}{count}" for name in "ab" for count in range(8)]
        appending = asyncio.gather(*(append(one if name < "b" else other, name) for name in names))
        place, read = 0, list[bytes]()
        while len(read) < len(names) * 20 * 3:
            done = appending.done()
            entries = await one.entries(QUEUE, place, 1000)
            assert entries or not done, f"{len(read)} entries are read, and no more are to be seen"
            read += [entry.body for entry in entries]
            place = entries[-1].seq if entries else place
        await appending
        assert len(set(read)) == len(read)


@asynchronous
async def test_a_loaded_queue_is_as_it_was_at_one_version_while_another_replica_takes_turns(
    one: SharedStore, other: SharedStore
):
    async with all_opened(one, other):
        await one.commit(a_queue())

        async def take_turns() -> None:
            for version in range(1, 101):
                await one.commit(a_turn(version, a_stay(version)))

        turning = asyncio.create_task(take_turns())
        while not turning.done():
            loaded = await other.load(QUEUE)
            assert len(loaded.stays) == loaded.version
            changes = await other.changes(QUEUE, loaded.version)
            assert changes is not None
            assert len(changes.stays) == changes.version - loaded.version
        await turning
