"""Bodies are counted while they stream, within a deadline; a refused client reads the response, not a reset."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import json

from mergeyard.api.request_body import MAX_BODY_BYTES, BodyReader
from tests.support.asynchronous import asynchronous
from tests.support.fake_api import PR, SECRET, FakeBackend, a_client, exchange_over_socket, send_post

MIB = 1024 * 1024
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
    async with a_client(backend, body_reader=BodyReader(max_large_bodies=2, max_concurrent_parses=1)) as client:
        requests = [client.post("/v1/submitPullRequest", content=padded(MIB), headers=HEADERS) for _ in range(8)]
        assert {response.status_code for response in await asyncio.gather(*requests)} == {200}
    assert len(backend.calls) == 8


@asynchronous
async def test_a_body_that_does_not_arrive_times_out():
    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with a_client(FakeBackend(), body_reader=BodyReader(timeout_s=0.01)) as client:
        response = await client.post("/v1/submitPullRequest", content=never(), headers=HEADERS)
    assert (response.status_code, response.json()["code"]) == (408, "request_timeout")
    assert response.headers["connection"] == "close"


@asynchronous
async def test_a_client_that_went_away_is_not_answered():
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/submitPullRequest",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in HEADERS.items()],
    }
    await FakeBackend().application()(scope, receive, send)
    assert sent == []


# Over a real socket

BIG = 21 * MIB
GOOD = (f"x-api-token: {SECRET}", "content-type: application/json")


@pytest.mark.parametrize(
    ("headers", "status"),
    [(GOOD, 413), (("x-api-token: my_other",), 401), ((GOOD[0], "content-type: text/plain"), 415)],
)
def test_a_client_that_writes_everything_first_reads_the_refusal_and_no_reset(headers: tuple[str, ...], status: int):
    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(*headers, f"content-length: {BIG}"))
        for _ in range(BIG // MIB):
            writer.write(b" " * MIB)
            await writer.drain()
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert b"connection: close" in answer

    exchange_over_socket(exchange, FakeBackend())


def test_a_client_that_writes_too_many_chunks_reads_the_refusal():
    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(*GOOD, "transfer-encoding: chunked"))
        for _ in range(BIG // MIB):
            writer.write(b"%x\r\n%s\r\n" % (MIB, b" " * MIB))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 413 ")

    exchange_over_socket(exchange, FakeBackend())


def test_a_refusal_comes_before_the_body():
    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(f"content-length: {BIG}"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")

    exchange_over_socket(exchange, FakeBackend())


def test_an_absurd_content_length_is_too_large():
    length = {"content-length": "9" * 5000, "x-api-token": SECRET, "content-type": "application/json"}
    assert send_post("submitPullRequest", PR, headers=length).json()["code"] == "body_too_large"


def test_a_client_that_expects_100_continue_is_refused_before_it_sends_the_body():
    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(*GOOD, f"content-length: {BIG}", "expect: 100-continue"))
        assert (await reader.read()).startswith(b"HTTP/1.1 413 ")

    exchange_over_socket(exchange, FakeBackend())


def test_after_a_small_refused_body_the_connection_stays_open():
    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for expected in (b"HTTP/1.1 401 ", b"HTTP/1.1 200 "):
            token = () if b"401" in expected else GOOD
            body = json.encode(PR)
            writer.write(head(*token, f"content-length: {len(body)}") + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(expected)
            length = next(line for line in answer.split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.partition(b":")[2]))

    exchange_over_socket(exchange, FakeBackend())
