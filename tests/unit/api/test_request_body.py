"""Bodies are counted while they stream, within a deadline and within limits on how many arrive at the same time."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from msgspec import json

from mergeyard.api.request_body import MAX_BODY_BYTES, BodyReader
from tests.support.asynchronous import asynchronous
from tests.support.fake_api import PR, SECRET, FakeBackend, a_client, exchange_over_socket, send_post

MIB = 1024 * 1024
TIMEOUT_S = 10
"""Longer than any response takes; a test that waits this long has failed."""
HEADERS = {"x-api-token": SECRET, "content-type": "application/json"}


def padded(size: int) -> bytes:
    """A good request of exactly this many bytes."""
    body = json.encode(PR | {"padding": ""})
    return body[:-2] + b"a" * (size - len(body)) + b'"}'


async def in_chunks(body: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(body), MIB):
        yield body[at : at + MIB]


def head(*headers: str, path: str = "submitPullRequest") -> bytes:
    return "\r\n".join([f"POST /v1/{path} HTTP/1.1", "host: x", *headers, "", ""]).encode()


# In one process


def test_20_mib_exactly_are_served_and_one_byte_more_is_refused():
    backend = FakeBackend()
    assert send_post("submitPullRequest", padded(MAX_BODY_BYTES), backend=backend).status_code == 200
    assert (
        send_post("submitPullRequest", padded(MAX_BODY_BYTES + 1), backend=backend).json()["code"] == "body_too_large"
    )
    assert len(backend.calls) == 1


@asynchronous
async def test_chunks_add_up():
    async with a_client(FakeBackend()) as client:
        exact = await client.post("/v1/submitPullRequest", content=in_chunks(padded(MAX_BODY_BYTES)), headers=HEADERS)
        more = await client.post(
            "/v1/submitPullRequest", content=in_chunks(padded(MAX_BODY_BYTES + 1)), headers=HEADERS
        )
    assert (exact.status_code, more.status_code) == (200, 413)


@asynchronous
async def test_many_large_bodies_at_once_are_all_served():
    backend = FakeBackend()
    async with a_client(backend, body_reader=BodyReader(max_large_bodies=2)) as client:
        requests = [client.post("/v1/submitPullRequest", content=padded(2 * MIB), headers=HEADERS) for _ in range(8)]
        assert {response.status_code for response in await asyncio.gather(*requests)} == {200}
    assert len(backend.calls) == 8


class Upload:
    """A body that is sent part by part: `next_part` lets the client send one, `end` the rest."""

    def __init__(self, body: bytes, parts: int) -> None:
        size = -(-len(body) // parts)
        self._parts = [body[at : at + size] for at in range(0, len(body), size)]
        self._allowed = asyncio.Semaphore(0)
        self.requested = asyncio.Queue[int]()
        """The number of each part that the server has asked for."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for at, part in enumerate(self._parts):
            self.requested.put_nowait(at)
            await self._allowed.acquire()
            yield part

    def next_part(self) -> None:
        self._allowed.release()

    def end(self) -> None:
        for _ in self._parts:
            self._allowed.release()


@asynchronous
async def test_a_large_body_takes_up_more_memory_only_when_it_has_a_slot():
    first, second = Upload(padded(4 * MIB), 4), Upload(padded(4 * MIB), 4)
    async with (
        asyncio.timeout(TIMEOUT_S),
        a_client(FakeBackend(), BodyReader(max_large_bodies=1)) as client,
        asyncio.TaskGroup() as group,
    ):
        requests = [
            group.create_task(client.post("/v1/submitPullRequest", content=body, headers=HEADERS))
            for body in (first, second)
        ]
        for upload in (first, second):
            assert await upload.requested.get() == 0
            upload.next_part()
            assert await upload.requested.get() == 1
        first.next_part()
        assert await first.requested.get() == 2, "the first large body has the slot"
        second.next_part()
        small = await client.post("/v1/submitPullRequest", content=padded(MIB), headers=HEADERS)
        assert small.status_code == 200, "a small body needs no slot"
        for _ in range(100):
            await asyncio.sleep(0)
        assert second.requested.empty()
        first.end()
        assert await second.requested.get() == 2
        second.end()
    assert [request.result().status_code for request in requests] == [200, 200]


@asynchronous
async def test_bodies_over_the_limit_of_arriving_ones_are_refused_at_once():
    arriving = [Upload(padded(1000), 2) for _ in range(2)]
    async with (
        asyncio.timeout(TIMEOUT_S),
        a_client(FakeBackend(), BodyReader(max_bodies=2)) as client,
        asyncio.TaskGroup() as group,
    ):
        requests = [
            group.create_task(client.post("/v1/submitPullRequest", content=body, headers=HEADERS)) for body in arriving
        ]
        for upload in arriving:
            await upload.requested.get()
        refused = await client.post("/v1/submitPullRequest", content=padded(1000), headers=HEADERS)
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        for upload in arriving:
            upload.end()
        assert {(await request).status_code for request in requests} == {200}
        again = await client.post("/v1/submitPullRequest", content=padded(1000), headers=HEADERS)
    assert again.status_code == 200


async def never() -> AsyncIterator[bytes]:
    yield b"{"
    await asyncio.Event().wait()


async def never_large() -> AsyncIterator[bytes]:
    yield b" " * 2 * MIB
    await asyncio.Event().wait()


@pytest.mark.parametrize("body", [never, never_large], ids=["small", "large"])
@asynchronous
async def test_a_body_that_does_not_arrive_times_out(body: Callable[[], AsyncIterator[bytes]]):
    async with a_client(FakeBackend(), body_reader=BodyReader(timeout_s=0.01)) as client:
        response = await client.post("/v1/submitPullRequest", content=body(), headers=HEADERS)
    assert (response.status_code, response.json()["code"]) == (408, "request_timeout")
    assert response.headers["connection"] == "close"


@asynchronous
async def test_a_body_that_timed_out_gives_its_slots_back():
    reader = BodyReader(timeout_s=0.5, max_large_bodies=1, max_bodies=1)
    async with a_client(FakeBackend(), body_reader=reader) as client:
        late = await client.post("/v1/submitPullRequest", content=never_large(), headers=HEADERS)
        served = await client.post("/v1/submitPullRequest", content=padded(2 * MIB), headers=HEADERS)
    assert (late.status_code, served.status_code) == (408, 200)


def test_an_absurd_content_length_is_too_large():
    length = {"content-length": "9" * 5000, "x-api-token": SECRET, "content-type": "application/json"}
    assert send_post("submitPullRequest", PR, headers=length).json()["code"] == "body_too_large"


# Over a real socket

GOOD = (f"x-api-token: {SECRET}", "content-type: application/json")


@pytest.mark.parametrize(("headers", "status"), [((), 401), (GOOD[:1], 415), (GOOD, 413)], ids=["401", "415", "413"])
@pytest.mark.parametrize("expect", [(), ("expect: 100-continue",)], ids=["plain", "expects to continue"])
def test_a_refusal_comes_before_the_body(headers: tuple[str, ...], status: int, expect: tuple[str, ...]):
    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(*headers, *expect, f"content-length: {MAX_BODY_BYTES + 1}"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 %d " % status)

    exchange_over_socket(exchange, FakeBackend())


def test_chunks_over_the_limit_are_refused_before_the_last_one():
    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(*GOOD, "transfer-encoding: chunked"))
        for _ in range(MAX_BODY_BYTES // MIB):
            writer.write(b"%x\r\n%s\r\n" % (MIB, b" " * MIB))
            await writer.drain()
        writer.write(b"1\r\n \r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")

    exchange_over_socket(exchange, FakeBackend())
