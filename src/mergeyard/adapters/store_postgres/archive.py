"""Archive of a PostgreSQL database: reads one snapshot of it, or fills it in one transaction."""

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, cast

from asyncpg import exceptions as e  # pyright: ignore[reportMissingTypeStubs]

from mergeyard.adapters.store_postgres.connection import (
    Connection,
    decode_row,
    describe_location,
    encode_value,
    fetch_rows,
    migrate,
    open_connection,
    read_schema_version,
    translate_errors,
)
from mergeyard.adapters.store_sql.reads import LOADING_QUERIES, decode_loaded_queue, decode_queue
from mergeyard.adapters.store_sql.statements import Row as PostgresRow
from mergeyard.adapters.store_sql.statements import build_select
from mergeyard.domain.ids import QueueId
from mergeyard.ports.archive import TABLES, ArchiveError, ColumnType, Row, Table
from mergeyard.ports.store import LoadedQueue, StoredQueue

PREFETCH_ROWS = 16
"""Few, because a body can have many megabytes."""

ARRAY_TYPES = {
    ColumnType.TEXT: "text[]",
    ColumnType.NULLABLE_TEXT: "text[]",
    ColumnType.NUMBER: "bigint[]",
    ColumnType.NULLABLE_NUMBER: "bigint[]",
    ColumnType.FLAG: "boolean[]",
    ColumnType.BYTES: "bytea[]",
}
VERSIONED_TABLES = ("queue_parts", "submissions", "runs")
"""Their rows carry the version of the decision that wrote them. Imported rows get the version of their queue."""
QUEUE_TABLES = tuple(table.name for table in TABLES if "queue" in table.columns)

IDENTITY_COLUMNS = {"journal": "seq", "runs": "row_id", "deliveries": "row_id"}
RESET_SEQUENCE = """
SELECT setval(pg_get_serial_sequence('{table}', '{column}'), greatest(max({column}), 1), count(*) > 0) FROM {table}
"""
CREATE_LEASES = """
INSERT INTO leases (host, owner, name)
SELECT DISTINCT host, owner, name FROM queues
ON CONFLICT DO NOTHING
"""
COUNT_WORKERS = "SELECT count(*) FROM replicas WHERE expires_at > now()"
COUNT_ORPHANS = """
SELECT count(*) FROM {table} LEFT JOIN queues ON queues.id = {table}.queue
WHERE {table}.queue IS NOT NULL AND queues.id IS NULL
"""
COUNT_TOO_NEW = """
SELECT count(*) FROM {table} JOIN queues ON queues.id = {table}.queue
WHERE {table}.version > queues.version
"""
COUNT_WITHOUT_LEASE = """
SELECT count(DISTINCT (host, owner, name)) FROM queues LEFT JOIN leases USING (host, owner, name)
WHERE deleted_at IS NULL AND fence IS NULL
"""


class CursorConnection(Protocol):
    def cursor(self, query: str, *, prefetch: int) -> AsyncIterable[PostgresRow]: ...


class PostgresTables:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # Reading

    async def rows(self, table: Table) -> AsyncGenerator[Row]:
        found = cast(CursorConnection, self._connection).cursor(build_select(table), prefetch=PREFETCH_ROWS)
        async for row in found:
            yield decode_row(row)

    async def find_problems(self) -> Sequence[str]:
        counts = [
            *[(f"Rows of {name} refer to a queue that does not exist", COUNT_ORPHANS, name) for name in QUEUE_TABLES],
            *[(f"Rows of {name} are newer than their queue", COUNT_TOO_NEW, name) for name in VERSIONED_TABLES],
            ("Repositories have queues but no lease, so no replica can work for them", COUNT_WITHOUT_LEASE, ""),
        ]
        found = [(message, await self._count(statement.format(table=name))) for message, statement, name in counts]
        return [f"{message}: {count}." for message, count in found if count]

    async def queues(self) -> Sequence[StoredQueue]:
        return tuple(decode_queue(*row) for row in await fetch_rows(self._connection, "queues"))

    async def load(self, queue: QueueId) -> LoadedQueue:
        results = [await fetch_rows(self._connection, query, queue=queue) for query in LOADING_QUERIES]
        return decode_loaded_queue(queue, *results)

    async def _count(self, statement: str) -> int:
        ((count,),) = await self._connection.fetch(statement)
        return count

    # Writing

    async def find_blockers(self) -> Sequence[str]:
        rows = [(table.name, await self._count(f"SELECT count(*) FROM {table.name}")) for table in TABLES]
        workers = ("running replicas", await self._count(COUNT_WORKERS))
        return [f"{what}: {count}" for what, count in [*rows, workers] if count]

    async def put(self, table: Table, rows: Sequence[Row]) -> None:
        columns = ([encode_value(cell) for cell in column] for column in zip(*rows, strict=True))
        try:
            await self._connection.execute(_insertion(table), *columns)
        except e.IntegrityConstraintViolationError as error:
            raise ArchiveError(f"{table.name}: {error}") from error

    async def finish(self) -> None:
        """Resets the identity sequences and creates the leases of all repositories."""
        for table, column in IDENTITY_COLUMNS.items():
            await self._connection.execute(RESET_SEQUENCE.format(table=table, column=column))
        await self._connection.execute(CREATE_LEASES)


def _insertion(table: Table) -> str:
    names = ", ".join(table.columns)
    arrays = ", ".join(f"${number}::{ARRAY_TYPES[kind]}" for number, kind in enumerate(table.columns.values(), 1))
    given = f"unnest({arrays}) AS given ({names})"
    if table.name not in VERSIONED_TABLES:
        return f"INSERT INTO {table.name} ({names}) SELECT * FROM {given}"
    return (
        f"INSERT INTO {table.name} ({names}, version) "
        f"SELECT given.*, queues.version FROM {given} LEFT JOIN queues ON queues.id = given.queue"
    )


DISABLE_IDLE_TIMEOUT = "SET LOCAL idle_in_transaction_session_timeout = 0"
"""Reading or writing the export file can take longer than the timeout."""
LOCK_TABLES = f"LOCK TABLE {', '.join(table.name for table in TABLES)} IN SHARE ROW EXCLUSIVE MODE"
"""Keeps other transactions from writing."""
HAS_MIGRATIONS_TABLE = "SELECT to_regclass('migrations') IS NOT NULL"


class PostgresArchive:
    def __init__(self, url: str) -> None:
        self.location = describe_location(url)
        self._url = url

    async def schema_version(self) -> int:
        async with self._connect() as connection:
            ((has_table,),) = await connection.fetch(HAS_MIGRATIONS_TABLE)
            return await read_schema_version(connection) if has_table else 0

    async def migrate(self) -> None:
        async with self._connect() as connection:
            await migrate(connection, self.location)

    @asynccontextmanager
    async def open_reader(self) -> AsyncGenerator[PostgresTables]:
        async with (
            self._connect() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            await connection.execute(DISABLE_IDLE_TIMEOUT)
            yield PostgresTables(connection)

    @asynccontextmanager
    async def open_writer(self) -> AsyncGenerator[PostgresTables]:
        async with self._connect() as connection, connection.transaction():
            await connection.execute(DISABLE_IDLE_TIMEOUT)
            await connection.execute(LOCK_TABLES)
            yield PostgresTables(connection)

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[Connection]:
        with translate_errors(self.location):
            connection = await open_connection(self._url, statement_timeout_s=None)
            try:
                yield connection
            finally:
                await connection.close()
