"""Reads and writes the tables of a PostgreSQL database as plain rows, inside somebody's transaction."""

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from typing import Protocol, cast

from asyncpg import exceptions as e  # pyright: ignore[reportMissingTypeStubs]

from mergeyard.adapters.store_postgres import asking, rows
from mergeyard.adapters.store_postgres.handles import Connection
from mergeyard.adapters.store_postgres.handles import Row as PostgresRow
from mergeyard.adapters.store_postgres.sql import storable
from mergeyard.adapters.store_postgres.text import restored
from mergeyard.domain.ids import QueueId
from mergeyard.ports.archive import TABLES, Kind, Row, Table, Unfit
from mergeyard.ports.store import LoadedQueue, StoredQueue

ROWS_AT_A_TIME = 16
"""Few, because a body may have many megabytes."""

ARRAYS = {
    Kind.TEXT: "text[]",
    Kind.MAYBE_TEXT: "text[]",
    Kind.NUMBER: "bigint[]",
    Kind.MAYBE_NUMBER: "bigint[]",
    Kind.FLAG: "boolean[]",
    Kind.BYTES: "bytea[]",
}
VERSIONED = ("facts", "stays", "runs")
"""These know in which turn they were written last. A queue that moved in was written as a whole by its last one."""
OF_A_QUEUE = tuple(table.name for table in TABLES if "queue" in table.columns)

COUNTED = {"journal": "seq", "runs": "place", "deliveries": "place"}
COUNT_ON = """
SELECT setval(pg_get_serial_sequence('{table}', '{column}'), greatest(max({column}), 1), count(*) > 0) FROM {table}
"""
GIVE_DUTIES = """
INSERT INTO duties (host, owner, name)
SELECT DISTINCT host, owner, name FROM queues
ON CONFLICT DO NOTHING
"""
COUNT_WORKERS = "SELECT count(*) FROM replicas WHERE until > now()"
COUNT_STRAYS = """
SELECT count(*) FROM {table} LEFT JOIN queues ON queues.id = {table}.queue
WHERE {table}.queue IS NOT NULL AND queues.id IS NULL
"""
COUNT_FUTURE = """
SELECT count(*) FROM {table} JOIN queues ON queues.id = {table}.queue
WHERE {table}.version > queues.version
"""
COUNT_FORGOTTEN = """
SELECT count(DISTINCT (host, owner, name)) FROM queues LEFT JOIN duties USING (host, owner, name)
WHERE deleted_at IS NULL AND fence IS NULL
"""


class Scrollable(Protocol):
    def cursor(self, query: str, *, prefetch: int) -> AsyncIterable[PostgresRow]: ...


class PostgresTables:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # What is there

    async def rows(self, table: Table) -> AsyncGenerator[Row]:
        found = cast(Scrollable, self._connection).cursor(selection(table), prefetch=ROWS_AT_A_TIME)
        async for row in found:
            yield tuple(restored(cell) if isinstance(cell, str) else cell for cell in row)

    async def faults(self) -> Sequence[str]:
        counts = [
            *[(f"Rows of {name} belong to a queue that is not there", COUNT_STRAYS, name) for name in OF_A_QUEUE],
            *[(f"Rows of {name} are newer than their queue", COUNT_FUTURE, name) for name in VERSIONED],
            ("Repositories have queues, but nobody can work for them", COUNT_FORGOTTEN, ""),
        ]
        found = [(words, await self._count(statement.format(table=name))) for words, statement, name in counts]
        return [f"{words}: {count}." for words, count in found if count]

    async def queues(self) -> Sequence[StoredQueue]:
        return tuple(map(rows.queue_of, await asking.rows(self._connection, "queues")))

    async def load(self, queue: QueueId) -> LoadedQueue:
        return LoadedQueue(
            version=await asking.value(self._connection, "version", queue=queue),
            facts=tuple(map(rows.fact_of, await asking.rows(self._connection, "facts", queue=queue))),
            stays=await asking.bodies(self._connection, "live_stays", queue=queue),
            runs=await asking.bodies(self._connection, "live_runs", queue=queue),
        )

    async def _count(self, statement: str) -> int:
        ((count,),) = await self._connection.fetch(statement)
        return count

    # What is put there

    async def hindrances(self) -> Sequence[str]:
        held = [(table.name, await self._count(f"SELECT count(*) FROM {table.name}")) for table in TABLES]
        workers = ("replicas at work", await self._count(COUNT_WORKERS))
        return [f"{words}: {count}" for words, count in [*held, workers] if count]

    async def put(self, table: Table, rows: Sequence[Row]) -> None:
        columns = ([storable(cell) for cell in column] for column in zip(*rows, strict=True))
        try:
            await self._connection.execute(insertion(table), *columns)
        except e.IntegrityConstraintViolationError as error:
            raise Unfit(f"{table.name}: {error}") from error

    async def settle(self) -> None:
        for table, column in COUNTED.items():
            await self._connection.execute(COUNT_ON.format(table=table, column=column))
        await self._connection.execute(GIVE_DUTIES)


def selection(table: Table) -> str:
    return f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {', '.join(table.key)}"


def insertion(table: Table) -> str:
    names = ", ".join(table.columns)
    arrays = ", ".join(f"${number}::{ARRAYS[kind]}" for number, kind in enumerate(table.columns.values(), 1))
    given = f"unnest({arrays}) AS given ({names})"
    if table.name not in VERSIONED:
        return f"INSERT INTO {table.name} ({names}) SELECT * FROM {given}"
    return (
        f"INSERT INTO {table.name} ({names}, version) "
        f"SELECT given.*, queues.version FROM {given} LEFT JOIN queues ON queues.id = given.queue"
    )
