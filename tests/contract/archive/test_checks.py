"""A check finds what would keep the service from working, and changes nothing."""

from pathlib import Path

import pytest

from mergeyard.cli.db.checks import DatabaseCommandError, DatabaseReport, check_database
from mergeyard.cli.db.transfer import export_database, import_database
from mergeyard.ports.store import StoreUnavailable
from tests.contract.archive.databases import Database, fill_database, sqlite
from tests.support.asynchronous import asynchronous
from tests.support.scenario import a_scenario

pytestmark = pytest.mark.long


async def fill_with_active_queues(database: Database, tmp_path: Path) -> None:
    """Fills the database by the service itself, with queues that it can load."""
    async with a_scenario(tmp_path / "scenario") as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        await scenario.passes(1)
    await export_database(tmp_path / "all.jsonl", sqlite(tmp_path / "scenario").archive)
    await import_database(tmp_path / "all.jsonl", database.archive)


@asynchronous
async def test_a_database_that_the_service_wrote_passes_the_check(database: Database, tmp_path: Path):
    await fill_with_active_queues(database, tmp_path)
    found = await check_database(database.archive)
    assert found.problems == []
    assert {count.table: count.rows for count in found.tables}["queues"] == 1


@asynchronous
async def test_a_queue_that_cannot_be_read_is_reported(database: Database, tmp_path: Path):
    await fill_with_active_queues(database, tmp_path)
    await database.execute("UPDATE queue_parts SET body = substr(body, 2) WHERE kind = 'queue'")
    (fault,) = (await check_database(database.archive)).problems
    assert fault.startswith("The queue of main of git.local/acme/app cannot be loaded: ")
    assert "ValidationError" in fault


@asynchronous
async def test_a_queue_with_a_missing_part_is_reported(database: Database, tmp_path: Path):
    await fill_with_active_queues(database, tmp_path)
    await database.execute("DELETE FROM queue_parts WHERE kind = 'batch'")
    (fault,) = (await check_database(database.archive)).problems
    assert "cannot be loaded: " in fault
    assert "KeyError" in fault


@asynchronous
async def test_rows_without_their_queue_are_reported(database: Database, tmp_path: Path):
    await fill_with_active_queues(database, tmp_path)
    await database.execute("UPDATE submissions SET queue = 'missing' WHERE submission_id = 1")
    await database.execute("UPDATE queue_parts SET queue = 'missing' WHERE kind = 'batch'")
    faults = (await check_database(database.archive)).problems
    assert "Rows of submissions refer to a queue that does not exist: 1." in faults
    assert any(fault.startswith("Rows of queue_parts refer to a queue that does not exist: ") for fault in faults)


@asynchronous
async def test_a_changed_row_changes_only_the_checksum_of_its_table(database: Database):
    await fill_database(database.store())
    before = await check_database(database.archive)
    await database.execute("UPDATE tokens SET name = 'eve' WHERE id = 'ada'")
    after = await check_database(database.archive)
    assert [new.table for old, new in zip(before.tables, after.tables, strict=True) if old != new] == ["tokens"]


@asynchronous
async def test_a_check_does_not_create_a_missing_database(embedded: Database, tmp_path: Path):
    with pytest.raises(DatabaseCommandError, match="contains no Mergeyard database"):
        await check_database(embedded.archive)
    assert list(tmp_path.iterdir()) == []


# Only SQLite


@asynchronous
async def test_a_check_does_not_change_the_file(embedded: Database, tmp_path: Path):
    await fill_database(embedded.store())
    before = [(file, file.read_bytes(), file.stat().st_mtime_ns) for file in (tmp_path / "data").iterdir()]
    assert isinstance(await check_database(embedded.archive), DatabaseReport)
    assert [(file, file.read_bytes(), file.stat().st_mtime_ns) for file in (tmp_path / "data").iterdir()] == before


@asynchronous
async def test_an_index_that_does_not_match_its_table_is_reported(embedded: Database, tmp_path: Path):
    await fill_with_active_queues(embedded, tmp_path)
    await embedded.execute(
        "PRAGMA writable_schema = 1; "
        "UPDATE sqlite_schema SET sql = replace(sql, 'number, ', 'state, ') WHERE name = 'submissions_of_number'"
    )
    faults = (await check_database(embedded.archive)).problems
    assert any(fault.startswith("The file is damaged: ") for fault in faults)


@asynchronous
async def test_a_file_with_a_corrupt_page_is_reported(embedded: Database, tmp_path: Path):
    await fill_database(embedded.store())
    file = tmp_path / "data" / "mergeyard.db"
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(StoreUnavailable, match="is damaged"):
        await check_database(embedded.archive)


# Only PostgreSQL


@asynchronous
async def test_rows_that_are_newer_than_their_queue_are_reported(shared: Database, tmp_path: Path):
    await fill_with_active_queues(shared, tmp_path)
    await shared.execute("UPDATE runs SET version = version + 1")
    (fault,) = (await check_database(shared.archive)).problems
    assert fault.startswith("Rows of runs are newer than their queue: ")


@asynchronous
async def test_a_repository_without_a_lease_row_is_reported(shared: Database, tmp_path: Path):
    await fill_with_active_queues(shared, tmp_path)
    await shared.execute("DELETE FROM leases")
    (fault,) = (await check_database(shared.archive)).problems
    assert fault == "Repositories have queues but no lease, so no replica can work for them: 1."
