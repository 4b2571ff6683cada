"""Puts the door together: endpoints, the process's own routes, and the pages about the API."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog
from msgspec import json

from mergeyard.api import docs_page, door, openapi
from mergeyard.api.app import Application, Asgi, Find, nowhere
from mergeyard.api.endpoint import Doorkeeper, Endpoint
from mergeyard.api.head import Head
from mergeyard.api.receiving import Body, Reception
from mergeyard.api.reply import Reply
from mergeyard.api.routes import METRICS
from mergeyard.api.serving import Route, served, served_by_query
from mergeyard.domain.tokens import Scope
from mergeyard.ports.git import GitTrouble
from mergeyard.ports.scribe import Scribe
from mergeyard.ports.store import StoreTrouble
from mergeyard.service.errors import Code, Refused

log = structlog.get_logger()


def application(
    endpoints: Sequence[Endpoint],
    doorkeeper: Doorkeeper,
    *,
    ready: Callable[[], Awaitable[None]],
    own_metrics: Route,
    reception: Reception | None = None,
    scribe: Scribe | None = None,
    find: Find = nowhere,
    elsewhere: Asgi | None = None,
) -> Application:
    """`ready` raises what is in the way; `elsewhere` answers pages and hooks."""
    receiving = reception or Reception()
    described = json.encode(openapi.document(endpoints))
    single: Mapping[str, Route] = {
        "/healthz": _healthy,
        "/readyz": _readiness(ready),
        "/metrics": own_metrics,
        "/openapi.json": docs_page.shown(described, b"application/json"),
        **docs_page.routes(),
    }
    routes = {path: {"GET": route} for path, route in single.items()}
    routes |= {
        endpoint.path: {endpoint.method: _served(endpoint, doorkeeper, receiving, scribe)} for endpoint in endpoints
    }
    return Application(routes, find=find, elsewhere=elsewhere)


def open_metrics(text: Callable[[], bytes]) -> Route:
    async def route(_: Head, __: Body) -> Reply:
        return Reply(text(), content_type=METRICS.encode())

    return route


def guarded_metrics(text: Callable[[], bytes], doorkeeper: Doorkeeper) -> Route:
    async def route(above: Head, _: Body) -> Reply:
        token = await door.admitted(doorkeeper, above)
        with door.scope_checked(doorkeeper, token, above):
            door.refuse_without(token, Scope.READ)
        return Reply(text(), content_type=METRICS.encode())

    return route


def _served(endpoint: Endpoint, doorkeeper: Doorkeeper, reception: Reception, scribe: Scribe | None) -> Route:
    if endpoint.method == "GET":
        return served_by_query(endpoint, doorkeeper)
    return served(endpoint, doorkeeper, reception, scribe)


async def _healthy(_: Head, __: Body) -> Reply:
    return Reply(b'{"status":"ok"}')


def _readiness(ready: Callable[[], Awaitable[None]]) -> Route:
    """Whoever asks wants to know what is in the way, in the words of whom it concerns."""

    async def route(_: Head, __: Body) -> Reply:
        try:
            await ready()
        except StoreTrouble as trouble:
            raise _not_ready(Code.STORAGE_UNAVAILABLE, trouble) from trouble
        except GitTrouble as trouble:
            raise _not_ready(Code.PROVIDER_UNAVAILABLE, trouble) from trouble
        return Reply(b'{"status":"ready"}')

    return route


def _not_ready(code: Code, trouble: Exception) -> Refused:
    log.warning("not_ready", words=str(trouble))
    return Refused(code, str(trouble))
