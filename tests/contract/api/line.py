"""A real line to an application: what httpx would not send, byte by byte over a socket."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import uvicorn
from msgspec import Struct

from mergeyard.api.app import Application
from mergeyard.api.protocol import Protocol


class Line(Struct, frozen=True):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer: its status, its headers and its body."""
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        return int(first.split()[1]), headers, await self.reader.readexactly(int(headers["content-length"]))


@asynccontextmanager
async def a_line(application: Application, protocol: type[Protocol] = Protocol) -> AsyncGenerator[Line]:
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application, http=protocol, ws="none", log_config=None, lifespan="on")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([listening]))
    line = Line(*await asyncio.open_connection(*listening.getsockname()))
    try:
        yield line
    finally:
        line.writer.close()
        server.should_exit = True
        await serving
