"""A database is transferred to any other kind without loss, and the service continues there."""

import gzip
import os
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mergeyard.cli.db.checks import count_tables
from mergeyard.cli.db.transfer import export_database, import_database
from mergeyard.domain.ids import PullRequestNumber, QueueId, Sha, SubmissionId
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.archive import TABLES
from mergeyard.ports.store import AuditQuery, Store, SubmissionsQuery
from mergeyard.ports.writes import AppendEntries, SaveDelivery
from mergeyard.service.persistence import decode_queue
from tests.contract.archive.databases import HOSTILE, OTHER_REPO, Database, fill_database, sqlite
from tests.contract.store.builders import (
    HEAD,
    OTHER,
    QUEUE,
    REPO,
    a_decision,
    a_queue,
    a_run,
    an_entry,
    digest_of,
    opened,
)
from tests.support.asynchronous import asynchronous
from tests.support.long_tests import mark_long_after
from tests.support.queue_part_store import stored_values
from tests.support.scenario import a_scenario

pytestmark = pytest.mark.long


async def move(source: Database, target: Database, file: Path) -> None:
    sent = await export_database(file, source.archive)
    assert await import_database(file, target.archive) == tuple(sent)


async def everything(store: Store) -> list[object]:
    """Reads everything that a store can return."""
    queues = await store.queues()
    return [
        queues,
        [await store.load(queue.id) for queue in queues],
        [await store.submissions(queue.id, SubmissionsQuery(take=99)) for queue in queues],
        [await store.decided_runs(queue.id, Instant(0), Instant(99), 99) for queue in queues],
        [await store.entries(queue.id, 0, 99) for queue in queues],
        await store.transitions([queue.id for queue in queues], Instant(0), Instant(99)),
        await store.timeline(QUEUE, SubmissionId(1), 9),
        await store.last_submission(QueueId("q0"), PullRequestNumber(1)),
        await store.last_submission_of_branch(QUEUE, HOSTILE),
        await store.impacted_targets(QUEUE, PullRequestNumber(5), HEAD),
        [await store.statuses(repo, Sha(HEAD)) for repo in (REPO, OTHER_REPO)],
        await store.response("t1", HOSTILE),
        [await store.token(digest_of(name)) for name in ("ada", HOSTILE)],
        await store.tokens(),
        await store.audit_entries(AuditQuery(take=99)),
        [await store.cursor(HOSTILE, queue.id) for queue in queues],
        [await store.queues_with_unread_entries(consumer) for consumer in (HOSTILE, "b")],
        await store.stalled_since("b", QUEUE),
        [await store.thread_state(queue, PullRequestNumber(5)) for queue in (QUEUE, QueueId("q0"))],
        await store.webhooks(),
        await store.deliveries("w1", 9),
        await store.delivery(HOSTILE, HOSTILE),
    ]


@asynchronous
async def test_a_transfer_loses_nothing(database: Database, other_database: Database, tmp_path: Path):
    await fill_database(database.store())
    await move(database, other_database, tmp_path / "all.jsonl")
    async with opened(database.store()) as before, opened(other_database.store()) as after:
        assert await everything(after) == await everything(before)


@asynchronous
async def test_sessions_are_not_transferred(database: Database, other_database: Database, tmp_path: Path):
    await fill_database(database.store())
    await move(database, other_database, tmp_path / "all.jsonl")
    async with opened(database.store()) as before, opened(other_database.store()) as after:
        assert await before.session(digest_of("ada")) is not None
        assert await after.session(digest_of("ada")) is None


@asynchronous
async def test_the_sample_data_fills_every_table(database: Database):
    await fill_database(database.store())
    async with database.archive.open_reader() as reading:
        assert all(count.rows > 0 for count in await count_tables(reading))


@asynchronous
async def test_a_transfer_there_and_back_gives_the_same_file(embedded: Database, shared: Database, tmp_path: Path):
    end = sqlite(tmp_path / "end")
    await fill_database(embedded.store())
    await move(embedded, shared, tmp_path / "there.jsonl")
    await move(shared, end, tmp_path / "back.jsonl")
    await export_database(tmp_path / "again.jsonl", end.archive)
    there, back, again = (
        (tmp_path / f"{name}.jsonl").read_bytes().splitlines()[1:] for name in ("there", "back", "again")
    )
    assert there == back == again


@asynchronous
async def test_the_same_rows_have_the_same_checksums_in_every_kind_of_database(embedded: Database, shared: Database):
    """Except runs: PostgreSQL leaves gaps between their row ids."""
    counted: list[object] = []
    for database in (embedded, shared):
        await fill_database(database.store())
        async with database.archive.open_reader() as reading:
            counted.append([count for count in await count_tables(reading) if count.table != "runs"])
    assert counted[0] == counted[1]


@asynchronous
async def test_an_active_queue_is_loaded_unchanged_after_the_transfer(other_database: Database, tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        await scenario.passes(1)
    database = sqlite(tmp_path)
    await move(database, other_database, tmp_path / "all.jsonl.gz")
    async with opened(database.store()) as before, opened(other_database.store()) as after:
        (queue,) = await before.queues()
        assert (queue,) == tuple(await after.queues())
        assert stored_values(decode_queue(await after.load(queue.id))) == stored_values(
            decode_queue(await before.load(queue.id))
        )


@asynchronous
async def test_rows_written_after_the_transfer_get_higher_ids(
    database: Database, other_database: Database, tmp_path: Path
):
    await fill_database(database.store())
    await move(database, other_database, tmp_path / "all.jsonl")
    async with opened(other_database.store()) as store:
        known = max(entry.seq for entry in await store.entries(QUEUE, 0, 99))
        await store.commit(AppendEntries((an_entry("later"),)))
        assert [entry.body for entry in await store.entries(QUEUE, known, 99)] == [b"later"]
        await store.commit(a_decision(5, a_run("b")))
        assert (await store.load(QUEUE)).runs[-1] == b"b"
        await store.commit(SaveDelivery("w1", "e2", b"later"))
        assert (await store.deliveries("w1", 9))[0] == b"later"


@asynchronous
async def test_an_empty_database_can_be_transferred_and_ids_start_at_one(
    database: Database, other_database: Database, tmp_path: Path
):
    await database.archive.migrate()
    await move(database, other_database, tmp_path / "all.jsonl")
    async with opened(other_database.store()) as store:
        await store.commit(AppendEntries((an_entry("first", queue=None),)))
    assert await other_database.execute("SELECT seq FROM journal") == [(1,)]


@asynchronous
async def test_only_the_owner_can_read_an_export_and_it_is_compressed_if_its_name_ends_in_gz(
    database: Database, tmp_path: Path
):
    await fill_database(database.store())
    plain, packed = tmp_path / "all.jsonl", tmp_path / "all.jsonl.gz"
    assert await export_database(plain, database.archive) == await export_database(packed, database.archive)
    assert gzip.decompress(packed.read_bytes()).splitlines()[1:] == plain.read_bytes().splitlines()[1:]
    assert {stat.S_IMODE(file.stat().st_mode) for file in (plain, packed)} == {0o600}
    assert sorted(file for file in tmp_path.iterdir() if file.is_file()) == [plain, packed]


@asynchronous
async def test_an_export_is_a_consistent_snapshot_during_writes(database: Database):
    await fill_database(database.store())
    async with opened(database.store()) as store, database.archive.open_reader() as reading:
        first = [row async for row in reading.rows(TABLES[0])]
        await store.commit(a_decision(2, queue=OTHER), AppendEntries((an_entry("meanwhile"),)))
        assert [row async for row in reading.rows(TABLES[0])] == first
        journal = next(table for table in TABLES if table.name == "journal")
        assert len([row async for row in reading.rows(journal)]) == 3


# Only PostgreSQL


@asynchronous
async def test_replicas_are_notified_of_changes_after_the_transfer(
    embedded: Database, shared: Database, tmp_path: Path
):
    await fill_database(embedded.store())
    await move(embedded, shared, tmp_path / "all.jsonl")
    for table in ("queue_parts", "submissions", "runs"):
        versions = f"SELECT count(*) FROM {table} JOIN queues ON queues.id = queue AND queues.version = {table}.version"
        assert await shared.execute(versions) == await shared.execute(f"SELECT count(*) FROM {table}")
    async with opened(shared.store()) as store:
        await store.commit(a_decision(5, a_run("b")))
        changes = await store.changes(QUEUE, 4)
        assert changes
        assert [run.body for run in changes.runs] == [b"b"]


@asynchronous
async def test_every_repository_with_a_live_queue_can_be_leased_after_the_transfer(
    embedded: Database, shared: Database, tmp_path: Path
):
    await fill_database(embedded.store())
    await move(embedded, shared, tmp_path / "all.jsonl")
    leases = await shared.execute("SELECT host, name, holder, fence FROM leases ORDER BY name")
    assert leases == [("git.local", "app", None, 0), ("git.local", "other", None, 0)]


ROWS = 5000
LONG_TEXT = "as much text as people write about a change " * 20
MEGABYTE = 1_000_000


@contextmanager
def within(megabytes: int) -> Generator[None]:
    """Asserts that no more memory is in use at any time."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < megabytes * MEGABYTE


@asynchronous
async def test_thousands_of_rows_are_transferred_with_little_memory(
    embedded: Database, shared: Database, tmp_path: Path
):
    async with opened(embedded.store()) as store:
        await store.commit(a_queue())
        for _ in range(20):
            await store.commit(AppendEntries((an_entry(LONG_TEXT),) * (ROWS // 20)))
    there, back, end = tmp_path / "there.jsonl", tmp_path / "back.jsonl", sqlite(tmp_path / "end")
    with within(3):
        await export_database(there, embedded.archive)
        await import_database(there, shared.archive)
        await export_database(back, shared.archive)
        counts = await import_database(back, end.archive)
    assert there.stat().st_size > 5 * MEGABYTE
    assert [count.rows for count in counts if count.table == "journal"] == [ROWS]


COMMAND = [sys.executable, "-m", "mergeyard", "db", "import"]


async def a_large_export(tmp_path: Path) -> Path:
    source, file = sqlite(tmp_path / "source"), tmp_path / "all.jsonl"
    async with opened(source.store()) as store:
        await store.commit(a_queue())
        await store.commit(AppendEntries((an_entry("word " * 200),) * 5000))
    await export_database(file, source.archive)
    return file


@pytest.mark.parametrize("ending", mark_long_after(1, ["kill", "terminate"]))
@asynchronous
async def test_an_interrupted_import_leaves_no_rows(ending: str, database: Database, tmp_path: Path):
    file = await a_large_export(tmp_path)
    content, pipe = file.read_bytes(), tmp_path / "pipe"
    os.mkfifo(pipe)
    options = ["--database-url", database.option, "--data-dir", str(tmp_path / "lock")]
    importing = subprocess.Popen([*COMMAND, str(pipe), *options], stderr=subprocess.PIPE)
    with pipe.open("wb", 0) as slow:
        # A pipe buffers little, so once this much was accepted, nearly all of it was read and written.
        slow.write(content[: len(content) // 2])
        getattr(importing, ending)()
        importing.communicate()
    assert importing.returncode < 0
    async with database.archive.open_reader() as reading:
        assert sum(count.rows for count in await count_tables(reading)) == 0
    assert sum(count.rows for count in await import_database(file, database.archive)) == 5001
