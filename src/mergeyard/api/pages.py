"""Routes outside `/v1`: probes, metrics, API documentation, output of local checks, and incoming forge webhooks."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from urllib.parse import quote

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mergeyard.api.auth import TOKEN_HEADER, Authenticator, record_refusal, require_scope
from mergeyard.api.request_body import MAX_WEBHOOK_BODY_BYTES, BodyReader
from mergeyard.api.responses import JSON, METRICS_MEDIA_TYPE
from mergeyard.domain.access import Scope, Token
from mergeyard.domain.ids import RunId
from mergeyard.domain.timestamps import SECOND, Instant, later
from mergeyard.ports.external import Clock
from mergeyard.ports.git import GitError
from mergeyard.ports.store import StoreUnavailable
from mergeyard.service.audit_log import RefusalKind, RefusalLog
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.forge_events import ForgeEventDispatcher
from mergeyard.service.service import Service

SECURITY_HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
DOCS_FILES = {
    "/docs": ("docs.html", "text/html; charset=utf-8"),
    "/docs/docs.css": ("docs.css", "text/css; charset=utf-8"),
    "/docs/docs.js": ("docs.js", "text/javascript; charset=utf-8"),
    "/docs/render.js": ("render.js", "text/javascript; charset=utf-8"),
    "/docs/icon.svg": ("icon.svg", "image/svg+xml"),
}
READINESS_LIFETIME_MS = SECOND
WEBHOOK_BODY_TIMEOUT_S = 10.0
MAX_WEBHOOK_BODIES = 100
"""Bodies that arrive at the same time. Only a complete body can be authenticated, by its signature."""

log = structlog.get_logger()


def docs_routes(openapi_document: bytes) -> Sequence[Route]:
    documents = {path: (_read(name), media_type) for path, (name, media_type) in DOCS_FILES.items()}
    documents["/openapi.json"] = (openapi_document, JSON)
    return [_static_route(path, *document) for path, document in documents.items()]


def _read(name: str) -> bytes:
    return files("mergeyard.api").joinpath("static", name).read_bytes()


def _static_route(path: str, content: bytes, media_type: str) -> Route:
    async def respond(_: Request) -> Response:
        return Response(content, headers=SECURITY_HEADERS, media_type=media_type)

    return Route(path, respond)


class Probes:
    """`/healthz`: the process responds. `/readyz`: it can do its work. The second checks the store, so its answer is
    kept for a second: any client can ask."""

    def __init__(self, check_ready: Callable[[], Awaitable[None]], clock: Clock) -> None:
        """`check_ready` raises while the process cannot do its work."""
        self._check_ready = check_ready
        self._clock = clock
        self._lock = asyncio.Lock()
        self._checked_until = Instant(0)
        self._refusal: RequestRefused | None = None

    def routes(self) -> Sequence[Route]:
        return (Route("/healthz", self.healthz), Route("/readyz", self.readyz))

    async def healthz(self, _: Request) -> Response:
        return Response(b'{"status":"ok"}', media_type=JSON)

    async def readyz(self, _: Request) -> Response:
        async with self._lock:  # Requests that arrive during a check wait for its result.
            if self._clock.now() >= self._checked_until:
                self._refusal = await self._find_refusal()
                self._checked_until = later(self._clock.now(), READINESS_LIFETIME_MS)
        if self._refusal is not None:
            raise self._refusal
        return Response(b'{"status":"ready"}', media_type=JSON)

    async def _find_refusal(self) -> RequestRefused | None:
        """With the text of the cause, unlike other errors: the operator who probes the process needs it."""
        try:
            await self._check_ready()
        except StoreUnavailable as error:
            return _not_ready(Code.STORAGE_UNAVAILABLE, error)
        except GitError as error:
            return _not_ready(Code.PROVIDER_UNAVAILABLE, error)
        except RequestRefused as refused:
            return refused
        return None


def _not_ready(code: Code, error: Exception) -> RequestRefused:
    log.warning("not_ready", error=str(error))
    return RequestRefused(code, str(error))


def metrics_route(render: Callable[[], bytes], authenticator: Authenticator | None) -> Route:
    """Without an authenticator, anyone who reaches the server can read the metrics."""

    async def respond(request: Request) -> Response:
        if authenticator is not None:
            await _authenticate_reader(authenticator, request)
        return Response(render(), media_type=METRICS_MEDIA_TYPE)

    return Route("/metrics", respond)


async def _authenticate_reader(authenticator: Authenticator, request: Request) -> Token:
    token = await authenticator.authenticate(request)
    with authenticator.log_missing_scope(token, request):
        require_scope(token, Scope.READ)
    return token


class CheckOutput:
    """A program with an API token gets the text. A browser, which sends no API token, is redirected to the page of the
    output."""

    def __init__(self, service: Service, authenticator: Authenticator) -> None:
        self._service = service
        self._authenticator = authenticator

    def routes(self) -> Sequence[Route]:
        return (Route("/runs/{run}/checks/{check:path}", self.respond),)

    async def respond(self, request: Request) -> Response:
        run, check = RunId(request.path_params["run"]), request.path_params["check"]
        if TOKEN_HEADER not in request.headers and "text/html" in request.headers.get("accept", "").lower():
            return RedirectResponse(f"/runs/{quote(run, safe='')}/output/{quote(check, safe='')}", 303)
        token = await _authenticate_reader(self._authenticator, request)
        found = await self._service.runs.find_by_id(run, token)
        output = None if found is None else await self._service.runner.output(run, check)
        if output is None:
            detail = "There is no output for this check: the details of the test run list its checks."
            raise RequestRefused(Code.TEST_RUN_NOT_FOUND, detail)
        return Response(output, headers=SECURITY_HEADERS, media_type="text/plain; charset=utf-8")


class ForgeWebhooks:
    def __init__(
        self, dispatcher: ForgeEventDispatcher, refusals: RefusalLog, body_reader: BodyReader | None = None
    ) -> None:
        self._dispatcher = dispatcher
        self._refusals = refusals
        self._body_reader = body_reader or BodyReader(
            timeout_s=WEBHOOK_BODY_TIMEOUT_S, max_bodies=MAX_WEBHOOK_BODIES, max_bytes=MAX_WEBHOOK_BODY_BYTES
        )

    def routes(self) -> Sequence[Route]:
        return (Route("/hooks/{provider}/{host}", self.receive, methods=["POST"]),)

    async def receive(self, request: Request) -> Response:
        provider, host = request.path_params["provider"], request.path_params["host"]
        parse, headers = self._dispatcher.build_parser(provider, host), _unambiguous_headers(request)
        try:
            notices = await self._body_reader.read(request, lambda body: parse(headers, body))
        except RequestRefused as refused:
            if refused.code is Code.INVALID_TOKEN:
                kind, cause = RefusalKind.WEBHOOK_SIGNATURE_INVALID, str(refused.__cause__)
                record_refusal(self._refusals, kind, request, provider=provider, host=host, cause=cause)
            raise
        self._dispatcher.dispatch(notices)
        return Response(b'{"accepted":true}', 202, media_type=JSON)


def _unambiguous_headers(request: Request) -> Mapping[str, str]:
    """Without repeated headers: the signature must not be ambiguous."""
    return {name: value for name, value in request.headers.items() if len(request.headers.getlist(name)) == 1}
