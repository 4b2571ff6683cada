"""What never becomes a request is refused in the one shape too."""

import asyncio

import pytest
from msgspec import json

from mergeyard.api.protocol import Protocol
from tests.support.door import PR, SECRET, Yard, over_a_socket


class Impatient(Protocol):
    head_seconds = 0.05


def refused(raw: bytes, protocol: type[Protocol] = Protocol) -> tuple[int, str]:
    """Status and code of the answer to these bytes, after which the connection ends."""
    answers: list[tuple[int, str]] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        above, _, body = (await reader.read()).partition(b"\r\n\r\n")
        problem = json.decode(body)
        assert f"x-request-id: {problem['requestId']}".encode() in above
        assert b"content-type: application/json" in above
        answers.append((int(above.split()[1]), problem["code"]))

    over_a_socket(talk, Yard(), protocol)
    return answers[0]


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /a b HTTP/1.1\r\n\r\n",
        b"POST /v1/getQueue HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST /v1/getQueue HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        b"POST /v1/getQueue HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header: 1\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
def test_broken_framing_is_a_bad_request(raw: bytes):
    assert refused(raw) == (400, "invalid_request")


def test_a_body_that_breaks_off_in_nonsense_is_a_bad_request():
    above = b"POST /v1/getQueue HTTP/1.1\r\nx-api-token: my_secret\r\ncontent-type: application/json\r\n"
    chunked = b'transfer-encoding: chunked\r\n\r\n5\r\n{"a":\r\nnonsense\r\n'
    assert refused(above + chunked) == (400, "invalid_request")


def test_an_endless_address_is_cut_off():
    assert refused(b"GET /" + b"a" * 9000) == (414, "uri_too_long")


def test_endless_headers_are_cut_off():
    assert refused(b"GET / HTTP/1.1\r\nx-much: " + b"a" * 300_000) == (431, "headers_too_large")


def test_headers_that_do_not_come_are_not_waited_for_without_end():
    assert refused(b"GET /healthz HTTP/1.1\r\nx-slow: a", Impatient) == (408, "request_timeout")


def test_a_connection_that_nobody_speaks_on_ends_without_a_word():
    async def talk(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        assert await reader.read() == b""

    over_a_socket(talk, Yard(), Impatient)


def test_many_headers_are_refused():
    many = b"".join(b"x-%d: %s\r\n" % (at, b"a" * 100) for at in range(640))
    assert refused(b"GET /healthz HTTP/1.1\r\nconnection: close\r\n" + many + b"\r\n") == (431, "headers_too_large")


def test_a_body_is_not_counted_as_the_head_of_the_next_request():
    """They may come in one piece."""
    body = json.encode(PR | {"more": "a" * 100_000})
    above = f"POST /v1/submitPullRequest HTTP/1.1\r\nx-api-token: {SECRET}\r\ncontent-type: application/json\r\n"
    first = f"{above}content-length: {len(body)}\r\n\r\n".encode() + body

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first + b"GET /healthz HTTP/1.1\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        writer.write(b"connection: close\r\n\r\n")
        assert b"HTTP/1.1 200 " in await reader.read()

    over_a_socket(talk, Yard())
