"""Around every request: an id, a limit, one response to an unexpected exception, and no wait for an unread body."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.testing import capture_logs

from mergeyard.api.endpoint import Call
from mergeyard.api.middleware import (
    DISCARD_TIMEOUT_S,
    MAX_DISCARDED_BODIES,
    MAX_REQUESTS,
    ErrorsMiddleware,
    LimitsMiddleware,
    UnreadBodyMiddleware,
)
from mergeyard.api.responses import ApiError
from tests.support.asynchronous import asynchronous
from tests.support.fake_api import PR, SECRET, FakeBackend, exchange_over_socket, send_post

METRICS = "/v1/getMergeQueueMetrics"
TOKEN = {"x-api-token": SECRET}
TIMEOUT_S = 10
"""Longer than any response takes; a test that waits this long has failed."""


def a_scope(path: str, method: str = "GET", headers: dict[str, str] | None = None) -> Scope:
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in (headers or {}).items()],
    }


async def call(
    app: Callable[[Scope, Receive, Send], Awaitable[None]], scope: Scope, received: Message | None = None
) -> list[Message]:
    """The messages that the application sends."""
    sent: list[Message] = []

    async def receive() -> Message:
        return received or {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


async def soon(event: asyncio.Event) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        await event.wait()


# Request ids


@pytest.mark.parametrize("given", ["abc-1", "a b", "~" * 128], ids=["short", "blank", "long"])
def test_a_clients_own_request_id_is_kept(given: str):
    assert send_post("getQueue", headers={"x-request-id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a" * 129, "a\tb"], ids=["empty", "too long", "tab"])
def test_another_request_id_is_replaced(given: str):
    shown = send_post("getQueue", headers={"x-request-id": given}).headers["x-request-id"]
    assert len(shown) == 32
    assert shown != given


@asynchronous
async def test_a_request_id_that_is_sent_twice_is_replaced():
    scope = a_scope("/healthz")
    scope["headers"] = [(b"x-request-id", b"one"), (b"x-request-id", b"two")]
    start, _ = await call(FakeBackend().application(), scope)
    assert dict(start["headers"])[b"x-request-id"] not in {b"one", b"two"}


def test_every_request_has_its_own_id():
    assert len({send_post("getQueue").headers["x-request-id"] for _ in range(5)}) == 5


# The limit of requests in progress


@asynchronous
async def test_more_requests_in_progress_than_the_limit_are_refused_except_probes():
    """Probes are exempt: an orchestrator would otherwise restart a process that is only busy."""
    may_respond, started = asyncio.Event(), asyncio.Semaphore(0)

    async def handle(_: Call) -> bytes:
        started.release()
        await may_respond.wait()
        return b"{}"

    backend = FakeBackend()
    app = backend.application(handler=handle)

    async def status(path: str) -> int:
        return (await call(app, a_scope(path, headers=TOKEN)))[0]["status"]

    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
        requests = [group.create_task(status(METRICS)) for _ in range(MAX_REQUESTS)]
        for _ in requests:
            await started.acquire()
        start, body = await call(app, a_scope(METRICS, headers=TOKEN))
        assert (start["status"], json.decode(body["body"])["code"]) == (429, "rate_limited")
        assert dict(start["headers"])[b"retry-after"] == b"1"
        assert [await status(path) for path in ("/healthz", "/readyz", "/docs")] == [200, 200, 429]
        may_respond.set()
    assert {request.result() for request in requests} == {200}
    assert await status(METRICS) == 200


class UnreadResponse:
    """A client that does not read its response: the first message cannot be sent."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()

    async def send(self, _: Message) -> None:
        self.waits.set()
        await asyncio.get_running_loop().create_future()


async def stream(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})


@pytest.mark.parametrize(("app", "counts"), [(Response(b"whole"), False), (stream, True)], ids=["complete", "stream"])
@asynchronous
async def test_a_complete_response_that_is_not_read_no_longer_counts(app: ASGIApp, counts: bool):
    limited = LimitsMiddleware(app, max_requests=1)
    first, second = UnreadResponse(), UnreadResponse()
    tasks = [asyncio.create_task(limited(a_scope("/docs"), never_receive, first.send))]
    await soon(first.waits)
    if counts:
        with pytest.raises(ApiError, match="Too many requests"):
            async with asyncio.timeout(TIMEOUT_S):
                await limited(a_scope("/docs"), never_receive, second.send)
    else:
        tasks.append(asyncio.create_task(limited(a_scope("/docs"), never_receive, second.send)))
        await soon(second.waits)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    third = UnreadResponse()
    last = asyncio.create_task(limited(a_scope("/docs"), never_receive, third.send))
    await soon(third.waits)
    last.cancel()


async def never_receive() -> Message:
    return await asyncio.get_running_loop().create_future()


# Unexpected exceptions


def test_an_unexpected_exception_is_answered_once_and_logged_once_without_the_token():
    with capture_logs() as logs:
        response = send_post("getQueue", backend=FakeBackend(error=ZeroDivisionError("secret text")))
    assert (response.status_code, response.json()["code"]) == (500, "internal_error")
    assert "secret" not in response.text
    (entry,) = logs
    assert (entry["event"], entry["request_id"]) == ("request_failed", response.headers["x-request-id"])
    assert SECRET not in str(logs)


@asynchronous
async def test_an_exception_after_the_response_began_is_handled_but_not_answered_again():
    handled: list[Exception] = []

    async def fail_late(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    async def handle(_: Request, error: Exception) -> Response:
        handled.append(error)
        return Response(status_code=500)

    sent = await call(ErrorsMiddleware(fail_late, handler=handle), a_scope("/"))
    assert [message.get("status") for message in sent] == [200]
    assert [type(error) for error in handled] == [ZeroDivisionError]


@asynchronous
async def test_a_client_that_disconnected_gets_no_response():
    headers = TOKEN | {"content-type": "application/json", "content-length": "100"}
    scope = a_scope("/v1/submitPullRequest", "POST", headers)
    with capture_logs() as logs:
        assert await call(FakeBackend().application(), scope, {"type": "http.disconnect"}) == []
    assert logs == []


# Over a real socket


def http_request(*headers: str, path: str = "/v1/getSubmittedPullRequest", method: str = "POST") -> bytes:
    body = json.encode(PR)
    own = (f"x-api-token: {SECRET}", "content-type: application/json", f"content-length: {len(body)}")
    return "\r\n".join((f"{method} {path} HTTP/1.1", "host: x", *own, *headers, "", "")).encode() + body


def responses_to(*requests: bytes) -> bytes:
    """All that is sent until the server closes the connection."""
    received: list[bytes] = []

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(requests))
        async with asyncio.timeout(TIMEOUT_S):
            received.append(await reader.read())

    exchange_over_socket(exchange, FakeBackend())
    return received[0]


def test_pipelined_requests_are_answered_in_their_order():
    pipelined = [http_request(f"x-request-id: {name}") for name in ("one", "two")]
    responses = responses_to(*pipelined, http_request("connection: close"))
    assert responses.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert responses.index(b"x-request-id: one") < responses.index(b"x-request-id: two")


@pytest.mark.parametrize(
    ("path", "status"), [("/healthz", 200), (METRICS, 200), ("/v1/getQueue", 405), ("/nothing", 404)]
)
def test_a_head_request_gets_no_body(path: str, status: int):
    above, _, body = responses_to(http_request("connection: close", path=path, method="HEAD")).partition(b"\r\n\r\n")
    assert above.startswith(b"HTTP/1.1 %d " % status)
    assert b"content-length: 0" not in above
    assert body == b""


UNREAD: dict[str, tuple[bytes, int]] = {
    "no token": (b"POST /v1/getQueue HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n{", 401),
    "no token, chunks": (b"POST /v1/getQueue HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{", 401),
    "too large": (
        f"POST /v1/getQueue HTTP/1.1\r\nhost: x\r\nx-api-token: {SECRET}\r\ncontent-type: application/json\r\n"
        "content-length: 20971521\r\n\r\n{".encode(),
        413,
    ),
    "no body expected": (b"GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n", 200),
    "no such address": (b"POST /nothing HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n", 404),
    "expects to continue": (
        b"POST /v1/getQueue HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1000000\r\n\r\n",
        401,
    ),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_response_without_the_body_comes_at_once_and_announces_that_the_connection_is_closed(name: str):
    request, status = UNREAD[name]

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request)
        async with asyncio.timeout(DISCARD_TIMEOUT_S / 2):
            above = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in above.split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.partition(b":")[2]))
        assert above.startswith(b"HTTP/1.1 %d " % status)
        assert above.count(b"\r\nconnection: close\r\n") == 1

    exchange_over_socket(exchange, FakeBackend())


def test_a_client_that_writes_all_of_an_unwanted_body_reads_the_response_and_no_reset():
    size = 21 * 2**20
    head = f"POST /v1/getQueue HTTP/1.1\r\nhost: x\r\ncontent-length: {size}\r\n\r\n".encode()
    response = responses_to(head + b" " * size)
    assert response.startswith(b"HTTP/1.1 401 ")


def test_after_an_upgrade_request_the_server_closes_the_connection():
    """uvicorn parses the body of such a request as the next request."""
    response = responses_to(http_request("connection: upgrade", "upgrade: h2c"), http_request())
    assert response.count(b"HTTP/1.1 ") == response.count(b"\r\nconnection: close\r\n") == 1


class SlowClient:
    """A request whose body never arrives completely; the application refuses it without reading it."""

    def __init__(self, *, is_authenticated: bool = False) -> None:
        self.scope = a_scope("/", "POST", {"content-length": "1000"})
        self.scope["state"] = {"is_authenticated": is_authenticated}
        self.waits = asyncio.Event()
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        self.waits.set()
        return await asyncio.get_running_loop().create_future()

    async def send(self, message: Message) -> None:
        self.sent.append(message)


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(b"no", 401)(scope, receive, send)


@asynchronous
async def test_the_rest_of_a_body_is_awaited_only_for_a_while():
    client = SlowClient(is_authenticated=True)
    await UnreadBodyMiddleware(refuse, discard_timeout_s=0.01)(client.scope, client.receive, client.send)
    assert client.waits.is_set()
    assert [message.get("more_body", False) for message in client.sent] == [False, True, False]


@asynchronous
async def test_without_a_token_only_a_few_connections_wait_for_the_rest_of_a_body():
    app = UnreadBodyMiddleware(refuse, discard_timeout_s=TIMEOUT_S)
    clients = [SlowClient() for _ in range(MAX_DISCARDED_BODIES)]
    tasks = [asyncio.create_task(app(client.scope, client.receive, client.send)) for client in clients]
    for client in clients:
        await soon(client.waits)
    one_more, known = SlowClient(), SlowClient(is_authenticated=True)
    async with asyncio.timeout(TIMEOUT_S / 2):
        await app(one_more.scope, one_more.receive, one_more.send)
    tasks.append(asyncio.create_task(app(known.scope, known.receive, known.send)))
    await soon(known.waits)
    assert not one_more.waits.is_set()
    assert one_more.sent[-1] == {"type": "http.response.body"}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    after = SlowClient()
    last = asyncio.create_task(app(after.scope, after.receive, after.send))
    await soon(after.waits)
    last.cancel()


def test_after_a_response_to_a_whole_request_the_connection_stays_open():
    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(3):
            writer.write(http_request())
            async with asyncio.timeout(TIMEOUT_S):
                above = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(len(b'{"answer":1}'))
            assert above.startswith(b"HTTP/1.1 200 ")
            assert b"connection: close" not in above

    exchange_over_socket(exchange, FakeBackend())


def test_a_body_is_not_parsed_as_the_next_request():
    hidden = http_request("x-request-id: hidden")
    head = f"GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: {len(hidden)}\r\n\r\n".encode()
    assert responses_to(head + hidden).count(b"HTTP/1.1 ") == 1


@asynchronous
async def test_a_body_that_was_read_only_in_part_counts_as_unread():
    parts: list[Any] = [{"type": "http.request", "body": b" " * 2**20, "more_body": at > 0} for at in range(25)]
    headers = TOKEN | {"content-type": "application/json", "transfer-encoding": "chunked"}
    sent: list[Message] = []

    async def receive() -> Message:
        return parts.pop()

    async def send(message: Message) -> None:
        sent.append(message)

    await FakeBackend().application()(a_scope("/v1/submitPullRequest", "POST", headers), receive, send)
    assert sent[0]["status"] == 413
    assert (b"connection", b"close") in sent[0]["headers"]
    assert parts == [], "the rest was discarded"
