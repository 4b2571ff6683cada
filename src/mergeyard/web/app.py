"""The routes of the pages, their security headers, static files and error pages."""

import mimetypes
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from urllib.parse import quote, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as ASGIScope

from mergeyard.domain.access import Scope
from mergeyard.domain.states import QueueState
from mergeyard.ports.store import StoreUnavailable
from mergeyard.service.audit_log import RefusalKind
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.service import Service
from mergeyard.service.sessions import SingleSignOn
from mergeyard.web import actions, pull_request_list, pull_request_page, queues, run_page, settings
from mergeyard.web.admin import audit_log, hosts, tokens, webhooks
from mergeyard.web.formats import current_url, page_not_found, parse_number, pull_request_url, to_local_url
from mergeyard.web.health_page import HealthPage
from mergeyard.web.live import LivePages
from mergeyard.web.rendering import (
    SHOW_MESSAGE_ON_PAGE,
    STATIC_FILES,
    STATIC_FINGERPRINTS,
    PageContext,
    PageRequest,
)
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


REPLACE_PAGE = {"hx-retarget": "#content", "hx-reswap": "innerHTML", "hx-reselect": "#error"}
"""htmx headers: what an open page shows does not exist any more."""
DIALOG_MESSAGE = "act-said"
"""The id of the element of a dialog that shows why its action failed."""
REFRESHED_ELEMENT = "live"
"""The id of the element of a page that fetches itself again."""
NO_SUCH_PAGE = {Code.INVALID_REPO, Code.INVALID_BRANCH, Code.HOST_NOT_ALLOWED}
"""In the address of a page, such a name means that there is no such page."""


TITLES = {
    403: "Permission denied",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    429: "Too many requests",
    500: "Something went wrong",
    502: "Unavailable",
    503: "Unavailable",
    504: "Unavailable",
}
INVALID_REQUEST_TITLE = "Invalid request"
"""Of all other statuses."""
DETAILS = {
    Code.METHOD_NOT_ALLOWED: "This address does not accept such a request. Go back, and try again from the page.",
}
"""Where the text of the service is about a request of HTTP, which the user of a page does not write."""
QUEUE_DELETED = ("This queue was deleted", "It no longer tests or merges pull requests. Choose another queue.")


ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]


class WebApp:
    def __init__(self, service: Service, sso: SingleSignOn | None = None, *, over_tls: bool = False) -> None:
        """`sso` adds single sign-on through an identity provider; without it users sign in with API tokens only."""
        self._context = PageContext(service, sso.label if sso else None, over_tls=over_tls)
        self._sso = sso
        self.middleware = (Middleware(SecurityHeadersMiddleware, over_tls=over_tls),)
        self.exception_handlers: dict[type[Exception], ErrorHandler] = {SignInNeeded: redirect_to_sign_in}

    @property
    def routes(self) -> Sequence[Route]:
        sso_routes = () if self._sso is None else SsoSignIn(self._context, self._sso).routes()
        return [*sso_routes, *SignInPage(self._context).routes(), *page_routes(self._context), *static_routes()]

    async def render_error(self, request: Request, refused: RequestRefused, status: int, title: str) -> Response:
        user = None
        with suppress(SignInNeeded, Forbidden, StoreUnavailable):
            user = await self._context.authenticate(request)
        if refused.code is Code.INSUFFICIENT_SCOPE:
            self._context.record_refusal(RefusalKind.SCOPE_MISSING, request, user and user.token)
        in_place = "hx-request" in request.headers
        is_refresh = in_place and request.headers.get("hx-target") == REFRESHED_ELEMENT
        status = 404 if refused.code in NO_SUCH_PAGE else status
        title, detail = TITLES.get(status, INVALID_REQUEST_TITLE), DETAILS.get(refused.code, refused.detail)
        if is_refresh and refused.code is Code.QUEUE_NOT_FOUND:
            title, detail = QUEUE_DELETED
        is_gone = is_refresh and status == 404
        error = {
            "status": status,
            "title": title,
            "detail": detail,
            "request_id": request.state.request_id,
            "may_lack_access": status in (403, 404) and not is_gone,
        }
        template = "message.html" if in_place and not is_gone else "error.html"
        response = self._context.render(request, template, status, user, error=error, message="")
        if is_gone:
            response.headers.update(REPLACE_PAGE)
        elif in_place and request.headers.get("hx-target") != DIALOG_MESSAGE:
            response.headers.update(SHOW_MESSAGE_ON_PAGE)
        return response


async def redirect_to_sign_in(request: Request, _: Exception) -> Response:
    """An htmx request gets `hx-redirect`, so that the browser leaves the page instead of swapping a fragment. After the
    sign-in the user is back on the page that sent the request."""
    if "hx-request" in request.headers:
        page = urlsplit(request.headers.get("hx-current-url", ""))
        next_url = f"{page.path}?{page.query}" if page.query else page.path
        return Response(status_code=204, headers={"hx-redirect": _sign_in_url(to_local_url(next_url))})
    return RedirectResponse("/sign-in" if request.method != "GET" else _sign_in_url(current_url(request.scope)), 303)


def _sign_in_url(next_url: str) -> str:
    return f"/sign-in?next={quote(next_url, safe='')}"


async def redirect_to_administration(_: PageRequest) -> Response:
    return RedirectResponse("/administration/tokens", 303)


async def jump(page: PageRequest) -> Response:
    """Leads to a pull request whose number only one visible queue knows, else to the list of all that match."""
    text = page.query.get("q", "").strip()
    number = parse_number(text.removeprefix("#"))
    if number is not None:
        queries, visible = page.service.submission_queries, await page.service.registry.list_visible(page.user.token)
        keys = [
            queue_actor.key
            for queue_actor in visible
            if queue_actor.queue.submission_of(number) or await queries.view_last_ended(queue_actor, number)
        ]
        if len(keys) == 1:
            return RedirectResponse(pull_request_url(keys[0], number), 303)
    return RedirectResponse(f"/pulls?q={quote(text, safe='')}", 303)


def page_routes(context: PageContext) -> list[Route]:
    """The pages for signed-in users, with the scope that each needs if it is not `read`."""
    route, service = context.build_route, context.service
    health = HealthPage(service)
    return [
        route("GET", "/", queues.QueuesPage(service).show),
        route("GET", "/queues/new", settings.show_create_queue, Scope.ADMIN),
        route("POST", "/queues/new", settings.create_queue, Scope.ADMIN),
        route("GET", "/queues/{queue:path}", queues.show_queue),
        route("GET", "/settings/{queue:path}", settings.show_settings),
        route("POST", "/settings/{queue:path}", settings.save_settings, Scope.ADMIN),
        route("GET", "/pulls/{repo:path}/{number}", pull_request_page.show),
        route("GET", "/runs/{run}", run_page.show),
        route("GET", "/runs/{run}/output/{check:path}", run_page.show_check_output),
        route("GET", "/pulls", pull_request_list.show),
        route("POST", "/pulls", pull_request_list.save_own_name),
        route("GET", "/jump", jump),
        route("GET", "/actions", actions.show_choices, Scope.SUBMIT),
        route("GET", "/actions/open-pull-requests", actions.show_open_pull_requests, Scope.SUBMIT),
        route("GET", "/actions/message", actions.show_message),
        route("GET", "/actions/submit", actions.ask_to_submit, Scope.SUBMIT),
        route("GET", "/actions/priority", actions.ask_for_priority, Scope.SUBMIT),
        route("GET", "/actions/cancel", actions.ask_to_cancel, Scope.SUBMIT),
        route("GET", "/actions/restart", actions.ask_to_restart, Scope.SUBMIT),
        route("GET", "/actions/pause", partial(actions.ask_for_state, "pause"), Scope.ADMIN),
        route("GET", "/actions/drain", partial(actions.ask_for_state, "drain"), Scope.ADMIN),
        route("GET", "/actions/resume", partial(actions.ask_for_state, "resume"), Scope.ADMIN),
        route("GET", "/actions/delete", actions.ask_to_delete, Scope.ADMIN),
        route("POST", "/actions/submit", actions.submit, Scope.SUBMIT),
        route("POST", "/actions/priority", actions.change_priority, Scope.SUBMIT),
        route("POST", "/actions/cancel", actions.cancel, Scope.SUBMIT),
        route("POST", "/actions/restart", actions.restart, Scope.SUBMIT),
        route("POST", "/actions/pause", partial(actions.set_state, QueueState.PAUSED), Scope.ADMIN),
        route("POST", "/actions/drain", partial(actions.set_state, QueueState.DRAINING), Scope.ADMIN),
        route("POST", "/actions/resume", partial(actions.set_state, QueueState.RUNNING), Scope.ADMIN),
        route("POST", "/actions/delete", actions.delete_queue, Scope.ADMIN),
        route("GET", "/health", health.show_all),
        route("GET", "/health/{queue:path}", health.show),
        route("GET", "/whatif/{queue:path}", WhatIfPage(service).show),
        route("GET", "/live/{queue:path}", LivePages().follow),
        route("GET", "/administration", redirect_to_administration, Scope.ADMIN),
        route("GET", "/administration/tokens", tokens.show, Scope.ADMIN),
        route("POST", "/administration/tokens", tokens.create, Scope.ADMIN),
        route("POST", "/administration/tokens/sign-out", tokens.end_sso_sessions, Scope.ADMIN),
        route("GET", "/administration/tokens/{token}/revoke", tokens.confirm_revoke, Scope.ADMIN),
        route("POST", "/administration/tokens/{token}/revoke", tokens.revoke, Scope.ADMIN),
        route("GET", "/administration/webhooks", webhooks.show_all, Scope.ADMIN),
        route("POST", "/administration/webhooks", webhooks.create, Scope.ADMIN),
        route("GET", "/administration/webhooks/new", webhooks.show_new, Scope.ADMIN),
        route("GET", "/administration/webhooks/{webhook}", webhooks.show, Scope.ADMIN),
        route("POST", "/administration/webhooks/{webhook}", webhooks.change, Scope.ADMIN),
        route("POST", "/administration/webhooks/{webhook}/enable", webhooks.enable, Scope.ADMIN),
        route("POST", "/administration/webhooks/{webhook}/disable", webhooks.disable, Scope.ADMIN),
        route("POST", "/administration/webhooks/{webhook}/test", webhooks.send_test, Scope.ADMIN),
        route("POST", "/administration/webhooks/{webhook}/resend", webhooks.resend, Scope.ADMIN),
        route("GET", "/administration/webhooks/{webhook}/delete", webhooks.confirm_delete, Scope.ADMIN),
        route("POST", "/administration/webhooks/{webhook}/delete", webhooks.delete, Scope.ADMIN),
        route("GET", "/administration/webhooks/{webhook}/events/{event}", webhooks.show_delivery, Scope.ADMIN),
        route("GET", "/administration/hosts", hosts.show, Scope.ADMIN),
        route("POST", "/administration/hosts", hosts.check, Scope.ADMIN),
        route("GET", "/administration/audit", audit_log.show, Scope.ADMIN),
        route("GET", "/administration/audit.csv", audit_log.export_csv, Scope.ADMIN),
        route("GET", "/administration/audit.jsonl", audit_log.export_json_lines, Scope.ADMIN),
    ]
