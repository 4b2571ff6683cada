"""Puts a load on a server: many clients, each with a connection of its own, each asking again once it was answered.

The clients live in a process of their own and know just enough HTTP, so that the server is what is measured.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter
from typing import Any, NamedTuple, Self, cast

import uvloop
from msgspec import json

CLIENTS = 64
GREETING = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
FINE = b"HTTP/1.1 200 "
LENGTH = b"content-length:"
END_OF_LINE, END_OF_HEAD = b"\r\n", b"\r\n\r\n"


class Load:
    def __init__(self) -> None:
        self._process = ProcessPoolExecutor(1, get_context("spawn"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.shutdown()

    def pace(self, ports: Sequence[int], requests: Sequence[bytes], clients: int = CLIENTS) -> float:
        """How many requests per second were answered, all of them well, by those who listen at these ports."""
        return len(requests) / self._process.submit(asked, ports, requests, clients).result().seconds

    def waits(self, port: int, requests: Sequence[bytes], clients: int = 1) -> list[float]:
        """How many milliseconds each request waited for its answer."""
        return self._process.submit(asked, [port], requests, clients).result().waits


def request(path: str, secret: str, body: dict[str, Any]) -> bytes:
    content = json.encode(body)
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-token: {secret}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


class Asked(NamedTuple):
    seconds: float
    waits: list[float]


def asked(ports: Sequence[int], requests: Sequence[bytes], clients: int) -> Asked:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_asked(ports, requests, clients))


async def _asked(ports: Sequence[int], requests: Sequence[bytes], count: int) -> Asked:
    """From the moment in which every client has been greeted: taking in connections is not what we measure."""
    clients = [await Client.of(ports[at % len(ports)]) for at in range(min(count, len(requests)))]
    await asyncio.gather(*(client.ask_all([GREETING]) for client in clients))
    begun = perf_counter()
    answers = await asyncio.gather(*(client.ask_all(requests[at::count]) for at, client in enumerate(clients)))
    seconds = perf_counter() - begun
    for client in clients:
        client.transport.close()
    refused = [answer for every in answers for answer in every if not answer.startswith(FINE)]
    assert not refused, refused[0].decode(errors="replace")
    return Asked(seconds, [wait for client in clients for wait in client.waits])


class Client(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._answered: asyncio.Future[list[bytes]]
        self._requests: Iterator[bytes] = iter(())
        self._answers = list[bytes]()
        self._received = b""
        self._asked_at = 0.0
        self.waits = list[float]()
        """Milliseconds until each of the answers."""

    @classmethod
    async def of(cls, port: int) -> Self:
        _, client = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return client

    async def ask_all(self, requests: Iterable[bytes]) -> list[bytes]:
        """One after the other."""
        self._answered = asyncio.get_running_loop().create_future()
        self._requests, self._answers, self.waits = iter(requests), [], []
        self._ask()
        return await self._answered

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own class does not say so

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answered.done():
            self._answered.set_exception(exc or ConnectionResetError("the server hung up"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(END_OF_HEAD)
        if head >= 0 and len(self._received) >= head + len(END_OF_HEAD) + _length(self._received[:head]):
            self._answers.append(self._received)
            self.waits.append(1000 * (perf_counter() - self._asked_at))
            self._received = b""
            self._ask()

    def _ask(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._answered.set_result(self._answers)
        else:
            self._asked_at = perf_counter()
            self.transport.write(request)


def _length(head: bytes) -> int:
    _, _, rest = head.lower().partition(LENGTH)
    return int(rest.partition(END_OF_LINE)[0])
