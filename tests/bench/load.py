"""Puts a load on a server: many clients, each with its own connection, each sending a request after each response.

The clients run in their own process and implement a minimum of HTTP, so that the server is what is measured.
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
WARM_UP_REQUEST = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
STATUS_OK = b"HTTP/1.1 200 "
LENGTH = b"content-length:"
END_OF_LINE, END_OF_HEAD = b"\r\n", b"\r\n\r\n"


class Load:
    def __init__(self) -> None:
        self._process = ProcessPoolExecutor(1, get_context("spawn"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.shutdown()

    def requests_per_second(self, ports: Sequence[int], requests: Sequence[bytes], clients: int = CLIENTS) -> float:
        """All requests must succeed. They are spread over the servers at these ports."""
        return len(requests) / self._process.submit(send_all, ports, requests, clients).result().seconds

    def response_times(self, port: int, requests: Sequence[bytes], clients: int = 1) -> list[float]:
        """Milliseconds from each request to its response."""
        return self._process.submit(send_all, [port], requests, clients).result().response_times


def request(path: str, secret: str, body: dict[str, Any]) -> bytes:
    content = json.encode(body)
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-token: {secret}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


class LoadResult(NamedTuple):
    seconds: float
    response_times: list[float]


def send_all(ports: Sequence[int], requests: Sequence[bytes], clients: int) -> LoadResult:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_send_all(ports, requests, clients))


async def _send_all(ports: Sequence[int], requests: Sequence[bytes], count: int) -> LoadResult:
    """Timed after one response to every client: accepting connections is not measured."""
    clients = [await Client.connect(ports[index % len(ports)]) for index in range(min(count, len(requests)))]
    await asyncio.gather(*(client.send_all([WARM_UP_REQUEST]) for client in clients))
    started = perf_counter()
    responses = await asyncio.gather(*(client.send_all(requests[index::count]) for index, client in enumerate(clients)))
    seconds = perf_counter() - started
    for client in clients:
        client.transport.close()
    failed = [response for each in responses for response in each if not response.startswith(STATUS_OK)]
    assert not failed, failed[0].decode(errors="replace")
    return LoadResult(seconds, [time for client in clients for time in client.response_times])


class Client(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._done: asyncio.Future[list[bytes]]
        self._requests: Iterator[bytes] = iter(())
        self._responses = list[bytes]()
        self._received = b""
        self._sent_at = 0.0
        self.response_times = list[float]()
        """In milliseconds."""

    @classmethod
    async def connect(cls, port: int) -> Self:
        _, client = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return client

    async def send_all(self, requests: Iterable[bytes]) -> list[bytes]:
        """Sends the requests one after the other and returns the responses."""
        self._done = asyncio.get_running_loop().create_future()
        self._requests, self._responses, self.response_times = iter(requests), [], []
        self._send_next()
        return await self._done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # the class of uvloop is not a subclass

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionResetError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(END_OF_HEAD)
        if head >= 0 and len(self._received) >= head + len(END_OF_HEAD) + _length(self._received[:head]):
            self._responses.append(self._received)
            self.response_times.append(1000 * (perf_counter() - self._sent_at))
            self._received = b""
            self._send_next()

    def _send_next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._done.set_result(self._responses)
        else:
            self._sent_at = perf_counter()
            self.transport.write(request)


def _length(head: bytes) -> int:
    _, _, rest = head.lower().partition(LENGTH)
    return int(rest.partition(END_OF_LINE)[0])
