"""Replicas that write at the same time neither block each other nor hide entries from each other."""

import asyncio
from contextlib import suppress
from itertools import permutations

import pytest

from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.ports.store import SharedStore, VersionConflict
from mergeyard.ports.writes import AppendEntries
from tests.contract.replication.support import open_all
from tests.contract.store.builders import QUEUE, REPO, a_decision, a_queue, a_submission, an_entry
from tests.support.asynchronous import asynchronous
from tests.support.postgres import execute

QUEUES = [QueueId(f"q{count}") for count in range(3)]
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


@pytest.mark.long
@asynchronous
async def test_commits_of_several_queues_never_deadlock(one: SharedStore, other: SharedStore, url: str):
    async with open_all(one, other):
        await one.commit(*(a_queue(queue, key=QueueKey(REPO, queue)) for queue in QUEUES))

        async def race(store: SharedStore, order: tuple[QueueId, ...]) -> int:
            """Returns how often this store was first."""
            first = 0
            for version in range(1, 31):
                with suppress(VersionConflict):
                    await store.commit(*(a_decision(version, a_submission(version), queue=queue) for queue in order))
                    first += 1
            return first

        wins = await asyncio.gather(*(race(store, order) for store in (one, other) for order in permutations(QUEUES)))
        assert sum(wins) == 30
        assert [(await one.load(queue)).version for queue in QUEUES] == [30] * 3
    assert await execute(url, DEADLOCKS) == [(0,)]


@asynchronous
async def test_a_journal_reader_misses_no_entry_that_others_append(one: SharedStore, other: SharedStore):
    async with open_all(one, other):
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
            assert entries or not done, f"{len(read)} entries were read, and no more are visible"
            read += [entry.body for entry in entries]
            place = entries[-1].seq if entries else place
        await appending
        assert len(set(read)) == len(read)


@asynchronous
async def test_a_loaded_queue_is_consistent_while_another_replica_commits_decisions(
    one: SharedStore, other: SharedStore
):
    async with open_all(one, other):
        await one.commit(a_queue())

        async def commit_decisions() -> None:
            for version in range(1, 101):
                await one.commit(a_decision(version, a_submission(version)))

        turning = asyncio.create_task(commit_decisions())
        while not turning.done():
            loaded = await other.load(QUEUE)
            assert len(loaded.submissions) == loaded.version
            changes = await other.changes(QUEUE, loaded.version)
            assert changes is not None
            assert len(changes.submissions) == changes.version - loaded.version
        await turning
