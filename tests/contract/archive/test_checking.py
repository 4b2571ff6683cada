"""A check finds what would keep the service from working, and changes nothing."""

from pathlib import Path

import pytest

from mergeyard.cli.db.checking import Findings, findings
from mergeyard.cli.db.exporting import export_to
from mergeyard.cli.db.importing import import_from
from mergeyard.cli.db.refusing import Refused
from mergeyard.ports.store import StoreTrouble
from tests.contract.archive.holding import hold_everything
from tests.contract.archive.places import Place, sqlite
from tests.support.asynchronous import asynchronous
from tests.support.scenario import a_scenario


async def queues_at_work(place: Place, tmp_path: Path) -> None:
    """Filled by the service itself, with queues that it can load."""
    async with a_scenario(tmp_path / "scenario") as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        await scenario.passes(1)
    await export_to(tmp_path / "all.jsonl", sqlite(tmp_path / "scenario").archive)
    await import_from(tmp_path / "all.jsonl", place.archive)


@asynchronous
async def test_what_the_service_wrote_is_sound(place: Place, tmp_path: Path):
    await queues_at_work(place, tmp_path)
    found = await findings(place.archive)
    assert found.faults == []
    assert {count.table: count.rows for count in found.tables}["queues"] == 1


@asynchronous
async def test_a_queue_that_cannot_be_read_is_found(place: Place, tmp_path: Path):
    await queues_at_work(place, tmp_path)
    await place.ask("UPDATE facts SET body = substr(body, 2) WHERE shelf = 'queue'")
    (fault,) = (await findings(place.archive)).faults
    assert fault.startswith("The queue of main of git.local/acme/app cannot be loaded: ")
    assert "ValidationError" in fault


@asynchronous
async def test_a_queue_with_a_missing_part_is_found(place: Place, tmp_path: Path):
    await queues_at_work(place, tmp_path)
    await place.ask("DELETE FROM facts WHERE shelf = 'batch'")
    (fault,) = (await findings(place.archive)).faults
    assert "cannot be loaded: " in fault
    assert "KeyError" in fault


@asynchronous
async def test_rows_without_their_queue_are_found(place: Place, tmp_path: Path):
    await queues_at_work(place, tmp_path)
    await place.ask("UPDATE stays SET queue = 'nobody' WHERE ticket = 1")
    await place.ask("UPDATE facts SET queue = 'nobody' WHERE shelf = 'batch'")
    faults = (await findings(place.archive)).faults
    assert "Rows of stays belong to a queue that is not there: 1." in faults
    assert any(fault.startswith("Rows of facts belong to a queue that is not there: ") for fault in faults)


@asynchronous
async def test_a_changed_row_shows_in_the_checksum_of_its_table_alone(place: Place):
    await hold_everything(place.store())
    before = await findings(place.archive)
    await place.ask("UPDATE tokens SET name = 'eve' WHERE id = 'ada'")
    after = await findings(place.archive)
    assert [new.table for old, new in zip(before.tables, after.tables, strict=True) if old != new] == ["tokens"]


@asynchronous
async def test_a_database_that_is_not_there_is_not_made(embedded: Place, tmp_path: Path):
    with pytest.raises(Refused, match="holds nothing of Mergeyard yet"):
        await findings(embedded.archive)
    assert list(tmp_path.iterdir()) == []


# What only SQLite has


@asynchronous
async def test_a_check_leaves_the_file_as_it_is(embedded: Place, tmp_path: Path):
    await hold_everything(embedded.store())
    before = [(file, file.read_bytes(), file.stat().st_mtime_ns) for file in (tmp_path / "data").iterdir()]
    assert isinstance(await findings(embedded.archive), Findings)
    assert [(file, file.read_bytes(), file.stat().st_mtime_ns) for file in (tmp_path / "data").iterdir()] == before


@asynchronous
async def test_an_index_that_does_not_fit_its_table_is_found(embedded: Place, tmp_path: Path):
    await queues_at_work(embedded, tmp_path)
    await embedded.ask(
        "PRAGMA writable_schema = 1; "
        "UPDATE sqlite_schema SET sql = replace(sql, 'number, ', 'state, ') WHERE name = 'stays_of_number'"
    )
    faults = (await findings(embedded.archive)).faults
    assert any(fault.startswith("The file is damaged: ") for fault in faults)


@asynchronous
async def test_a_file_with_a_broken_page_is_named(embedded: Place, tmp_path: Path):
    await hold_everything(embedded.store())
    file = tmp_path / "data" / "mergeyard.db"
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(StoreTrouble, match="is damaged"):
        await findings(embedded.archive)


# What only PostgreSQL has


@asynchronous
async def test_rows_that_are_newer_than_their_queue_are_found(shared: Place, tmp_path: Path):
    await queues_at_work(shared, tmp_path)
    await shared.ask("UPDATE runs SET version = version + 1")
    (fault,) = (await findings(shared.archive)).faults
    assert fault.startswith("Rows of runs are newer than their queue: ")


@asynchronous
async def test_a_repository_that_nobody_can_work_for_is_found(shared: Place, tmp_path: Path):
    await queues_at_work(shared, tmp_path)
    await shared.ask("DELETE FROM duties")
    assert (await findings(shared.archive)).faults == ["Repositories have queues, but nobody can work for them: 1."]
