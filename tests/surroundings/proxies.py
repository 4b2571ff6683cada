"""A line to a server that can be made slow, cut, or led to another server: what a network does to a database."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from threading import Thread
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

PIECE = 64 * 1024
Done = TypeVar("Done")


class Proxy:
    def __init__(self, port: int) -> None:
        self.to = port
        """Where whoever connects from now on is led to."""
        self.delay = 0.0
        """Seconds that every piece takes, in either direction."""
        self.port = 0
        self._door: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._lines = set[asyncio.StreamWriter]()
        self._thread = Thread(target=self._loop.run_forever, name="proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        self._door = door = self._do(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = door.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def url(self, direct: str) -> str:
        """The same database, by way of this line."""
        parts = urlsplit(direct)
        return urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{self.port}"))

    def cut(self) -> None:
        """All lines that there are; whoever wants may connect again."""
        self._do(self._cut())

    def _do(self, work: Coroutine[Any, Any, Done]) -> Done:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._lines.add(writer)
        with suppress(OSError, asyncio.CancelledError):
            there, back = await asyncio.open_connection("127.0.0.1", self.to)
            self._lines.add(back)
            await asyncio.gather(self._carry(reader, back), self._carry(there, writer))
        await self._hang_up(writer)

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await source.read(PIECE):
                await asyncio.sleep(self.delay)
                sink.write(piece)
                await sink.drain()
        await self._hang_up(sink)

    async def _hang_up(self, line: asyncio.StreamWriter) -> None:
        self._lines.discard(line)
        line.close()
        with suppress(OSError):
            await line.wait_closed()

    async def _cut(self) -> None:
        for line in tuple(self._lines):
            line.transport.abort()

    async def _end(self) -> None:
        assert self._door
        self._door.close()
        await self._cut()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
