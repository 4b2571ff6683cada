"""The Starlette application for the pages: routes, security headers, static files and error pages."""

import asyncio
import mimetypes
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from secrets import token_hex
from threading import Event, Lock
from typing import Protocol
from urllib.parse import quote

import structlog
from msgspec import Struct
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as ASGIScope

from mergeyard.domain.access import Scope
from mergeyard.ports.forge import HostUnavailable, UnexpectedHostResponse
from mergeyard.ports.git import GitError
from mergeyard.ports.store import StoreUnavailable
from mergeyard.service.audit_log import RefusalKind
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.service import Service
from mergeyard.service.sessions import SingleSignOn
from mergeyard.web.actions import Actions, CreateQueuePage
from mergeyard.web.admin.audit_log import AuditExport, AuditLogPage
from mergeyard.web.admin.hosts import HostsPage
from mergeyard.web.admin.tokens import TokensPage
from mergeyard.web.admin.webhooks import DeliveryPage, WebhookPage, WebhooksPage
from mergeyard.web.formats import current_url, page_not_found
from mergeyard.web.health_page import HealthPage
from mergeyard.web.live import LivePages
from mergeyard.web.pull_request_page import PullRequestPage
from mergeyard.web.queues import QueuePage, QueuesPage, SettingsPage
from mergeyard.web.rendering import STATIC_FILES, STATIC_FINGERPRINTS, TEMPLATE_ENVIRONMENT, PageContext
from mergeyard.web.run_page import CheckOutputPage, RunPage
from mergeyard.web.sign_in import SignInPage, SsoSignIn
from mergeyard.web.user_sessions import Forbidden, SignInNeeded
from mergeyard.web.whatif_page import WhatIfPage

STATUSES = {
    Code.NOT_FOUND: 404,
    Code.QUEUE_NOT_FOUND: 404,
    Code.PR_NOT_FOUND: 404,
    Code.PR_NOT_SUBMITTED: 404,
    Code.TEST_RUN_NOT_FOUND: 404,
    Code.REPOSITORY_NOT_FOUND: 404,
    Code.WEBHOOK_NOT_FOUND: 404,
    Code.EVENT_NOT_FOUND: 404,
    Code.INVALID_REQUEST: 400,
    Code.INVALID_STRING: 400,
    Code.INVALID_REPO: 404,
    Code.INVALID_BRANCH: 404,
    Code.HOST_NOT_ALLOWED: 404,
    Code.INSUFFICIENT_SCOPE: 403,
    Code.BODY_TOO_LARGE: 413,
    Code.REQUEST_TIMEOUT: 408,
    Code.METHOD_NOT_ALLOWED: 405,
    Code.BRANCH_NOT_FOUND: 422,
    Code.INTERNAL_ERROR: 500,
    Code.PROVIDER_ERROR: 502,
    Code.PROVIDER_UNAVAILABLE: 503,
    Code.STORAGE_UNAVAILABLE: 503,
}
"""Every other code is a conflict with the current state (409)."""
CONFLICT = 409
TITLES = {
    400: "Invalid request",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Not possible now",
    500: "Internal error",
    502: "Unexpected response from the Git host",
    503: "Temporarily unavailable",
}


class ErrorDescription(Struct, frozen=True):
    code: Code
    status: int
    title: str
    detail: str
    request_id: str


def describe_error(exception: Exception) -> ErrorDescription:
    refused = _to_refusal(exception)
    status = STATUSES.get(refused.code, CONFLICT)
    title = TITLES.get(status) or HTTPStatus(status).phrase
    return ErrorDescription(refused.code, status, title, refused.detail, token_hex(8))


def _to_refusal(exception: Exception) -> RequestRefused:
    match exception:
        case RequestRefused():
            return exception
        case Forbidden():
            detail = f"Your token lacks the scope “{exception.scope}”. Sign in with a token that has it."
            return RequestRefused(Code.INSUFFICIENT_SCOPE, detail)
        case HTTPException(status_code=405):
            return RequestRefused(
                Code.METHOD_NOT_ALLOWED, "This address does not accept this method. Go back and try again."
            )
        case HTTPException():
            return RequestRefused(Code.NOT_FOUND, "There is no page at this address. It may have been deleted.")
        case StoreUnavailable():
            return RequestRefused(
                Code.STORAGE_UNAVAILABLE, "The database is unavailable; nothing changed. Try again soon."
            )
        case UnexpectedHostResponse():
            detail = f"Unexpected response: {exception}. Retry; if it persists, check the host's status."
            return RequestRefused(Code.PROVIDER_ERROR, detail)
        case HostUnavailable() | GitError():
            return RequestRefused(Code.PROVIDER_UNAVAILABLE, "The Git host does not respond. Try again soon.")
        case _:
            detail = "Try again. If it happens again, give your administrator the request id below."
            return RequestRefused(Code.INTERNAL_ERROR, detail)


_compiled = Event()
_compile_lock = Lock()


class CompileTemplatesMiddleware:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        if not _compiled.is_set():
            await asyncio.to_thread(compile_templates)
        await self._app(scope, receive, send)


def compile_templates() -> None:
    with _compile_lock:
        for name in TEMPLATE_ENVIRONMENT.list_templates():
            TEMPLATE_ENVIRONMENT.get_template(name)
    _compiled.set()


CACHE_INDEFINITELY = "public, max-age=31536000, immutable"
REVALIDATE = "no-cache"
"""For a URL without a fingerprint, or with one of another server version (during a rolling upgrade)."""


def static_routes() -> Sequence[Route]:
    return (Route("/static/{name:path}", serve_file), Route("/favicon.ico", serve_favicon))


async def serve_file(request: Request) -> Response:
    return _respond_with_file(request.path_params["name"], request.url.query)


async def serve_favicon(_: Request) -> Response:
    return _respond_with_file("icon.svg")


def _respond_with_file(name: str, fingerprint: str = "") -> Response:
    if name not in STATIC_FILES:
        raise page_not_found()
    headers = {"cache-control": CACHE_INDEFINITELY if fingerprint == STATIC_FINGERPRINTS[name] else REVALIDATE}
    return Response(STATIC_FILES[name], headers=headers, media_type=mimetypes.guess_type(name)[0] or "text/plain")


SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


HSTS_HEADERS = {"strict-transport-security": "max-age=31536000"}
"""One year: a browser that has used https does not fall back to http."""


class SecurityHeadersMiddleware:
    def __init__(self, app: ASGIApp, *, over_tls: bool = False) -> None:
        self._app = app
        self._headers = SECURITY_HEADERS | (HSTS_HEADERS if over_tls else {})

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        response_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal response_started
            if message["type"] == "http.response.start":
                response_started = True
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except Exception:
            # Starlette re-raises after it has sent the error page; that exception is logged as `page_failed` already.
            if not response_started:
                raise


log = structlog.get_logger()

SHOW_ERROR_IN_PLACE = {"hx-retarget": "#said", "hx-reswap": "innerHTML", "hx-reselect": ".said"}
"""htmx headers: when a page fails to refresh itself, it stays as it is and shows the error in its message area."""

ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]


def create_web_app(service: Service, sso: SingleSignOn | None = None, *, over_tls: bool = False) -> ASGIApp:
    """`sso` adds single sign-on through an identity provider; without it users sign in with API tokens only."""
    context = PageContext(service, sso.label if sso else None, over_tls=over_tls)
    pages = (
        QueuesPage(context),
        CreateQueuePage(context),
        QueuePage(context),
        SettingsPage(context),
        PullRequestPage(context),
        RunPage(context),
        CheckOutputPage(context),
        Actions(context),
        HealthPage(context),
        WhatIfPage(context),
        *build_admin_pages(context),
        SignInPage(context),
        LivePages(context),
    )
    sso_routes = () if sso is None else SsoSignIn(context, sso).routes()
    routes = [*sso_routes, *(route for page in pages for route in page.routes())]
    return SecurityHeadersMiddleware(
        CompileTemplatesMiddleware(
            Starlette(routes=[*routes, *static_routes()], exception_handlers=_error_handlers(context))
        ),
        over_tls=over_tls,
    )


def _error_handlers(context: PageContext) -> dict[type[Exception], ErrorHandler]:
    async def redirect_to_sign_in(request: Request, _: Exception) -> Response:
        """An htmx request gets `hx-redirect`, so that the browser leaves the page instead of swapping a fragment."""
        next_url = quote(current_url(request.scope), safe="")
        sign_in = "/sign-in" if request.method != "GET" else f"/sign-in?next={next_url}"
        if "hx-request" in request.headers:
            return Response(status_code=204, headers={"hx-redirect": sign_in})
        return RedirectResponse(sign_in, 303)

    async def show_error(request: Request, exception: Exception) -> Response:
        error = describe_error(exception)
        if error.code is Code.INTERNAL_ERROR:
            log.error("page_failed", path=request.url.path, request_id=error.request_id, exc_info=exception)
        user = None
        with suppress(SignInNeeded, Forbidden, StoreUnavailable):
            user = await context.authenticate(request)
        if error.code is Code.INSUFFICIENT_SCOPE:
            context.record_refusal(RefusalKind.SCOPE_MISSING, request, user and user.token)
        in_place = "hx-request" in request.headers
        template = "message.html" if in_place else "error.html"
        response = context.render(request, template, error.status, user=user, error=error, message="")
        response.headers.update(SHOW_ERROR_IN_PLACE if in_place else {})
        return response

    return {
        SignInNeeded: redirect_to_sign_in,
        **dict.fromkeys(
            (Forbidden, RequestRefused, HTTPException, StoreUnavailable, HostUnavailable, GitError), show_error
        ),
        Exception: show_error,
    }


class Page(Protocol):
    def routes(self) -> Sequence[Route]: ...


class AdminRedirect:
    def __init__(self, context: PageContext) -> None:
        self._context = context

    def routes(self) -> Sequence[Route]:
        return (Route("/administration", self.redirect),)

    async def redirect(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        return RedirectResponse(f"/administration/{'webhooks' if user.token.repos else 'tokens'}", 303)


def build_admin_pages(context: PageContext) -> Sequence[Page]:
    return (
        AdminRedirect(context),
        TokensPage(context),
        WebhooksPage(context),
        WebhookPage(context),
        DeliveryPage(context),
        HostsPage(context),
        AuditExport(context),
        AuditLogPage(context),
    )
