"""Bodies are counted while they stream, within a deadline, and a refusal is read and not reset."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import json

from mergeyard.api.receiving import LIMIT, Reception
from tests.support.asynchronous import asynchronous
from tests.support.door import PR, SECRET, Yard, a_client, ask, over_a_socket

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
    yard = Yard()
    assert ask("submitPullRequest", padded(LIMIT), yard=yard).status_code == 200
    assert ask("submitPullRequest", padded(LIMIT + 1), yard=yard).json()["code"] == "body_too_large"
    assert len(yard.calls) == 1


@asynchronous
async def test_chunks_add_up():
    async with a_client(Yard()) as client:
        exact = await client.post("/v1/submitPullRequest", content=in_chunks(padded(LIMIT)), headers=HEADERS)
        more = await client.post("/v1/submitPullRequest", content=in_chunks(padded(LIMIT + 1)), headers=HEADERS)
    assert (exact.status_code, more.status_code) == (200, 413)


@asynchronous
async def test_many_large_bodies_at_once_are_all_served():
    yard = Yard()
    async with a_client(yard, reception=Reception(large_at_once=2, understood_at_once=1)) as client:
        asked = [client.post("/v1/submitPullRequest", content=padded(MIB), headers=HEADERS) for _ in range(8)]
        assert {response.status_code for response in await asyncio.gather(*asked)} == {200}
    assert len(yard.calls) == 8


@asynchronous
async def test_a_body_that_does_not_come_is_not_waited_for_without_end():
    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with a_client(Yard(), reception=Reception(seconds=0.01)) as client:
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
    await Yard().application()(scope, receive, send)
    assert sent == []


# Over a real socket

BIG = 21 * MIB
GOOD = (f"x-api-token: {SECRET}", "content-type: application/json")


@pytest.mark.parametrize(
    ("headers", "status"),
    [(GOOD, 413), (("x-api-token: my_other",), 401), ((GOOD[0], "content-type: text/plain"), 415)],
)
def test_a_client_that_writes_everything_first_reads_the_refusal_and_no_reset(headers: tuple[str, ...], status: int):
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(*headers, f"content-length: {BIG}"))
        for _ in range(BIG // MIB):
            writer.write(b" " * MIB)
            await writer.drain()
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert b"connection: close" in answer

    over_a_socket(talk, Yard())


def test_a_client_that_writes_too_many_chunks_reads_the_refusal():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(*GOOD, "transfer-encoding: chunked"))
        for _ in range(BIG // MIB):
            writer.write(b"%x\r\n%s\r\n" % (MIB, b" " * MIB))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 413 ")

    over_a_socket(talk, Yard())


def test_a_refusal_comes_before_the_body():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(f"content-length: {BIG}"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")

    over_a_socket(talk, Yard())


def test_a_length_beyond_all_measure_is_too_large():
    length = {"content-length": "9" * 5000, "x-api-token": SECRET, "content-type": "application/json"}
    assert ask("submitPullRequest", PR, headers=length).json()["code"] == "body_too_large"


def test_a_client_that_waits_to_be_told_sends_no_body():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(*GOOD, f"content-length: {BIG}", "expect: 100-continue"))
        assert (await reader.read()).startswith(b"HTTP/1.1 413 ")

    over_a_socket(talk, Yard())


def test_after_a_small_refused_body_the_connection_goes_on():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for expected in (b"HTTP/1.1 401 ", b"HTTP/1.1 200 "):
            token = () if b"401" in expected else GOOD
            body = json.encode(PR)
            writer.write(head(*token, f"content-length: {len(body)}") + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(expected)
            length = next(line for line in answer.split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.partition(b":")[2]))

    over_a_socket(talk, Yard())
