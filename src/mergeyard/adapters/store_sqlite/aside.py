"""Reads lists on a thread of its own, one after the other."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mergeyard.adapters.store_sqlite.handles import Row, Value
from mergeyard.adapters.store_sqlite.reader import Reader
from mergeyard.domain.ids import QueueId
from mergeyard.ports.store import LoadedQueue


class ReaderAside:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store-reader")

    def close(self) -> None:
        self._thread.shutdown()
        self._reader.close()

    async def rows(self, query: str, **values: Value) -> list[Row]:
        ask = partial(self._reader.rows, query, **values)
        return await asyncio.get_running_loop().run_in_executor(self._thread, ask)

    async def bodies(self, query: str, **values: Value) -> tuple[bytes, ...]:
        return tuple(body for (body,) in await self.rows(query, **values))

    async def load(self, queue: QueueId) -> LoadedQueue:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._reader.load, queue)
