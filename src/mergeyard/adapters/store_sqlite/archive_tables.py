"""Reads and writes the tables of a SQLite file as plain rows, inside somebody's transaction."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import cast

import apsw

from mergeyard.adapters.store_sqlite import rows
from mergeyard.adapters.store_sqlite.handles import Connection, Value
from mergeyard.adapters.store_sqlite.handles import Row as SqliteRow
from mergeyard.adapters.store_sqlite.sql import SQL
from mergeyard.domain.ids import QueueId
from mergeyard.ports.archive import FLAG, TABLES, Row, Table, Unfit
from mergeyard.ports.store import LoadedQueue, StoredQueue, StoreTrouble

ROWS_BETWEEN_BREATHS = 500
"""SQLite never waits, so whoever interrupts us would not be heard."""


class SqliteTables:
    def __init__(self, connection: Connection, place: str) -> None:
        self._connection = connection
        self._place = place

    # What is there

    async def rows(self, table: Table) -> AsyncGenerator[Row]:
        flags = [kind is FLAG for kind in table.columns.values()]
        try:
            for number, row in enumerate(self._all(selection(table))):
                if number % ROWS_BETWEEN_BREATHS == 0:
                    await asyncio.sleep(0)
                yield tuple(bool(cell) if flag else cell for cell, flag in zip(row, flags, strict=True))
        except UnicodeDecodeError as error:
            raise StoreTrouble(
                f"{self._place} is damaged: {table.name} holds text that is none. Keep a copy and restore a backup."
            ) from error

    async def faults(self) -> Sequence[str]:
        damages = [words for (words,) in self._all("PRAGMA integrity_check") if words != "ok"]
        strays = Counter(table for table, *_ in self._all("PRAGMA foreign_key_check"))
        return [
            *(f"The file is damaged: {words}." for words in damages),
            *(f"Rows of {table} belong to a queue that is not there: {count}." for table, count in strays.items()),
        ]

    async def queues(self) -> Sequence[StoredQueue]:
        return tuple(map(rows.queue_of, self._all(SQL["queues"])))

    async def load(self, queue: QueueId) -> LoadedQueue:
        (version,) = (version for (version,) in self._all(SQL["version"], queue=queue))
        return LoadedQueue(
            version=version,
            facts=tuple(map(rows.fact_of, self._all(SQL["facts"], queue=queue))),
            stays=tuple(body for (body,) in self._all(SQL["live_stays"], queue=queue)),
            runs=tuple(body for (body,) in self._all(SQL["live_runs"], queue=queue)),
        )

    def _all(self, statement: str, /, **values: Value) -> Iterable[SqliteRow]:
        return cast("Iterable[SqliteRow]", self._connection.execute(statement, values or None))

    # What is put there

    async def hindrances(self) -> Sequence[str]:
        counts = [(table.name, *self._all(f"SELECT count(*) FROM {table.name}")) for table in TABLES]
        return [f"{name}: {count}" for name, (count,) in counts if count]

    async def put(self, table: Table, rows: Sequence[Row]) -> None:
        await asyncio.sleep(0)
        named = (dict(zip(table.columns, row, strict=True)) for row in rows)
        try:
            self._connection.cursor().executemany(insertion(table), named)
        except apsw.ConstraintError as error:
            raise Unfit(f"{table.name}: {error}") from error

    async def settle(self) -> None:
        """SQLite counts on from the highest number by itself."""


def selection(table: Table) -> str:
    """An index leads in the order of the key, so nothing has to be sorted."""
    return f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {', '.join(table.key)}"


def insertion(table: Table) -> str:
    values = ", ".join(f":{column}" for column in table.columns)
    return f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({values})"
