"""Malformed HTTP is refused in the documented form too."""

import asyncio

import pytest
from msgspec import json

from mergeyard.api.http_server import Protocol
from tests.support.fake_api import PR, SECRET, FakeBackend, exchange_over_socket


class ShortTimeoutProtocol(Protocol):
    head_seconds = 0.05


def refused(raw: bytes, protocol: type[Protocol] = Protocol) -> tuple[int, str]:
    """Status and code of the response to these bytes, after which the connection ends."""
    answers: list[tuple[int, str]] = []

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        above, _, body = (await reader.read()).partition(b"\r\n\r\n")
        problem = json.decode(body)
        assert f"x-request-id: {problem['requestId']}".encode() in above
        assert b"content-type: application/json" in above
        answers.append((int(above.split()[1]), problem["code"]))

    exchange_over_socket(exchange, FakeBackend(), protocol)
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


def test_a_body_with_broken_chunks_is_a_bad_request():
    above = b"POST /v1/getQueue HTTP/1.1\r\nx-api-token: my_secret\r\ncontent-type: application/json\r\n"
    chunked = b'transfer-encoding: chunked\r\n\r\n5\r\n{"a":\r\nnonsense\r\n'
    assert refused(above + chunked) == (400, "invalid_request")


def test_an_endless_address_is_cut_off():
    assert refused(b"GET /" + b"a" * 9000) == (414, "uri_too_long")


def test_endless_headers_are_cut_off():
    assert refused(b"GET / HTTP/1.1\r\nx-much: " + b"a" * 300_000) == (431, "headers_too_large")


def test_headers_that_do_not_arrive_time_out():
    assert refused(b"GET /healthz HTTP/1.1\r\nx-slow: a", ShortTimeoutProtocol) == (408, "request_timeout")


def test_an_idle_connection_is_closed_without_a_response():
    async def exchange(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        assert await reader.read() == b""

    exchange_over_socket(exchange, FakeBackend(), ShortTimeoutProtocol)


def test_many_headers_are_refused():
    many = b"".join(b"x-%d: %s\r\n" % (at, b"a" * 100) for at in range(640))
    assert refused(b"GET /healthz HTTP/1.1\r\nconnection: close\r\n" + many + b"\r\n") == (431, "headers_too_large")


def test_a_body_is_not_counted_as_the_head_of_the_next_request():
    """Both can arrive in one piece."""
    body = json.encode(PR | {"more": "a" * 100_000})
    above = f"POST /v1/submitPullRequest HTTP/1.1\r\nx-api-token: {SECRET}\r\ncontent-type: application/json\r\n"
    first = f"{above}content-length: {len(body)}\r\n\r\n".encode() + body

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first + b"GET /healthz HTTP/1.1\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        writer.write(b"connection: close\r\n\r\n")
        assert b"HTTP/1.1 200 " in await reader.read()

    exchange_over_socket(exchange, FakeBackend())


class RecordingProtocol(asyncio.Protocol):
    """Records each piece of data as it arrives."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[bytes] = asyncio.Queue()

    def data_received(self, data: bytes) -> None:
        self.received.put_nowait(data)


def http_request(*headers: str, version: str = "1.1", method: str = "POST") -> bytes:
    body = json.encode(PR)
    own = (f"x-api-token: {SECRET}", "content-type: application/json", f"content-length: {len(body)}")
    lines = (f"{method} /v1/getSubmittedPullRequest HTTP/{version}", *own, *headers, "", "")
    return "\r\n".join(lines).encode() + body


def response_to(*requests: bytes) -> bytes:
    """All that is sent until the server closes the connection."""
    answers: list[bytes] = []

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(requests))
        answers.append(await reader.read())

    exchange_over_socket(exchange, FakeBackend())
    return answers[0]


def test_head_and_body_arrive_together():
    pieces: list[bytes] = []

    async def exchange(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = writer.get_extra_info("peername")
        transport, recorder = await asyncio.get_running_loop().create_connection(RecordingProtocol, *address)
        for _ in range(2):
            transport.write(http_request())
            pieces.append(await recorder.received.get())
        transport.close()

    exchange_over_socket(exchange, FakeBackend())
    for piece in pieces:
        above, _, body = piece.partition(b"\r\n\r\n")
        assert above.startswith(b"HTTP/1.1 200 OK\r\n")
        assert f"content-length: {len(body)}".encode() in above
        assert b"date: " in above


def test_a_client_that_wants_the_connection_closed_gets_connection_close():
    assert b"\r\nconnection: close\r\n" in response_to(http_request("connection: close"))
    assert b"\r\nconnection: close\r\n" in response_to(http_request(version="1.0"))


def test_pipelined_requests_are_answered_in_their_order():
    pipelined = [
        http_request("x-request-id: one"),
        http_request("x-request-id: two"),
        http_request("connection: close"),
    ]
    answers = response_to(*pipelined)
    assert answers.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert answers.index(b"x-request-id: one") < answers.index(b"x-request-id: two")


def test_a_head_request_gets_no_body():
    above, _, body = response_to(http_request("connection: close", method="HEAD")).partition(b"\r\n\r\n")
    assert above.startswith(b"HTTP/1.1 405 ")
    assert not body
