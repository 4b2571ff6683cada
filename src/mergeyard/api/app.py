"""The ASGI application: finds the route, and gives every request an answer in the one shape."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import structlog

from mergeyard.api import at_once, head
from mergeyard.api.errors import KINDS, ApiError
from mergeyard.api.head import Head
from mergeyard.api.receiving import Body, Disconnected, Receive
from mergeyard.api.reply import Reply, Send, answer, begin, refusal
from mergeyard.api.routes import PREFIX
from mergeyard.api.serving import Route
from mergeyard.ports.git import GitTrouble
from mergeyard.ports.host import HostTrouble, Unreadable
from mergeyard.ports.store import StoreTrouble
from mergeyard.service.errors import Code, Refused

Scope = MutableMapping[str, Any]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
Routes = Mapping[str, Mapping[str, Route]]
"""By path, then by method."""

TOO_SLOW = KINDS[Code.REQUEST_TIMEOUT].status

Find = Callable[[str], Mapping[str, Route] | None]

log = structlog.get_logger()


def nowhere(_: str) -> None:
    """No path has a name in it."""


def either(first: Find, second: Find) -> Find:
    return lambda path: first(path) or second(path)


class Application:
    def __init__(self, routes: Routes, *, find: Find = nowhere, elsewhere: Asgi | None = None) -> None:
        """`find` knows the paths that have names in them; `elsewhere` answers all others outside of the API."""
        self._routes = routes
        self._find = find
        self._elsewhere = elsewhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _unlike_http(scope, receive, send)
            return
        methods = self._routes.get(scope["path"]) or self._find(scope["path"])
        if methods is None and self._elsewhere is not None and not f"{scope['path']}/".startswith(PREFIX):
            await self._elsewhere(scope, receive, send)
            return
        above = head.read(scope["headers"], scope["query_string"], scope["path"], _client(scope))
        body = Body(receive, above, at_once.body_of(scope))
        try:
            reply = await _replied(methods, scope, above, body)
        except Disconnected:
            return
        if reply.status != 200 and not body.passes_by_itself:
            await _answer_and_drain(send, reply, above, body)
        elif not at_once.offered(scope)(reply, above.request_id):
            await answer(send, reply, above.request_id)


def _client(scope: Scope) -> str:
    client = scope.get("client")
    return "" if client is None else str(client[0])


async def _replied(methods: Mapping[str, Route] | None, scope: Scope, above: Head, body: Body) -> Reply:
    try:
        head.refuse_too_much(above, scope.get("raw_path") or scope["path"].encode())
        return await _route(methods, scope)(above, body)
    except Refused as refused:
        return refusal(refused, above.request_id, above.accept)
    except Disconnected:
        raise
    except Exception as trouble:
        return refusal(_told(trouble, scope["path"], above.request_id), above.request_id, above.accept)


def _route(methods: Mapping[str, Route] | None, scope: Scope) -> Route:
    if methods is None:
        raise ApiError(Code.NOT_FOUND, "Nothing is at this address: /docs lists what there is.")
    route = methods.get(scope["method"])
    if route is None:
        allowed = ", ".join(methods)
        words = f"This address takes {allowed}: ask again with that."
        raise ApiError(Code.METHOD_NOT_ALLOWED, words, headers=((b"allow", allowed.encode()),))
    return route


def _told(trouble: Exception, path: str, request_id: str) -> Refused:
    """What is told of trouble that nobody expected; the rest of it is in the log."""
    match trouble:
        case StoreTrouble():
            log.warning("storage_unavailable", path=path, request_id=request_id, trouble=str(trouble))
            return Refused(Code.STORAGE_UNAVAILABLE, "The database cannot be reached; nothing changed. Ask again soon.")
        case Unreadable():
            log.warning("provider_error", path=path, request_id=request_id, trouble=str(trouble))
            return Refused(Code.PROVIDER_ERROR, f"The Git provider tells nonsense: {trouble}. Have it repaired there.")
        case HostTrouble() | GitTrouble():
            log.warning("provider_unavailable", path=path, request_id=request_id, trouble=str(trouble))
            return Refused(Code.PROVIDER_UNAVAILABLE, "The Git provider does not answer. Ask again soon.")
        case _:
            log.error("request_failed", path=path, request_id=request_id, exc_info=trouble)
            words = "Something went wrong here. Ask again, and if it stays, name the request id to your administrator."
            return Refused(Code.INTERNAL_ERROR, words)


async def _answer_and_drain(send: Send, reply: Reply, above: Head, body: Body) -> None:
    """The answer goes out before the rest of the body is read, and the connection ends after it."""
    closing = Reply(reply.body, reply.status, reply.content_type, (*reply.headers, (b"connection", b"close")))
    await begin(send, closing, above.request_id)
    await send({"type": "http.response.body", "body": reply.body, "more_body": True})
    if reply.status != TOO_SLOW:
        await body.drain()
    await send({"type": "http.response.body"})


async def _unlike_http(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
        return
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})
