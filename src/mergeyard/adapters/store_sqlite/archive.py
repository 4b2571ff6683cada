"""Archive of a SQLite file: reads one snapshot of it, or fills it in one transaction."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import cast

import apsw

from mergeyard.adapters.store_sql.reads import LOADING_QUERIES, decode_loaded_queue, decode_queue
from mergeyard.adapters.store_sql.statements import Row as SqliteRow
from mergeyard.adapters.store_sql.statements import build_select, refuse_newer_schema
from mergeyard.adapters.store_sqlite import connection as db
from mergeyard.domain.ids import QueueId
from mergeyard.ports.archive import FLAG, TABLES, ArchiveError, Row, Table
from mergeyard.ports.store import LoadedQueue, StoredQueue, StoreUnavailable

ROWS_PER_YIELD = 500
"""SQLite calls block the event loop, so reading yields to it now and then: otherwise Ctrl-C would have no effect."""


class SqliteTables:
    def __init__(self, connection: db.Connection, location: str) -> None:
        self._connection = connection
        self._location = location

    # Reading

    async def rows(self, table: Table) -> AsyncGenerator[Row]:
        flags = [kind is FLAG for kind in table.columns.values()]
        try:
            for number, row in enumerate(self._all(build_select(table))):
                if number % ROWS_PER_YIELD == 0:
                    await asyncio.sleep(0)
                yield tuple(bool(cell) if flag else cell for cell, flag in zip(row, flags, strict=True))
        except UnicodeDecodeError as error:
            raise StoreUnavailable(
                f"{self._location} is damaged: the table {table.name} holds text that is not UTF-8. "
                "Keep a copy and restore a backup."
            ) from error

    async def find_problems(self) -> Sequence[str]:
        errors = [error for (error,) in self._all("PRAGMA integrity_check") if error != "ok"]
        orphans = Counter(table for table, *_ in self._all("PRAGMA foreign_key_check"))
        return [
            *(f"The file is damaged: {error}." for error in errors),
            *(f"Rows of {table} refer to a queue that does not exist: {count}." for table, count in orphans.items()),
        ]

    async def queues(self) -> Sequence[StoredQueue]:
        return tuple(decode_queue(*row) for row in self._all(db.SQL["queues"]))

    async def load(self, queue: QueueId) -> LoadedQueue:
        results = (list(self._all(db.SQL[query], queue=queue)) for query in LOADING_QUERIES)
        return decode_loaded_queue(queue, *results)

    def _all(self, statement: str, /, **values: db.Value) -> Iterable[SqliteRow]:
        return cast("Iterable[SqliteRow]", self._connection.execute(statement, values or None))

    # Writing

    async def find_blockers(self) -> Sequence[str]:
        counts = [(table.name, *self._all(f"SELECT count(*) FROM {table.name}")) for table in TABLES]
        return [f"{name}: {count}" for name, (count,) in counts if count]

    async def put(self, table: Table, rows: Sequence[Row]) -> None:
        await asyncio.sleep(0)
        bindings = (dict(zip(table.columns, row, strict=True)) for row in rows)
        try:
            self._connection.cursor().executemany(_insertion(table), bindings)
        except apsw.ConstraintError as error:
            raise ArchiveError(f"{table.name}: {error}") from error

    async def finish(self) -> None:
        """Does nothing: SQLite continues after the highest INTEGER PRIMARY KEY by itself."""


def _insertion(table: Table) -> str:
    values = ", ".join(f":{column}" for column in table.columns)
    return f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({values})"


class SqliteArchive:
    def __init__(self, path: Path) -> None:
        self.location = str(path)
        self._path = path

    async def schema_version(self) -> int:
        if not self._path.exists():
            return 0
        with translate_errors(self._path), closing(db.open_for_reading(self._path)) as connection:
            return find_schema_version(connection)

    async def migrate(self) -> None:
        with translate_errors(self._path):
            db.open_for_writing(self._path).close()

    @asynccontextmanager
    async def open_reader(self) -> AsyncGenerator[SqliteTables]:
        with translate_errors(self._path), closing(db.open_for_reading(self._path)) as connection:
            connection.execute(db.SQL["begin_reading"])
            yield SqliteTables(connection, self.location)

    @asynccontextmanager
    async def open_writer(self) -> AsyncGenerator[SqliteTables]:
        """An exception skips the commit, so closing the connection rolls everything back."""
        with translate_errors(self._path), closing(db.open_for_writing(self._path)) as connection:
            connection.execute(db.SQL["begin_writing"])
            yield SqliteTables(connection, self.location)
            connection.execute(db.SQL["commit"])


def find_schema_version(connection: db.Connection) -> int:
    """Schema version; 0 for a file without a migrations table, such as one that another program wrote."""
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'").fetchall()
    return db.read_schema_version(connection) if found else 0


@contextmanager
def translate_errors(path: Path) -> Generator[None]:
    try:
        yield
    except db.DATABASE_ERRORS as error:
        raise db.to_store_error(error, path) from error


ALL_PAGES = -1


def copy_database(source: Path, target: Path) -> None:
    """Copies to an empty file. One step copies all pages of one snapshot; writers do not wait for it."""
    with translate_errors(source), closing(db.open_for_reading(source)) as original:
        schema_version = find_schema_version(original)
        if schema_version == 0:
            raise StoreUnavailable(f"{source} is not a Mergeyard database. Name another file.")
        refuse_newer_schema(schema_version, db.MIGRATIONS[-1].number, source)
        with translate_errors(target), closing(db.connect(target)) as copied:
            with copied.backup("main", original, "main") as backup:
                backup.step(ALL_PAGES)
            # Without a WAL file next to it that could get lost.
            copied.pragma("journal_mode", "delete")
            _refuse_damaged_copy(copied, source)


def _refuse_damaged_copy(copied: db.Connection, source: Path) -> None:
    errors = [error for (error,) in copied.execute("PRAGMA integrity_check").fetchall() if error != "ok"]
    orphans = copied.execute("PRAGMA foreign_key_check").fetchall()
    if errors or orphans:
        detail = errors[0] if errors else f"{len(orphans)} rows refer to a queue that does not exist"
        raise StoreUnavailable(f"{source} is damaged ({detail}). Keep it, and use an older backup.")


def merge_wal_into_file(path: Path) -> None:
    """Moves the contents of the WAL file into the database file. Refused while another process has it open.

    A damaged file can refuse the pragma; closing it merges the WAL all the same.
    """
    with translate_errors(path), suppress(apsw.CorruptError, apsw.NotADBError), closing(db.connect(path)) as connection:
        connection.pragma("journal_mode", "delete")
