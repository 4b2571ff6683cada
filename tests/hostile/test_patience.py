"""Nobody holds a connection by being slow: not in asking, not in sending what nobody wants, not in listening."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import cast

import pytest
from msgspec import json

from mergeyard.api.protocol import Protocol
from tests.support.door import PR, SECRET, Talk, Yard, over_a_socket

HEALTHY = b"GET /healthz HTTP/1.1\r\nhost: yard\r\n\r\n"
CHUNKED = b"POST /v1/submitPullRequest HTTP/1.1\r\nhost: yard\r\ntransfer-encoding: chunked\r\n\r\n"
WITH_TOKEN = CHUNKED.replace(b"host: yard", f"x-api-token: {SECRET}\r\ncontent-type: application/json".encode())


class Hasty(Protocol):
    head_seconds = rest_seconds = taking_seconds = 0.1


class Silenced(Protocol):
    silent_seconds = 0


class Narrow(Protocol):
    most_connections = 3


def served(talk: Talk, protocol: type[Protocol] = Hasty) -> None:
    async def in_time(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(20):
            await talk(reader, writer)

    over_a_socket(in_time, Yard(), protocol)


async def drop_by_drop(writer: asyncio.StreamWriter, drops: Iterable[bytes]) -> None:
    """Steadily, until the other side has had enough."""
    with suppress(ConnectionError):
        for drop in drops:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0.01)


@asynccontextmanager
async def dripping(writer: asyncio.StreamWriter, drop: bytes) -> AsyncGenerator[None]:
    async with asyncio.TaskGroup() as together:
        drops = together.create_task(drop_by_drop(writer, (drop for _ in range(5000))))
        yield
        drops.cancel()


async def one_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    above = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in above.lower().split(b"\r\n") if line.startswith(b"content-length"))
    return int(above.split()[1]), await reader.readexactly(int(length.partition(b":")[2]))


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What was said before the end, however it came."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


# Asking


@pytest.mark.parametrize(("first", "drop"), [(b"GET /", b"a"), (b"GET / HTTP/1.1\r\nx: ", b"a"), (b"", b"P")])
def test_a_head_that_comes_drop_by_drop_does_not_come(first: bytes, drop: bytes):
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        async with dripping(writer, drop):
            status, body = await one_answer(reader)
        assert (status, json.decode(body)["code"]) in {(408, "request_timeout"), (400, "invalid_request")}
        assert not first or status == 408

    served(talk)


@pytest.mark.parametrize("before", [b"", HEALTHY])
def test_empty_lines_are_no_request(before: bytes):
    """Neither on a new connection nor between two requests."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(before)
        if before:
            assert (await one_answer(reader))[0] == 200
        async with dripping(writer, b"\r\n"):
            assert await ended(reader) == b""

    served(talk)


def test_the_second_head_has_no_more_time_than_the_first():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEALTHY + HEALTHY[:-2])
        assert (await one_answer(reader))[0] == 200
        async with dripping(writer, b"x: y\r\n"):
            assert (await one_answer(reader))[0] == 408

    served(talk)


def test_a_connection_is_kept_for_the_next_request_only_so_long():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEALTHY)
        assert (await one_answer(reader))[0] == 200
        async with asyncio.timeout(3):
            assert await ended(reader) == b""

    served(talk, Silenced)


def test_a_proxy_that_keeps_a_connection_for_a_minute_closes_it_first():
    assert Protocol.silent_seconds > 60


# Sending what nobody wants


def test_the_rest_of_an_unwanted_body_is_not_waited_for():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: yard\r\ncontent-length: 1000000000\r\n\r\n")
        assert (await one_answer(reader))[0] == 200
        async with dripping(writer, b"a"):
            assert await ended(reader) == b""

    served(talk)


@pytest.mark.parametrize("above", [CHUNKED, WITH_TOKEN], ids=["stranger", "known"])
@pytest.mark.parametrize(
    ("first", "endless"),
    [(b"0\r\n", b"x: y\r\n"), (b"0\r\nx: ", b"y"), (b"1;", b"a"), (b"", b"0"), (b"1;a=", b"b")],
    ids=["trailers", "one trailer", "an extension", "zeros", "a value"],
)
def test_what_is_neither_head_nor_body_has_an_end(above: bytes, first: bytes, endless: bytes):
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(above + first)
        sending = asyncio.create_task(flood(writer, endless * (65_536 // len(endless))))
        answer = await ended(reader)
        sending.cancel()
        sent = await asyncio.gather(sending, return_exceptions=True)
        assert answer == b"" or answer.split()[1] in {b"431", b"401"}
        assert not isinstance(sent[0], int), f"{sent[0]} bytes were taken"

    served(talk)


async def flood(writer: asyncio.StreamWriter, much: bytes) -> int:
    """How much was taken, if everything was."""
    for _ in range(1000):
        writer.write(much)
        await writer.drain()
    return 1000 * len(much)


# Listening


def test_who_does_not_listen_is_not_talked_to():
    """Many long answers, none of which is read."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cast(asyncio.Transport, writer.transport).pause_reading()
        writer.write(b"GET /openapi.json HTTP/1.1\r\nhost: yard\r\n\r\n" * 400)
        while not writer.is_closing():
            writer.write(HEALTHY)
            await asyncio.sleep(0.01)
        assert len(await ended(reader)) < 400 * 20_000

    served(talk)


# Too many at once


def test_a_newcomer_takes_the_place_of_whoever_waited_longest_with_nothing_to_say():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = writer.get_extra_info("peername")
        others = [await asyncio.open_connection(*there) for _ in range(3)]
        assert await ended(reader) == b""
        for other, asking in others:
            asking.write(HEALTHY)
            assert (await one_answer(other))[0] == 200
            asking.close()

    served(talk, Narrow)


def test_when_all_are_busy_a_newcomer_is_told_to_come_back():
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = writer.get_extra_info("peername")
        busy = [await asyncio.open_connection(*there) for _ in range(2)]
        for asking in (writer, *(asking for _, asking in busy)):
            asking.write(WITH_TOKEN + b"1\r\n{\r\n")
        await asyncio.sleep(0.05)
        newcomer, asking = await asyncio.open_connection(*there)
        above = await newcomer.readuntil(b"\r\n\r\n")
        assert above.startswith(b"HTTP/1.1 429 ")
        assert b"retry-after: 1\r\n" in above
        assert json.decode(await newcomer.read())["code"] == "rate_limited"
        rest = json.encode(PR)[1:]
        for told, asked in busy:
            asked.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest))
            assert (await one_answer(told))[0] == 200
        for each in (asking, *(asked for _, asked in busy)):
            each.close()

    served(talk, Narrow)
