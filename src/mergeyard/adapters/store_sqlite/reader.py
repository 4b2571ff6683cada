"""Reads with a connection of its own, and never keeps a moment of the database from being cleared away."""

from pathlib import Path
from typing import Any

from mergeyard.adapters.store_sqlite.connecting import open_for_reading
from mergeyard.adapters.store_sqlite.handles import Row, Value
from mergeyard.adapters.store_sqlite.rows import fact_of
from mergeyard.adapters.store_sqlite.sql import SQL
from mergeyard.adapters.store_sqlite.trouble import TROUBLES, Condition
from mergeyard.domain.ids import QueueId
from mergeyard.ports.store import LoadedQueue


class Reader:
    def __init__(self, path: Path, condition: Condition) -> None:
        self._condition = condition
        self._connection = open_for_reading(path)
        self._cursor = self._connection.cursor()

    def close(self) -> None:
        self._connection.close()

    def rows(self, query: str, **values: Value) -> list[Row]:
        """All rows at once: a query that is not read to its end would hold on to its moment."""
        try:
            return self._cursor.execute(SQL[query], values).fetchall()
        except TROUBLES as error:
            raise self._condition.told(error) from error

    def row(self, query: str, **values: Value) -> Row | None:
        found = self.rows(query, **values)
        return found[0] if found else None

    def value(self, query: str, **values: Value) -> Any:
        found = self.rows(query, **values)
        return found[0][0] if found else None

    def bodies(self, query: str, **values: Value) -> tuple[bytes, ...]:
        return tuple(body for (body,) in self.rows(query, **values))

    def load(self, queue: QueueId) -> LoadedQueue:
        self.rows("begin_reading")
        try:
            version = self.value("version", queue=queue)
            if version is None:
                raise LookupError(f"There is no queue {queue}.")
            return LoadedQueue(
                version=version,
                facts=tuple(map(fact_of, self.rows("facts", queue=queue))),
                stays=self.bodies("live_stays", queue=queue),
                runs=self.bodies("live_runs", queue=queue),
            )
        finally:
            self.rows("commit")
