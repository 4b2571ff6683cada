"""Migrations are applied once, in order, each completely or not at all, and a newer schema is refused."""

from pathlib import Path

import apsw
import pytest

from mergeyard.adapters.store_sql.statements import Migration, read_migrations
from mergeyard.adapters.store_sqlite import connection as connection_module
from mergeyard.adapters.store_sqlite.connection import (
    MIGRATIONS,
    SQL,
    Connection,
    apply_migration,
    connect,
    migrate,
    open_for_writing,
    read_schema_version,
)
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.ports.store import StoreUnavailable
from tests.support.asynchronous import asynchronous

FIRST = "CREATE TABLE colors (name TEXT NOT NULL) STRICT; INSERT INTO colors VALUES ('red');"
SECOND = "ALTER TABLE colors ADD COLUMN code INTEGER; UPDATE colors SET code = 1;"
BROKEN = "ALTER TABLE colors ADD COLUMN code INTEGER; NONSENSE;"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mergeyard.db"


@pytest.fixture
def connection(file: Path) -> Connection:
    file.touch()
    return connect(file)


def use(monkeypatch: pytest.MonkeyPatch, folder: Path, **files: str) -> None:
    """Replaces the migrations by those of a folder with these files."""
    folder.mkdir(exist_ok=True)
    for stem, text in files.items():
        (folder / f"{stem.removeprefix('m')}.sql").write_text(text)
    monkeypatch.setattr(connection_module, "MIGRATIONS", tuple(read_migrations(folder)))


def test_migrations_are_numbered_from_one_without_a_gap():
    assert [migration.number for migration in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


def test_an_empty_database_gets_the_newest_schema(file: Path):
    connection = open_for_writing(file)
    assert read_schema_version(connection) == MIGRATIONS[-1].number
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


def test_migrations_are_applied_in_order_and_once(
    connection: Connection, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    use(monkeypatch, tmp_path / "steps", m0002_codes=SECOND, m0001_colors=FIRST)
    migrate(connection, file)
    migrate(connection, file)
    assert connection.execute("SELECT number, name FROM migrations").fetchall() == [(1, "colors"), (2, "codes")]
    assert connection.execute("SELECT name, code FROM colors").fetchall() == [("red", 1)]
    connection.close()


def test_an_older_database_gets_only_the_missing_migrations_and_keeps_its_rows(
    connection: Connection, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    use(monkeypatch, tmp_path / "steps", m0001_colors=FIRST)
    migrate(connection, file)
    connection.execute("INSERT INTO colors VALUES ('blue')")
    use(monkeypatch, tmp_path / "steps", m0002_codes=SECOND)
    migrate(connection, file)
    assert read_schema_version(connection) == 2
    assert connection.execute("SELECT name, code FROM colors").fetchall() == [("red", 1), ("blue", 1)]
    connection.close()


def test_an_interrupted_migration_leaves_the_earlier_ones_and_is_applied_at_the_next_start(
    connection: Connection, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    use(monkeypatch, tmp_path / "steps", m0001_colors=FIRST, m0002_codes=BROKEN)
    with pytest.raises(apsw.SQLError):
        migrate(connection, file)
    assert read_schema_version(connection) == 1
    assert connection.execute("SELECT * FROM colors").fetchall() == [("red",)]
    use(monkeypatch, tmp_path / "steps", m0002_codes=SECOND)
    migrate(connection, file)
    assert read_schema_version(connection) == 2
    assert connection.execute("SELECT * FROM colors").fetchall() == [("red", 1)]
    connection.close()


def test_a_migration_that_another_process_applied_meanwhile_is_skipped(connection: Connection):
    connection.execute(SQL["create_migrations_table"])
    for _ in range(2):
        apply_migration(connection, Migration(1, "colors", FIRST))
    assert connection.execute("SELECT * FROM colors").fetchall() == [("red",)]
    connection.close()


@asynchronous
async def test_a_database_of_a_newer_version_is_refused_with_advice(file: Path):
    connection = open_for_writing(file)
    connection.execute(SQL["record_migration"], {"number": 999, "name": "from_the_future"})
    connection.close()
    with pytest.raises(StoreUnavailable, match="newer version of Mergeyard"):
        await SqliteStore(file).open()


def test_a_migration_that_fails_leaves_nothing_of_itself(file: Path):
    connection = open_for_writing(file)
    with pytest.raises(apsw.SQLError):
        apply_migration(connection, Migration(999, "broken", "CREATE TABLE half (done INTEGER); NONSENSE;"))
    assert read_schema_version(connection) == MIGRATIONS[-1].number
    assert connection.execute("SELECT name FROM sqlite_schema WHERE name = 'half'").fetchall() == []
    connection.close()
