"""Reads: single things, lists, and whole queues as of one moment."""

from collections import defaultdict
from typing import Any

from mergeyard.adapters.store_postgres import asking
from mergeyard.adapters.store_postgres.handles import Row, Value
from mergeyard.adapters.store_postgres.lines import Lines
from mergeyard.adapters.store_postgres.rows import fact_of
from mergeyard.adapters.store_postgres.writes import REMEMBERED_TURNS
from mergeyard.domain.ids import QueueId
from mergeyard.ports.store import Changed, Changes, LoadedQueue


class Reader:
    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    async def rows(self, query: str, /, **values: Value) -> list[Row]:
        async with self._lines.borrowed() as connection:
            return await asking.rows(connection, query, **values)

    async def row(self, query: str, /, **values: Value) -> Row | None:
        async with self._lines.borrowed() as connection:
            return await asking.row(connection, query, **values)

    async def value(self, query: str, /, **values: Value) -> Any:
        async with self._lines.borrowed() as connection:
            return await asking.value(connection, query, **values)

    async def bodies(self, query: str, /, **values: Value) -> tuple[bytes, ...]:
        async with self._lines.borrowed() as connection:
            return await asking.bodies(connection, query, **values)

    async def load(self, queue: QueueId) -> LoadedQueue:
        async with self._lines.at_one_moment() as connection:
            version = await asking.value(connection, "version", queue=queue)
            if version is None:
                raise LookupError(f"There is no queue {queue}.")
            return LoadedQueue(
                version=version,
                facts=tuple(map(fact_of, await asking.rows(connection, "facts", queue=queue))),
                stays=await asking.bodies(connection, "live_stays", queue=queue),
                runs=await asking.bodies(connection, "live_runs", queue=queue),
            )

    async def changes(self, queue: QueueId, after: int) -> Changes | None:
        parts = defaultdict[str, list[Row]](list)
        for kind, *part in await self.rows("changes", queue=queue, after=after):
            parts[kind].append(tuple(part))
        version, _, _, deleted_up_to, *_ = parts["queue"][0] if parts["queue"] else (None, None, None, 0)
        if version is None or not max(version - REMEMBERED_TURNS, deleted_up_to) <= after <= version:
            return None
        return Changes(
            version=version,
            facts=tuple(fact_of((shelf, key, body)) for _, shelf, key, *_, body in parts["fact"]),
            stays=tuple(Changed(live, body) for *_, live, body in parts["stay"]),
            runs=tuple(Changed(live, body) for *_, live, body in parts["run"]),
        )
