"""Middleware of the HTTP application: request ids, limits, and responses to unexpected exceptions."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from random import getrandbits

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mergeyard.api.responses import ApiError
from mergeyard.service.errors import Code

REQUEST_ID_PATTERN = re.compile(r"[\x20-\x7e]{1,128}")
MAX_REQUESTS = 1000
"""Requests in progress at the same time, long polls and streams included."""
PROBES = frozenset({"/healthz", "/readyz"})
"""Answered even at the limit: an orchestrator would otherwise restart a process that is only busy."""
DISCARD_TIMEOUT_S = 5.0
MAX_DISCARDED_BODIES = 20
"""Of requests without a valid token, at the same time. The connections of others are closed at once."""

ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]


class RequestIdMiddleware:
    """Gives every request an id, or keeps the client's own, and sends it back in `x-request-id`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = choose_request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        await self._app(scope, receive, send_with_id)


def choose_request_id(scope: Scope) -> str:
    """A client's own id is kept if it is printable, not too long and sent once. Ids need not be secret."""
    given = Headers(scope=scope).getlist("x-request-id")
    if len(given) == 1 and REQUEST_ID_PATTERN.fullmatch(given[0]):
        return given[0]
    return f"{getrandbits(128):032x}"


class LimitsMiddleware:
    """Limits the requests in progress.

    A response that is complete no longer counts, even if it cannot be sent yet: clients that do not read their
    responses would otherwise lock out all others.
    """

    def __init__(self, app: ASGIApp, *, max_requests: int = MAX_REQUESTS) -> None:
        self._app = app
        self._max_requests = max_requests
        self._in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        if self._in_progress >= self._max_requests:
            raise ApiError(Code.RATE_LIMITED, "Too many requests are in progress: retry shortly.")
        counted = 1

        def release() -> None:
            nonlocal counted
            self._in_progress -= counted
            counted = 0

        async def send_part(message: Message) -> None:
            if message["type"] == "http.response.start" and "content-length" in Headers(raw=message["headers"]):
                release()
            await send(message)

        self._in_progress += 1
        try:
            await self._app(scope, receive, send_part)
        finally:
            release()


class UnreadBodyMiddleware:
    """Closes the connection after a response whose request has a body that was not read to its end.

    The client could otherwise occupy the connection for as long as it likes by sending the body slowly. The rest of the
    body is discarded first, for a short time: a proxy that is still sending it when the server closes the connection
    would report `502 Bad Gateway` instead of the response. The body of a request with an `Upgrade` header counts as
    unread, because uvicorn gives the application an empty body and parses the actual one as the next request.
    """

    def __init__(self, app: ASGIApp, *, discard_timeout_s: float = DISCARD_TIMEOUT_S) -> None:
        self._app = app
        self._discard_timeout_s = discard_timeout_s
        self._free_slots = MAX_DISCARDED_BODIES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not (_has_body(scope) or _is_upgrade(scope)):
            await self._app(scope, receive, send)
            return
        is_read = is_closing = False

        async def receive_part() -> Message:
            nonlocal is_read
            message = await receive()
            is_read = is_read or not message.get("more_body", False)
            return message

        async def send_and_close(message: Message) -> None:
            nonlocal is_closing
            if message["type"] == "http.response.start" and (not is_read or _is_upgrade(scope)):
                MutableHeaders(scope=message)["connection"] = "close"
                is_closing = True
            elif is_closing and not is_read and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await self._discard(scope, receive)
                message = {"type": "http.response.body"}
            await send(message)

        await self._app(scope, receive_part, send_and_close)

    async def _discard(self, scope: Scope, receive: Receive) -> None:
        slots = 0 if scope["state"].get("is_authenticated") else 1
        if slots > self._free_slots:
            return
        self._free_slots -= slots
        try:
            async with asyncio.timeout(self._discard_timeout_s):
                while (await receive()).get("more_body", False):
                    pass
        except TimeoutError:
            pass
        finally:
            self._free_slots += slots


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _is_upgrade(scope: Scope) -> bool:
    return "upgrade" in Headers(scope=scope)


class ErrorsMiddleware:
    """Responds to exceptions that no handler caught. A client that has disconnected gets no response."""

    def __init__(self, app: ASGIApp, *, handler: ErrorHandler) -> None:
        self._app = app
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False

        async def watch(message: Message) -> None:
            nonlocal has_started
            has_started = has_started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except ClientDisconnect:
            return
        except Exception as error:
            response = await self._handler(Request(scope), error)
            if not has_started:
                await response(scope, receive, send)
