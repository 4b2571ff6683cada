"""The routes of the pages, their security headers, static files and error pages."""

import mimetypes
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol
from urllib.parse import quote

from msgspec import Struct
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as ASGIScope

from mergeyard.domain.access import Scope
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
from mergeyard.web.rendering import STATIC_FILES, STATIC_FINGERPRINTS, PageContext
from mergeyard.web.run_page import CheckOutputPage, RunPage
from mergeyard.web.sign_in import SignInPage, SsoSignIn
from mergeyard.web.user_sessions import Forbidden, SignInNeeded
from mergeyard.web.whatif_page import WhatIfPage

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
    "cache-control": "no-store",
}


HSTS_HEADERS = {"strict-transport-security": "max-age=31536000"}
"""One year: a browser that has used https does not fall back to http."""


class SecurityHeadersMiddleware:
    """Adds the headers to every response outside of the API that does not set its own."""

    def __init__(self, app: ASGIApp, *, over_tls: bool = False) -> None:
        self._app = app
        self._headers = SECURITY_HEADERS | (HSTS_HEADERS if over_tls else {})

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/v1/"):
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


SHOW_ERROR_IN_PLACE = {"hx-retarget": "#said", "hx-reswap": "innerHTML", "hx-reselect": ".said"}
"""htmx headers: when a page fails to refresh itself, it stays as it is and shows the error in its message area."""
NO_SUCH_PAGE = {Code.INVALID_REPO, Code.INVALID_BRANCH, Code.HOST_NOT_ALLOWED}
"""In the address of a page, such a name means that there is no such page."""


ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]


class ErrorDescription(Struct, frozen=True):
    status: int
    title: str
    detail: str
    request_id: str


class WebApp:
    def __init__(self, service: Service, sso: SingleSignOn | None = None, *, over_tls: bool = False) -> None:
        """`sso` adds single sign-on through an identity provider; without it users sign in with API tokens only."""
        self._context = PageContext(service, sso.label if sso else None, over_tls=over_tls)
        self._sso = sso
        self.middleware = (Middleware(SecurityHeadersMiddleware, over_tls=over_tls),)
        self.exception_handlers: dict[type[Exception], ErrorHandler] = {SignInNeeded: redirect_to_sign_in}

    @property
    def routes(self) -> Sequence[Route]:
        context = self._context
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
        sso_routes = () if self._sso is None else SsoSignIn(context, self._sso).routes()
        return [*sso_routes, *(route for page in pages for route in page.routes()), *static_routes()]

    async def render_error(self, request: Request, refused: RequestRefused, status: int, title: str) -> Response:
        user = None
        with suppress(SignInNeeded, Forbidden, StoreUnavailable):
            user = await self._context.authenticate(request)
        if refused.code is Code.INSUFFICIENT_SCOPE:
            self._context.record_refusal(RefusalKind.SCOPE_MISSING, request, user and user.token)
        in_place = "hx-request" in request.headers
        error = ErrorDescription(
            404 if refused.code in NO_SUCH_PAGE else status, title, refused.detail, request.state.request_id
        )
        template = "message.html" if in_place else "error.html"
        response = self._context.render(request, template, error.status, user=user, error=error, message="")
        response.headers.update(SHOW_ERROR_IN_PLACE if in_place else {})
        return response


async def redirect_to_sign_in(request: Request, _: Exception) -> Response:
    """An htmx request gets `hx-redirect`, so that the browser leaves the page instead of swapping a fragment."""
    next_url = quote(current_url(request.scope), safe="")
    sign_in = "/sign-in" if request.method != "GET" else f"/sign-in?next={next_url}"
    if "hx-request" in request.headers:
        return Response(status_code=204, headers={"hx-redirect": sign_in})
    return RedirectResponse(sign_in, 303)


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
