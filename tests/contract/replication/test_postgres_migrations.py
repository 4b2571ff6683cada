"""Migrations are applied once, in order, all or none, also by replicas that start at the same time."""

import asyncio
from pathlib import Path

import pytest
from asyncpg import PostgresSyntaxError  # pyright: ignore[reportMissingTypeStubs]

from mergeyard.adapters.store_postgres import connection as connection_module
from mergeyard.adapters.store_postgres.connection import (
    MIGRATIONS,
    apply_migration,
    migrate,
    open_connection,
    read_schema_version,
)
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.adapters.store_sql.statements import Migration, read_migrations
from mergeyard.domain.ids import QueueId, QueueKey, Repo
from mergeyard.ports.store import StoredQueue, StoreUnavailable
from tests.contract.replication.support import open_all
from tests.contract.store.builders import a_queue, opened
from tests.support.asynchronous import asynchronous
from tests.support.postgres import execute, shared_server

FIRST = "CREATE TABLE colors (name TEXT NOT NULL); INSERT INTO colors VALUES ('red');"
SECOND = "ALTER TABLE colors ADD COLUMN code INTEGER; UPDATE colors SET code = 1;"
BROKEN = "ALTER TABLE colors ADD COLUMN code INTEGER; NONSENSE;"
DATABASE_NAME = "The database"
REPO = Repo("git.local", "acme", "app")
QUEUE = QueueId("q1")


@pytest.fixture
def url() -> str:
    """Without tables, unlike elsewhere."""
    return shared_server().fresh_database()


def use(monkeypatch: pytest.MonkeyPatch, folder: Path, **files: str) -> None:
    """Replaces the migrations by those of a folder with these files."""
    folder.mkdir(exist_ok=True)
    for stem, text in files.items():
        (folder / f"{stem.removeprefix('m')}.sql").write_text(text)
    monkeypatch.setattr(connection_module, "MIGRATIONS", tuple(read_migrations(folder)))


def test_migrations_are_numbered_from_one_without_a_gap():
    assert [migration.number for migration in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


@asynchronous
async def test_migrations_are_applied_in_order_and_once(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    use(monkeypatch, tmp_path / "steps", m0002_codes=SECOND, m0001_colors=FIRST)
    connection = await open_connection(url)
    await migrate(connection, DATABASE_NAME)
    await migrate(connection, DATABASE_NAME)
    await connection.close()
    assert await execute(url, "SELECT number, name FROM migrations ORDER BY number") == [(1, "colors"), (2, "codes")]
    assert await execute(url, "SELECT name, code FROM colors") == [("red", 1)]


@asynchronous
async def test_an_older_database_gets_only_the_missing_migrations_and_keeps_its_rows(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    use(monkeypatch, tmp_path / "steps", m0001_colors=FIRST)
    connection = await open_connection(url)
    await migrate(connection, DATABASE_NAME)
    await connection.execute("INSERT INTO colors VALUES ('blue')")
    use(monkeypatch, tmp_path / "steps", m0002_codes=SECOND)
    await migrate(connection, DATABASE_NAME)
    assert await read_schema_version(connection) == 2
    await connection.close()
    assert await execute(url, "SELECT name, code FROM colors ORDER BY name") == [("blue", 1), ("red", 1)]


@asynchronous
async def test_interrupted_migrations_leave_nothing_and_are_applied_at_the_next_start(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    use(monkeypatch, tmp_path / "steps", m0001_colors=FIRST, m0002_codes=BROKEN)
    connection = await open_connection(url)
    with pytest.raises(PostgresSyntaxError):
        await migrate(connection, DATABASE_NAME)
    assert await connection.fetch("SELECT to_regclass('colors'), to_regclass('migrations')") == [(None, None)]
    use(monkeypatch, tmp_path / "steps", m0002_codes=SECOND)
    await migrate(connection, DATABASE_NAME)
    assert await read_schema_version(connection) == 2
    await connection.close()


@asynchronous
async def test_replicas_that_open_a_new_database_at_once_agree_on_it(url: str):
    stores = [PostgresStore(url) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    await stores[0].commit(a_queue())
    assert {await store.queues() for store in stores} == {(StoredQueue(QUEUE, QueueKey(REPO, "main"), 0),)}
    for store in stores:
        await store.close()
    assert await execute(url, "SELECT number FROM migrations") == [(migration.number,) for migration in MIGRATIONS]


@asynchronous
async def test_a_database_of_a_newer_version_is_refused_with_advice_and_left_as_it_is(url: str):
    async with open_all(PostgresStore(url)):
        await execute(url, "INSERT INTO migrations VALUES (999, 'from_the_future')")
    with pytest.raises(StoreUnavailable, match="newer version of Mergeyard"):
        await PostgresStore(url).open()
    assert await execute(url, "SELECT max(number) FROM migrations") == [(999,)]


@asynchronous
async def test_a_migration_that_fails_leaves_nothing_of_itself(url: str):
    async with opened(PostgresStore(url)):
        connection = await open_connection(url)
        with pytest.raises(PostgresSyntaxError):
            async with connection.transaction():
                await apply_migration(
                    connection, Migration(999, "broken", "CREATE TABLE half (done INTEGER); NONSENSE;")
                )
        assert await read_schema_version(connection) == MIGRATIONS[-1].number
        assert await connection.fetch("SELECT to_regclass('half')") == [(None,)]
        await connection.close()
