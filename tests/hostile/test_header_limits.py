"""Headers without an end, and connections on which nothing arrives: the server limits both without a proxy."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from socket import MSG_PEEK
from threading import Event

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from mergeyard.api.http_protocol import HEADER_TIMEOUT_S, MAX_HEADER_BYTES, LimitedProtocol
from tests.hostile.conftest import Target
from tests.hostile.raw_connection import TIMEOUT_S, RawConnection
from tests.support.http_server import serve_in_thread
from tests.support.polling import eventually

START = b"GET /echo HTTP/1.1\r\nhost: here\r\n"
REQUEST = START + b"\r\n"
STREAM = REQUEST.replace(b"/echo", b"/stream")
POST = b"POST /echo HTTP/1.1\r\nhost: here\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"
TOO_LARGE = (431, "headers_too_large")


class ImpatientProtocol(LimitedProtocol):
    header_timeout_s = 0.05


class Example:
    """A small server with this protocol, and a stream that ends when the test says so."""

    def __init__(self) -> None:
        self.url = ""
        self.may_end = Event()
        routes = [Route("/echo", self._echo, methods=["GET", "POST"]), Route("/stream", self._stream)]
        self.application = Starlette(routes=routes)

    async def _echo(self, request: Request) -> PlainTextResponse:
        body = await request.body()
        return PlainTextResponse(f"{len(body)} bytes, x-late: {request.headers.get('x-late')}")

    async def _stream(self, _: Request) -> StreamingResponse:
        return StreamingResponse(self._list_parts())

    async def _list_parts(self) -> AsyncGenerator[bytes]:
        yield b"first "
        assert await asyncio.to_thread(self.may_end.wait, TIMEOUT_S)
        yield b"last"

    def connect(self) -> RawConnection:
        return RawConnection(self.url)

    def begin(self, request: bytes, expected: bytes) -> RawConnection:
        """A connection whose response begins so. On a busy machine a request can arrive after the timeout."""
        connections = list[RawConnection]()

        def has_begun() -> bool:
            connections.append(self.connect())
            with suppress(ConnectionError):
                connections[-1].send(request)
                if connections[-1].socket.recv(len(expected), MSG_PEEK) == expected:
                    return True
            connections.pop().socket.close()
            return False

        eventually(has_begun)
        return connections[-1]

    def outlast_the_timeout(self) -> None:
        """A connection that was opened now is closed, because no headers arrived in time."""
        with self.connect() as silent:
            assert silent.socket.recv(1) == b""


def run_example(protocol: type[LimitedProtocol]) -> Generator[Example]:
    example = Example()
    with serve_in_thread(example.application, protocol=protocol) as url:
        example.url = url
        yield example
        example.may_end.set()


@pytest.fixture
def patient() -> Generator[Example]:
    yield from run_example(LimitedProtocol)


@pytest.fixture
def impatient() -> Generator[Example]:
    yield from run_example(ImpatientProtocol)


# Size


def pad(start: bytes, size: int) -> bytes:
    return start + b"a" * (size - len(start))


HEADS = {"a header": START + b"x-a: ", "many headers": START + b"x-a: b\r\n" * 5000, "an address": b"GET /"}


@pytest.mark.parametrize("kind", HEADS)
def test_a_head_without_an_end_is_refused_at_the_limit(patient: Example, kind: str):
    """No byte follows that the server does not read: it would reset the connection, and with it the response."""
    with patient.connect() as connection:
        (response,) = connection.send(pad(HEADS[kind], MAX_HEADER_BYTES + 1)).receive_all()
    assert response.status_and_code == TOO_LARGE
    assert response.headers["connection"] == "close"
    assert response.problem["requestId"] == response.headers["x-request-id"]


ENDLESS = {
    "a header": (START + b"x-a: ", b"a"),
    "blank lines": (b"", b"\r\n"),
    "a trailer": (CHUNKED + b"1\r\na\r\n0\r\nx-late: ", b"a"),
    "many trailers": (CHUNKED + b"1\r\na\r\n0\r\n", b"x-late: yes\r\n"),
    "the extension of a chunk": (CHUNKED + b"1;", b"a"),
}
MAX_SENT_BYTES = 64 * 1024 * 1024
"""More than the buffers of the two sides hold."""


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_connection_on_which_no_part_of_a_request_ends_is_closed(patient: Example, kind: str):
    start, filler = ENDLESS[kind]
    block = filler * 100_000
    sent = 0
    with patient.connect() as connection:
        connection.send(start)
        with suppress(ConnectionError):
            while sent < MAX_SENT_BYTES:
                connection.send(block)
                sent += len(block)
    assert sent < MAX_SENT_BYTES


@pytest.mark.parametrize("part", ["header", "address"])
def test_complete_headers_beyond_the_limit_are_refused_too(patient: Example, part: str):
    """They can arrive in one read."""
    for size, status in ((MAX_HEADER_BYTES - 1000, 200), (MAX_HEADER_BYTES, 431)):
        text = b"a" * size
        if part == "header":
            request = START + b"x-a: " + text + b"\r\n\r\n"
        else:
            request = START.replace(b"/echo", b"/echo?" + text) + b"\r\n"
        with patient.connect() as connection:
            assert connection.send(request).receive().status == status


def test_the_running_server_has_the_limit(target: Target):
    with target.connect() as connection:
        (response,) = connection.send(pad(START, MAX_HEADER_BYTES + 1)).receive_all()
    assert response.status_and_code == TOO_LARGE


def test_bodies_and_many_requests_are_not_counted(patient: Example):
    body = b"b" * 10 * MAX_HEADER_BYTES
    chunk = b"%x\r\n%b\r\n" % (len(body), body)
    with patient.connect() as connection:
        sized = POST + b"content-length: %d\r\n\r\n" % len(body) + body
        assert connection.send(sized).receive().body == b"655360 bytes, x-late: None"
        chunks = CHUNKED + chunk + b"1\r\na\r\n" * MAX_HEADER_BYTES + b"0\r\n\r\n"
        assert connection.send(chunks).receive().body == b"720896 bytes, x-late: None"
        for _ in range(3):
            request = START + b"x-a: " + b"a" * (MAX_HEADER_BYTES // 2) + b"\r\n\r\n"
            assert connection.send(request).receive().status == 200


def test_a_trailer_is_not_a_header(patient: Example):
    with patient.connect() as connection:
        response = connection.send(CHUNKED + b"1\r\na\r\n0\r\nx-late: yes\r\n\r\n").receive()
        assert response.body == b"1 bytes, x-late: None"
        assert connection.send(START + b"x-late: no\r\n\r\n").receive().body == b"0 bytes, x-late: no"


def test_invalid_http_is_refused_in_the_common_form(patient: Example):
    with patient.connect() as connection:
        (response,) = connection.send(b"GET / HTTP/1.1\r\n: y\r\n\r\n").receive_all()
    assert response.status_and_code == (400, "invalid_request")


# Time


def test_the_timeout_is_that_of_the_shipped_proxy():
    assert LimitedProtocol.header_timeout_s == HEADER_TIMEOUT_S == 10


def test_a_silent_connection_is_closed_without_a_response(impatient: Example):
    impatient.outlast_the_timeout()


@pytest.mark.parametrize("part", [START, b"G", b"\r\n"], ids=["half the headers", "a letter", "a blank line"])
def test_headers_that_do_not_end_are_refused(impatient: Example, part: bytes):
    with impatient.begin(part, b"HTTP/1.1 408") as connection:
        (response,) = connection.receive_all()
    assert response.status_and_code == (408, "request_timeout")


def test_a_second_request_that_does_not_end_is_refused(impatient: Example):
    with impatient.begin(REQUEST, b"HTTP/1.1 200") as connection:
        assert connection.receive().status == 200
        (response,) = connection.send(START).receive_all()
    assert response.status_and_code == (408, "request_timeout")


def test_an_idle_connection_can_be_used_again(impatient: Example):
    with impatient.begin(REQUEST, b"HTTP/1.1 200") as connection:
        for _ in range(2):
            assert connection.receive().status == 200
            impatient.outlast_the_timeout()
            connection.send(REQUEST)
        assert connection.receive().status == 200


def test_a_slow_body_is_the_matter_of_the_application(impatient: Example):
    head = POST + b"content-length: 2\r\nexpect: 100-continue\r\n\r\n"
    with impatient.begin(head, b"HTTP/1.1 100") as connection:
        assert connection.receive().status == 100
        for byte in (b"a", b"b"):
            impatient.outlast_the_timeout()
            connection.send(byte)
        assert connection.receive().body == b"2 bytes, x-late: None"


@pytest.mark.parametrize("rest", [b"", START], ids=["alone", "with the begin of another request behind it"])
def test_a_long_response_is_not_cut(impatient: Example, rest: bytes):
    with impatient.begin(STREAM + rest, b"HTTP/1.1 200") as connection:
        impatient.outlast_the_timeout()
        impatient.outlast_the_timeout()
        impatient.may_end.set()
        assert connection.receive().body == b"first last"
