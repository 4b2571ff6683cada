"""The embedded database is copied while a server works, and put back only while none does."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.cli.db.copying import back_up, put_back
from mergeyard.cli.db.refusing import Refused
from mergeyard.cli.db.solitude import no_server_in
from mergeyard.ports.store import StoreTrouble
from mergeyard.ports.writes import AppendEntries
from mergeyard.settings import Settings
from tests.contract.archive.holding import hold_everything
from tests.contract.archive.places import SqlitePlace
from tests.contract.store.given import QUEUE, an_entry, opened
from tests.support.asynchronous import asynchronous
from tests.support.quick_server import QuickServer


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "backup.db"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[QuickServer]:
    server = QuickServer(tmp_path)
    server.start()
    yield server
    server.stop()


async def entries_in(database: Path) -> int:
    async with opened(SqliteStore(database)) as store:
        return len(await store.entries(QUEUE, 0, 99))


@asynchronous
async def test_a_backup_holds_what_was_written_before_it_and_nothing_later(settings: Settings, copy: Path):
    await hold_everything(SqliteStore(settings.database))
    async with opened(SqliteStore(settings.database)) as store:
        await store.commit(AppendEntries((an_entry("before"),)))
        back_up(settings, copy)
        await store.commit(AppendEntries((an_entry("later"),)))
    assert await entries_in(settings.database) == 4
    put_back(settings, copy)
    assert await entries_in(settings.database) == 3


@asynchronous
async def test_a_backup_is_one_file_for_us_alone(settings: Settings, copy: Path):
    await hold_everything(SqliteStore(settings.database))
    back_up(settings, copy)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert sorted(file.name for file in copy.parent.iterdir()) == ["backup.db", "data"]
    before = copy.read_bytes()
    assert before[18:20] == b"\1\1", "it needs a log beside it"
    put_back(settings, copy)
    assert copy.read_bytes() == before
    assert stat.S_IMODE(settings.database.stat().st_mode) == 0o600


@asynchronous
async def test_a_backup_of_a_damaged_database_is_refused(settings: Settings, copy: Path):
    await hold_everything(SqliteStore(settings.database))
    await SqlitePlace(settings.database).ask("UPDATE stays SET queue = 'nobody' WHERE ticket = 3")
    with pytest.raises(StoreTrouble, match="is damaged"):
        back_up(settings, copy)
    assert not copy.exists()


@asynchronous
async def test_what_was_there_is_kept_when_a_backup_is_put_back(settings: Settings, copy: Path):
    await hold_everything(SqliteStore(settings.database))
    back_up(settings, copy)
    async with opened(SqliteStore(settings.database)) as store:
        await store.commit(AppendEntries((an_entry("later"),)))
    kept = put_back(settings, copy)
    assert kept
    assert (await entries_in(kept), await entries_in(settings.database)) == (3, 2)
    assert {file.name for file in settings.data_dir.iterdir()} == {"mergeyard.db", kept.name, "server.lock"}


@asynchronous
async def test_a_database_that_is_none_any_more_makes_way_with_all_that_lies_beside_it(settings: Settings, copy: Path):
    await hold_everything(SqliteStore(settings.database))
    back_up(settings, copy)
    settings.database.write_bytes(b"no database at all" * 1000)
    for beside in ("-wal", "-shm", "-journal"):
        settings.database.with_name(f"mergeyard.db{beside}").write_bytes(b"and what a crash left behind")
    kept = put_back(settings, copy)
    assert kept
    assert kept.read_bytes().startswith(b"no database at all")
    assert {file.name for file in settings.data_dir.iterdir()} == {"mergeyard.db", kept.name, "server.lock"}
    assert await entries_in(settings.database) == 2


@asynchronous
async def test_what_a_killed_server_left_in_its_log_is_kept_too(settings: Settings, copy: Path, tmp_path: Path):
    await hold_everything(SqliteStore(settings.database))
    back_up(settings, copy)
    async with opened(SqliteStore(settings.database)) as store:
        await store.commit(AppendEntries((an_entry("later"),)))
        left = {file.name: file.read_bytes() for file in settings.data_dir.iterdir()}
    assert left["mergeyard.db-wal"]
    killed = Settings(data_dir=tmp_path / "killed")
    killed.data_dir.mkdir()
    for name, content in left.items():
        (killed.data_dir / name).write_bytes(content)
    kept = put_back(killed, copy)
    assert kept
    assert {file.name for file in killed.data_dir.iterdir()} == {"mergeyard.db", kept.name, "server.lock"}
    assert (await entries_in(kept), await entries_in(killed.database)) == (3, 2)


@asynchronous
async def test_a_database_that_somebody_has_open_is_not_replaced(settings: Settings, copy: Path):
    await hold_everything(SqliteStore(settings.database))
    back_up(settings, copy)
    async with opened(SqliteStore(settings.database)) as store:
        with pytest.raises(StoreTrouble, match=r"Another process keeps .* locked"):
            put_back(settings, copy)
        await store.commit(AppendEntries((an_entry("later"),)))
    assert await entries_in(settings.database) == 3


@asynchronous
async def test_only_a_sound_backup_of_ours_is_put_back(settings: Settings, copy: Path):
    await hold_everything(SqliteStore(settings.database))
    back_up(settings, copy)
    whole, present = copy.read_bytes(), settings.database.read_bytes()
    for planted in (b"", b"a diary" * 999, whole[:4096] + b"\xff" * (len(whole) - 4096), whole[: len(whole) // 2]):
        copy.write_bytes(planted)
        with pytest.raises(StoreTrouble):
            put_back(settings, copy)
    assert settings.database.read_bytes() == present
    assert {file.name for file in settings.data_dir.iterdir()} == {"mergeyard.db", "server.lock"}


@asynchronous
async def test_a_backup_of_a_newer_version_is_not_put_back(settings: Settings, copy: Path):
    await hold_everything(SqliteStore(settings.database))
    back_up(settings, copy)
    await SqlitePlace(copy).ask("INSERT INTO migrations VALUES (999, 'from_the_future')")
    with pytest.raises(StoreTrouble, match="newer version of Mergeyard"):
        put_back(settings, copy)


def test_a_backup_is_made_beside_a_working_server_but_not_put_back(server: QuickServer, settings: Settings, copy: Path):
    back_up(settings, copy)
    present = settings.database.stat().st_ino
    with pytest.raises(Refused, match=r"A server works in .*: stop it first"):
        put_back(settings, copy)
    assert settings.database.stat().st_ino == present
    assert server.alive


def test_a_server_does_not_start_while_a_backup_is_put_back(tmp_path: Path, settings: Settings):
    server = QuickServer(tmp_path)
    with no_server_in(settings.data_dir), pytest.raises(AssertionError, match="Another server works"):
        server.start()


def test_there_is_nothing_to_back_up_where_no_database_is(settings: Settings, copy: Path, tmp_path: Path):
    with pytest.raises(Refused, match="There is no database"):
        back_up(settings, copy)
    assert list(tmp_path.iterdir()) == []
