"""The ASGI application: finds the route of a request, and turns every failure into one error response."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any

import structlog
from msgspec import json

from mergeyard.api import auth, http_server, openapi, pages, request_body
from mergeyard.api.dispatch import build_body_route, build_query_route
from mergeyard.api.endpoint import PREFIX, AccessControl, Endpoint, Handler, WaitForEffect
from mergeyard.api.presenting import RunPresenter
from mergeyard.api.pull_requests import PullRequestEndpoints
from mergeyard.api.queues import EventEndpoints, MergeAuditEndpoints, QueueEndpoints, RunEndpoints
from mergeyard.api.request_body import BodyReader, ClientDisconnected, Receive, RequestBody, RequestHead, Route
from mergeyard.api.responses import ERROR_KINDS, ApiError, Reply, Send, build_error_reply, send_head, send_reply
from mergeyard.api.routes import METRICS_MEDIA_TYPE
from mergeyard.api.webhooks import WebhookEndpoints
from mergeyard.api.whatif import WhatIfEndpoints
from mergeyard.domain.access import Scope
from mergeyard.ports.external import BodyParser
from mergeyard.ports.forge import HostUnavailable, UnexpectedHostResponse
from mergeyard.ports.git import GitError
from mergeyard.ports.store import StoreUnavailable
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.service import Service

AsgiScope = MutableMapping[str, Any]
Asgi = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
Routes = Mapping[str, Mapping[str, Route]]
"""By path, then by method."""

REQUEST_TIMEOUT_STATUS = ERROR_KINDS[Code.REQUEST_TIMEOUT].status

FindRoute = Callable[[str], Mapping[str, Route] | None]
"""Finds the methods of a path that has parameters in it."""

log = structlog.get_logger()


def find_nothing(_: str) -> None:
    """The `Find` of an application without parameters in its paths."""


def combine_finders(first: FindRoute, second: FindRoute) -> FindRoute:
    return lambda path: first(path) or second(path)


class Application:
    def __init__(self, routes: Routes, *, find_route: FindRoute = find_nothing, fallback: Asgi | None = None) -> None:
        """`find` looks up paths with parameters; `elsewhere` serves every other path outside the API (the pages)."""
        self._routes = routes
        self._find = find_route
        self._fallback = fallback

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _handle_other_scope(scope, receive, send)
            return
        methods = self._routes.get(scope["path"]) or self._find(scope["path"])
        if methods is None and self._fallback is not None and not f"{scope['path']}/".startswith(PREFIX):
            await self._fallback(scope, receive, send)
            return
        request_head = request_body.parse_head(
            scope["headers"], scope["query_string"], scope["path"], _client_address(scope)
        )
        body = RequestBody(receive, request_head, http_server.body_of(scope))
        try:
            reply = await _handle_request(methods, scope, request_head, body)
        except ClientDisconnected:
            return
        if reply.status != 200 and not body.is_discardable:
            await _send_and_drain(send, reply, request_head, body)
        elif not http_server.offered(scope)(reply, request_head.request_id):
            await send_reply(send, reply, request_head.request_id)


def _client_address(scope: AsgiScope) -> str:
    client = scope.get("client")
    return "" if client is None else str(client[0])


async def _handle_request(
    methods: Mapping[str, Route] | None, scope: AsgiScope, request_head: RequestHead, body: RequestBody
) -> Reply:
    try:
        request_body.refuse_oversized(request_head, scope.get("raw_path") or scope["path"].encode())
        return await _find_route(methods, scope)(request_head, body)
    except RequestRefused as refused:
        return build_error_reply(refused, request_head.request_id, request_head.accept)
    except ClientDisconnected:
        raise
    except Exception as error:
        refused = _to_refusal(error, scope["path"], request_head.request_id)
        return build_error_reply(refused, request_head.request_id, request_head.accept)


def _find_route(methods: Mapping[str, Route] | None, scope: AsgiScope) -> Route:
    if methods is None:
        raise ApiError(Code.NOT_FOUND, "There is nothing at this address: see /docs for the list of endpoints.")
    route = methods.get(scope["method"])
    if route is None:
        allowed = ", ".join(methods)
        detail = f"The method is not allowed here: send the request with {allowed}."
        raise ApiError(Code.METHOD_NOT_ALLOWED, detail, headers=((b"allow", allowed.encode()),))
    return route


def _to_refusal(error: Exception, path: str, request_id: str) -> RequestRefused:
    """The response to an exception that no handler caught. Details go to the log only, except the Git host's text."""
    match error:
        case StoreUnavailable():
            log.warning("storage_unavailable", path=path, request_id=request_id, error=str(error))
            return RequestRefused(
                Code.STORAGE_UNAVAILABLE, "The database is unreachable; nothing changed. Retry shortly."
            )
        case UnexpectedHostResponse():
            log.warning("provider_error", path=path, request_id=request_id, error=str(error))
            detail = f"Unexpected response from the Git host: {error}. Retry; if it persists, check the host's status."
            return RequestRefused(Code.PROVIDER_ERROR, detail)
        case HostUnavailable() | GitError():
            log.warning("provider_unavailable", path=path, request_id=request_id, error=str(error))
            return RequestRefused(Code.PROVIDER_UNAVAILABLE, "The Git host does not respond. Retry shortly.")
        case _:
            log.error("request_failed", path=path, request_id=request_id, exc_info=error)
            detail = "Internal error. Retry; if it persists, report the request id to your administrator."
            return RequestRefused(Code.INTERNAL_ERROR, detail)


async def _send_and_drain(send: Send, reply: Reply, request_head: RequestHead, body: RequestBody) -> None:
    """Sends an error while the client may still be writing its body, then reads the rest and closes the connection.

    A client that writes its whole body before it reads would otherwise see a connection reset instead of the error.
    """
    closing = Reply(reply.body, reply.status, reply.content_type, (*reply.headers, (b"connection", b"close")))
    await send_head(send, closing, request_head.request_id)
    await send({"type": "http.response.body", "body": reply.body, "more_body": True})
    if reply.status != REQUEST_TIMEOUT_STATUS:
        await body.drain()
    await send({"type": "http.response.body"})


async def _handle_other_scope(scope: AsgiScope, receive: Receive, send: Send) -> None:
    """Closes websockets; acknowledges the lifespan protocol, which the server waits for at its start."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
        return
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})


def build_application(
    endpoints: Sequence[Endpoint],
    access: AccessControl,
    *,
    check_ready: Callable[[], Awaitable[None]],
    metrics_route: Route,
    body_reader: BodyReader | None = None,
    body_parser: BodyParser | None = None,
    find_route: FindRoute = find_nothing,
    fallback: Asgi | None = None,
) -> Application:
    """`ready` raises while the process cannot serve; `elsewhere` serves the pages."""
    body_reader = body_reader or BodyReader()
    document = json.encode(openapi.build_document(endpoints))
    process_routes: Mapping[str, Route] = {
        "/healthz": _healthz,
        "/readyz": _readyz(check_ready),
        "/metrics": metrics_route,
        "/openapi.json": pages.serve_static(document, b"application/json"),
        **pages.build_docs_routes(),
    }
    routes = {path: {"GET": route} for path, route in process_routes.items()}
    routes |= {
        endpoint.path: {endpoint.method: _endpoint_route(endpoint, access, body_reader, body_parser)}
        for endpoint in endpoints
    }
    return Application(routes, find_route=find_route, fallback=fallback)


def public_metrics_route(text: Callable[[], bytes]) -> Route:
    async def route(_: RequestHead, __: RequestBody) -> Reply:
        return Reply(text(), content_type=METRICS_MEDIA_TYPE.encode())

    return route


def authenticated_metrics_route(text: Callable[[], bytes], access: AccessControl) -> Route:
    async def route(request_head: RequestHead, _: RequestBody) -> Reply:
        token = await auth.authenticate(access, request_head)
        with auth.log_missing_scope(access, token, request_head):
            auth.require_scope(token, Scope.READ)
        return Reply(text(), content_type=METRICS_MEDIA_TYPE.encode())

    return route


def _endpoint_route(
    endpoint: Endpoint, access: AccessControl, body_reader: BodyReader, body_parser: BodyParser | None
) -> Route:
    if endpoint.method == "GET":
        return build_query_route(endpoint, access)
    return build_body_route(endpoint, access, body_reader, body_parser)


async def _healthz(_: RequestHead, __: RequestBody) -> Reply:
    return Reply(b'{"status":"ok"}')


def _readyz(ready: Callable[[], Awaitable[None]]) -> Route:
    """Returns the text of the cause, unlike other errors: the operator who probes the process needs it."""

    async def route(_: RequestHead, __: RequestBody) -> Reply:
        try:
            await ready()
        except StoreUnavailable as error:
            raise _not_ready(Code.STORAGE_UNAVAILABLE, error) from error
        except GitError as error:
            raise _not_ready(Code.PROVIDER_UNAVAILABLE, error) from error
        return Reply(b'{"status":"ready"}')

    return route


def _not_ready(code: Code, error: Exception) -> RequestRefused:
    log.warning("not_ready", error=str(error))
    return RequestRefused(code, str(error))


def build_effect_waits(service: Service) -> Mapping[str, WaitForEffect]:
    return {"updateQueue": QueueEndpoints(service).wait_for_pause}


def build_handlers(service: Service, public_url: str) -> Mapping[str, Handler]:
    pull_requests = PullRequestEndpoints(service)
    queues = QueueEndpoints(service)
    runs = RunEndpoints(service, RunPresenter(public_url))
    events = EventEndpoints(service)
    webhooks = WebhookEndpoints(service)
    return {
        "submitPullRequest": pull_requests.submit,
        "cancelPullRequest": pull_requests.cancel,
        "restartTestsOnPullRequest": pull_requests.restart,
        "getSubmittedPullRequest": pull_requests.get,
        "getSubmittedPullRequests": pull_requests.get_several,
        "listPullRequests": pull_requests.list,
        "setImpactedTargets": pull_requests.set_impacted_targets,
        "getMergeQueueTestingDetails": runs.details,
        "listMergeQueueTestingResults": runs.results,
        "reportCommitStatus": runs.report_status,
        "createQueue": queues.create,
        "getQueue": queues.get,
        "listQueues": queues.list,
        "updateQueue": queues.update,
        "deleteQueue": queues.delete,
        "listEvents": events.list,
        "verifyLandings": MergeAuditEndpoints(service).verify,
        "replayQueue": WhatIfEndpoints(service).replay,
        "createWebhook": webhooks.create,
        "listWebhooks": webhooks.list,
        "updateWebhook": webhooks.update,
        "deleteWebhook": webhooks.delete,
        "testWebhook": webhooks.test,
        "listWebhookDeliveries": webhooks.deliveries,
        "resendWebhookEvent": webhooks.resend,
        "getMergeQueueMetrics": queues.metrics,
    }
