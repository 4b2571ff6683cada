"""The SQLite database is copied while a server runs, and restored only while none does."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.cli.db.checks import DatabaseCommandError, exclude_server
from mergeyard.cli.db.transfer import back_up_database, restore_backup
from mergeyard.ports.store import StoreUnavailable
from mergeyard.ports.writes import AppendEntries
from mergeyard.settings import Settings
from tests.contract.archive.databases import SqliteDatabase, fill_database
from tests.contract.store.builders import QUEUE, an_entry, opened
from tests.support.asynchronous import asynchronous
from tests.support.forked_server import ForkedServer

pytestmark = pytest.mark.long


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "backup.db"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkedServer]:
    server = ForkedServer(tmp_path)
    server.start()
    yield server
    server.stop()


async def entries_in(database: Path) -> int:
    async with opened(SqliteStore(database)) as store:
        return len(await store.entries(QUEUE, 0, 99))


@asynchronous
async def test_a_backup_contains_what_was_written_before_it_and_nothing_later(settings: Settings, copy: Path):
    await fill_database(SqliteStore(settings.database_path))
    async with opened(SqliteStore(settings.database_path)) as store:
        await store.commit(AppendEntries((an_entry("before"),)))
        back_up_database(settings, copy)
        await store.commit(AppendEntries((an_entry("later"),)))
    assert await entries_in(settings.database_path) == 4
    restore_backup(settings, copy)
    assert await entries_in(settings.database_path) == 3


@asynchronous
async def test_a_backup_is_one_file_that_only_the_owner_can_read(settings: Settings, copy: Path):
    await fill_database(SqliteStore(settings.database_path))
    back_up_database(settings, copy)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert sorted(file.name for file in copy.parent.iterdir()) == ["backup.db", "data"]
    before = copy.read_bytes()
    assert before[18:20] == b"\1\1", "the backup is in WAL mode"
    restore_backup(settings, copy)
    assert copy.read_bytes() == before
    assert stat.S_IMODE(settings.database_path.stat().st_mode) == 0o600


@asynchronous
async def test_a_backup_of_a_damaged_database_is_refused(settings: Settings, copy: Path):
    await fill_database(SqliteStore(settings.database_path))
    await SqliteDatabase(settings.database_path).execute(
        "UPDATE submissions SET queue = 'missing' WHERE submission_id = 3"
    )
    with pytest.raises(StoreUnavailable, match="is damaged"):
        back_up_database(settings, copy)
    assert not copy.exists()


@asynchronous
async def test_a_restore_keeps_a_copy_of_the_replaced_database(settings: Settings, copy: Path):
    await fill_database(SqliteStore(settings.database_path))
    back_up_database(settings, copy)
    async with opened(SqliteStore(settings.database_path)) as store:
        await store.commit(AppendEntries((an_entry("later"),)))
    old_copy = restore_backup(settings, copy)
    assert old_copy
    assert (await entries_in(old_copy), await entries_in(settings.database_path)) == (3, 2)
    assert {file.name for file in settings.data_dir.iterdir()} == {"mergeyard.db", old_copy.name, "server.lock"}


@asynchronous
async def test_a_restore_replaces_a_corrupt_database_with_its_side_files(settings: Settings, copy: Path):
    await fill_database(SqliteStore(settings.database_path))
    back_up_database(settings, copy)
    settings.database_path.write_bytes(b"no database at all" * 1000)
    for beside in ("-wal", "-shm", "-journal"):
        settings.database_path.with_name(f"mergeyard.db{beside}").write_bytes(b"and what a crash left behind")
    old_copy = restore_backup(settings, copy)
    assert old_copy
    assert old_copy.read_bytes().startswith(b"no database at all")
    assert {file.name for file in settings.data_dir.iterdir()} == {"mergeyard.db", old_copy.name, "server.lock"}
    assert await entries_in(settings.database_path) == 2


@asynchronous
async def test_a_restore_keeps_the_write_ahead_log_of_a_killed_server(settings: Settings, copy: Path, tmp_path: Path):
    await fill_database(SqliteStore(settings.database_path))
    back_up_database(settings, copy)
    async with opened(SqliteStore(settings.database_path)) as store:
        await store.commit(AppendEntries((an_entry("later"),)))
        left = {file.name: file.read_bytes() for file in settings.data_dir.iterdir()}
    assert left["mergeyard.db-wal"]
    killed = Settings(data_dir=tmp_path / "killed")
    killed.data_dir.mkdir()
    for name, content in left.items():
        (killed.data_dir / name).write_bytes(content)
    old_copy = restore_backup(killed, copy)
    assert old_copy
    assert {file.name for file in killed.data_dir.iterdir()} == {"mergeyard.db", old_copy.name, "server.lock"}
    assert (await entries_in(old_copy), await entries_in(killed.database_path)) == (3, 2)


@asynchronous
async def test_a_database_that_another_process_has_open_is_not_replaced(settings: Settings, copy: Path):
    await fill_database(SqliteStore(settings.database_path))
    back_up_database(settings, copy)
    async with opened(SqliteStore(settings.database_path)) as store:
        with pytest.raises(StoreUnavailable, match=r"Another process keeps .* locked"):
            restore_backup(settings, copy)
        await store.commit(AppendEntries((an_entry("later"),)))
    assert await entries_in(settings.database_path) == 3


@asynchronous
async def test_only_an_intact_mergeyard_backup_is_restored(settings: Settings, copy: Path):
    await fill_database(SqliteStore(settings.database_path))
    back_up_database(settings, copy)
    whole, present = copy.read_bytes(), settings.database_path.read_bytes()
    for planted in (b"", b"a diary" * 999, whole[:4096] + b"\xff" * (len(whole) - 4096), whole[: len(whole) // 2]):
        copy.write_bytes(planted)
        with pytest.raises(StoreUnavailable):
            restore_backup(settings, copy)
    assert settings.database_path.read_bytes() == present
    assert {file.name for file in settings.data_dir.iterdir()} == {"mergeyard.db", "server.lock"}


@asynchronous
async def test_a_backup_of_a_newer_version_is_not_restored(settings: Settings, copy: Path):
    await fill_database(SqliteStore(settings.database_path))
    back_up_database(settings, copy)
    await SqliteDatabase(copy).execute("INSERT INTO migrations VALUES (999, 'from_the_future')")
    with pytest.raises(StoreUnavailable, match="newer version of Mergeyard"):
        restore_backup(settings, copy)


def test_a_backup_can_be_made_but_not_restored_while_the_server_runs(
    server: ForkedServer, settings: Settings, copy: Path
):
    back_up_database(settings, copy)
    present = settings.database_path.stat().st_ino
    with pytest.raises(DatabaseCommandError, match=r"A server is using .*: stop it first"):
        restore_backup(settings, copy)
    assert settings.database_path.stat().st_ino == present
    assert server.alive


def test_a_server_does_not_start_during_a_restore(tmp_path: Path, settings: Settings):
    server = ForkedServer(tmp_path)
    with exclude_server(settings.data_dir), pytest.raises(AssertionError, match="Another server uses"):
        server.start()


def test_a_backup_without_a_database_is_refused(settings: Settings, copy: Path, tmp_path: Path):
    with pytest.raises(DatabaseCommandError, match="There is no database"):
        back_up_database(settings, copy)
    assert list(tmp_path.iterdir()) == []
