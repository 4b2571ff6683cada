"""Slow clients are disconnected: slow in sending a head, in sending an unwanted body, or in reading responses."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import cast

import pytest
from msgspec import json

from mergeyard.api.http_server import Protocol
from tests.support.fake_api import PR, SECRET, FakeBackend, SocketExchange, exchange_over_socket

HEALTHY = b"GET /healthz HTTP/1.1\r\nhost: mergeyard\r\n\r\n"
CHUNKED = b"POST /v1/submitPullRequest HTTP/1.1\r\nhost: mergeyard\r\ntransfer-encoding: chunked\r\n\r\n"
WITH_TOKEN = CHUNKED.replace(b"host: mergeyard", f"x-api-token: {SECRET}\r\ncontent-type: application/json".encode())


class ShortTimeouts(Protocol):
    head_seconds = rest_seconds = taking_seconds = 0.1


class NoKeepAlive(Protocol):
    silent_seconds = 0


class ThreeConnections(Protocol):
    most_connections = 3


def serve(talk: SocketExchange, protocol: type[Protocol] = ShortTimeouts) -> None:
    async def in_time(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(20):
            await talk(reader, writer)

    exchange_over_socket(in_time, FakeBackend(), protocol)


async def send_slowly(writer: asyncio.StreamWriter, pieces: Iterable[bytes]) -> None:
    """Sends piece by piece, until the server closes the connection."""
    with suppress(ConnectionError):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)


@asynccontextmanager
async def sending_slowly(writer: asyncio.StreamWriter, piece: bytes) -> AsyncGenerator[None]:
    async with asyncio.TaskGroup() as together:
        sending = together.create_task(send_slowly(writer, (piece for _ in range(5000))))
        yield
        sending.cancel()


async def read_response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
    return int(head.split()[1]), await reader.readexactly(int(length.partition(b":")[2]))


async def read_to_end(reader: asyncio.StreamReader) -> bytes:
    """What was received before the connection was closed or reset."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


# Slow requests


@pytest.mark.parametrize(("first", "piece"), [(b"GET /", b"a"), (b"GET / HTTP/1.1\r\nx: ", b"a"), (b"", b"P")])
def test_slow_head_times_out(first: bytes, piece: bytes):
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        async with sending_slowly(writer, piece):
            status, body = await read_response(reader)
        assert (status, json.decode(body)["code"]) in {(408, "request_timeout"), (400, "invalid_request")}
        assert not first or status == 408

    serve(talk)


@pytest.mark.parametrize("before", [b"", HEALTHY])
def test_empty_lines_do_not_keep_a_connection_open(before: bytes):
    """Neither on a new connection nor between two requests."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(before)
        if before:
            assert (await read_response(reader))[0] == 200
        async with sending_slowly(writer, b"\r\n"):
            assert await read_to_end(reader) == b""

    serve(talk)


def test_second_head_has_the_same_timeout_as_the_first():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEALTHY + HEALTHY[:-2])
        assert (await read_response(reader))[0] == 200
        async with sending_slowly(writer, b"x: y\r\n"):
            assert (await read_response(reader))[0] == 408

    serve(talk)


def test_idle_connection_is_closed_after_a_while():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEALTHY)
        assert (await read_response(reader))[0] == 200
        async with asyncio.timeout(3):
            assert await read_to_end(reader) == b""

    serve(talk, NoKeepAlive)


def test_idle_connections_are_kept_longer_than_a_proxy_keeps_them():
    assert Protocol.silent_seconds > 60


# Unwanted bodies


def test_server_does_not_wait_for_the_rest_of_an_unwanted_body():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: mergeyard\r\ncontent-length: 1000000000\r\n\r\n")
        assert (await read_response(reader))[0] == 200
        async with sending_slowly(writer, b"a"):
            assert await read_to_end(reader) == b""

    serve(talk)


@pytest.mark.parametrize("head", [CHUNKED, WITH_TOKEN], ids=["stranger", "known"])
@pytest.mark.parametrize(
    ("first", "endless"),
    [(b"0\r\n", b"x: y\r\n"), (b"0\r\nx: ", b"y"), (b"1;", b"a"), (b"", b"0"), (b"1;a=", b"b")],
    ids=["trailers", "one trailer", "an extension", "zeros", "a value"],
)
def test_trailers_and_chunk_extensions_are_limited(head: bytes, first: bytes, endless: bytes):
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head + first)
        sending = asyncio.create_task(flood(writer, endless * (65_536 // len(endless))))
        answer = await read_to_end(reader)
        sending.cancel()
        sent = await asyncio.gather(sending, return_exceptions=True)
        assert answer == b"" or answer.split()[1] in {b"431", b"401"}
        assert not isinstance(sent[0], int), f"{sent[0]} bytes were accepted"

    serve(talk)


async def flood(writer: asyncio.StreamWriter, data: bytes) -> int:
    """The number of bytes, if all of them were accepted."""
    for _ in range(1000):
        writer.write(data)
        await writer.drain()
    return 1000 * len(data)


# Slow readers


def test_client_that_does_not_read_is_disconnected():
    """Many long responses, none of which is read."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cast(asyncio.Transport, writer.transport).pause_reading()
        writer.write(b"GET /openapi.json HTTP/1.1\r\nhost: mergeyard\r\n\r\n" * 400)
        while not writer.is_closing():
            writer.write(HEALTHY)
            await asyncio.sleep(0.01)
        assert len(await read_to_end(reader)) < 400 * 20_000

    serve(talk)


# Too many connections


def test_new_connection_replaces_the_longest_idle_one():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = writer.get_extra_info("peername")
        others = [await asyncio.open_connection(*there) for _ in range(3)]
        assert await read_to_end(reader) == b""
        for other, asking in others:
            asking.write(HEALTHY)
            assert (await read_response(other))[0] == 200
            asking.close()

    serve(talk, ThreeConnections)


def test_new_connection_is_refused_with_429_when_all_are_busy():
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = writer.get_extra_info("peername")
        busy = [await asyncio.open_connection(*there) for _ in range(2)]
        for asking in (writer, *(asking for _, asking in busy)):
            asking.write(WITH_TOKEN + b"1\r\n{\r\n")
        await asyncio.sleep(0.05)
        reader, asking = await asyncio.open_connection(*there)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 1\r\n" in head
        assert json.decode(await reader.read())["code"] == "rate_limited"
        rest = json.encode(PR)[1:]
        for response, asked in busy:
            asked.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest))
            assert (await read_response(response))[0] == 200
        for each in (asking, *(asked for _, asked in busy)):
            each.close()

    serve(talk, ThreeConnections)
