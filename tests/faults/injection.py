"""Small disks that can be filled to the last byte: tmpfs file systems, mounted where a test needs one."""

import asyncio
import errno
import os
import subprocess
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

from tests.faults import server
from tests.faults.server import VARIABLE
from tests.support.forked_server import ForkedServer
from tests.support.server import Server

BLOCK_SIZES = (64 * 1024, 4 * 1024)


class SmallDisk:
    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], check=True)

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as ballast:
            for size in BLOCK_SIZES:
                while write_zeros(ballast.fileno(), size):
                    pass

    def free(self) -> None:
        self._ballast.unlink()

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", self.folder], check=True)


def write_zeros(file: int, size: int) -> bool:
    try:
        return os.write(file, bytes(size)) > 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False


def can_mount(folder: Path) -> bool:
    folder.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False).returncode:
        return False
    subprocess.run(["umount", folder], check=True)
    return True


CHUNK_BYTES = 64 * 1024
T = TypeVar("T")


class Proxy:
    def __init__(self, port: int) -> None:
        self.to = port
        """The port to which new connections are forwarded."""
        self.delay = 0.0
        """Seconds by which every chunk is delayed, in either direction."""
        self.port = 0
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._writers = set[asyncio.StreamWriter]()
        self._thread = Thread(target=self._loop.run_forever, name="proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = server = self._do(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def url(self, direct: str) -> str:
        """The URL of the same database through this proxy."""
        parts = urlsplit(direct)
        return urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{self.port}"))

    def cut(self) -> None:
        """Drops all connections; new ones are accepted."""
        self._do(self._cut())

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(OSError, asyncio.CancelledError):
            upstream, back = await asyncio.open_connection("127.0.0.1", self.to)
            self._writers.add(back)
            await asyncio.gather(self._forward(reader, back), self._forward(upstream, writer))
        await self._close_writer(writer)

    async def _forward(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await source.read(CHUNK_BYTES):
                await asyncio.sleep(self.delay)
                sink.write(chunk)
                await sink.drain()
        await self._close_writer(sink)

    async def _close_writer(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def _cut(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _end(self) -> None:
        assert self._server
        self._server.close()
        await self._cut()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class WallClockControl:
    """The wall clock of a server."""

    def __init__(self, server: Server) -> None:
        self._file = server.folder / "clock-shift"
        server.environment[VARIABLE] = str(self._file)
        self.set(0)

    def set(self, hours: int) -> None:
        """This much ahead of the true time."""
        new_file = self._file.with_suffix(".new")
        new_file.write_text(f"{hours * 3600}")
        new_file.rename(self._file)


class ServerWithShiftedClock(ForkedServer):
    program = server.__name__
