"""Store of a single server: a SQLite file with one writer thread and any number of readers.

Single rows are read on the event loop, which takes microseconds. Lists are read on a thread, so that they do not block
the event loop.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct, json

from mergeyard.adapters.store_sql.reads import LOADING_QUERIES, SqlReads, decode_loaded_queue
from mergeyard.adapters.store_sql.statements import Row, Value, Values, not_open_error
from mergeyard.adapters.store_sqlite import connection as db
from mergeyard.adapters.store_sqlite.writer import WriteProbe, Writer
from mergeyard.domain.ids import QueueId
from mergeyard.ports import store
from mergeyard.ports.writes import Write

CHECK_TIMEOUT_S = 2.0


class Reader:
    def __init__(self, path: Path, condition: db.CorruptionState) -> None:
        self._condition = condition
        self._connection = db.open_for_reading(path)
        self._cursor = self._connection.cursor()

    def close(self) -> None:
        self._connection.close()

    def fetch_rows(self, query: str, values: Values | None = None) -> list[Row]:
        """Fetches all rows at once: a query that is not read to its end would hold its snapshot open."""
        try:
            return self._cursor.execute(db.SQL[query], values).fetchall()
        except db.DATABASE_ERRORS as error:
            raise self._condition.translate_error(error) from error

    def load(self, queue: QueueId) -> store.LoadedQueue:
        self.fetch_rows("begin_reading")
        try:
            return decode_loaded_queue(queue, *(self.fetch_rows(query, {"queue": queue}) for query in LOADING_QUERIES))
        finally:
            self.fetch_rows("commit")


class OpenStore(Struct, frozen=True):
    """The connections of a store while it is open."""

    writer: Writer
    points: Reader
    lists: Reader
    lists_thread: ThreadPoolExecutor


class SqliteStore(SqlReads):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: OpenStore | None = None

    @property
    def _open(self) -> OpenStore:
        if self._opened is None:
            raise not_open_error(self._path)
        return self._opened

    @property
    def group_count(self) -> int:
        """How many groups were committed since the store was opened."""
        return self._open.writer.group_count

    async def open(self) -> None:
        try:
            connection = await asyncio.to_thread(db.open_for_writing, self._path)
            condition = db.CorruptionState(self._path)
            points, lists = Reader(self._path, condition), Reader(self._path, condition)
        except db.DATABASE_ERRORS as error:
            raise db.to_store_error(error, self._path) from error
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store-reader")
        self._opened = OpenStore(Writer(connection, self._path, condition), points, lists, thread)

    async def close(self) -> None:
        """Closes the writer last: only the last connection can move the whole WAL into the database file."""
        if self._opened is None:
            return
        opened, self._opened = self._opened, None
        opened.points.close()
        await asyncio.to_thread(opened.lists_thread.shutdown)
        opened.lists.close()
        await opened.writer.close()

    async def commit(self, *writes: Write) -> None:
        await self._open.writer.write(writes)

    async def check(self) -> None:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await self._open.writer.write((WriteProbe(),))
        except TimeoutError:
            raise db.slow_write_error(self._path, CHECK_TIMEOUT_S) from None

    async def load(self, queue: QueueId) -> store.LoadedQueue:
        opened = self._open
        return await asyncio.get_running_loop().run_in_executor(opened.lists_thread, opened.lists.load, queue)

    async def changes(self, queue: QueueId, after: int) -> store.QueueChanges | None:  # noqa: ARG002
        """Not supported: no other replica writes to this file, so the service never asks for changes."""
        return None

    async def _find(self, query: str, /, **values: Value) -> Sequence[Row]:
        return self._open.points.fetch_rows(query, values)

    async def _fetch(self, query: str, /, **values: Value) -> Sequence[Row]:
        """Queries read arrays from JSON."""
        opened = self._open
        given = {
            name: json.encode(value).decode() if isinstance(value, list | tuple) else value
            for name, value in values.items()
        }
        return await asyncio.get_running_loop().run_in_executor(
            opened.lists_thread, opened.lists.fetch_rows, query, given
        )
