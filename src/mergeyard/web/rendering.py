"""Renders Jinja2 templates. Autoescaping is on: every value is text unless a template marks it as safe."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sized
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Generic, TypeVar, cast
from urllib.parse import quote, unquote

from jinja2 import DictLoader, Environment, StrictUndefined
from msgspec import Struct
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from mergeyard import __version__
from mergeyard.domain import config
from mergeyard.domain.access import Scope, Token
from mergeyard.domain.ids import PullRequestNumber, QueueKey
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.external import Clock
from mergeyard.service.audit_log import RefusalKind
from mergeyard.service.errors import queue_not_found
from mergeyard.service.service import Service
from mergeyard.web import formats, user_sessions
from mergeyard.web.user_sessions import CurrentUser, Form, read_user_form

AUTHOR_COOKIE = "mergeyard_author"
"""The user's name on the Git host, which is often not the name of the token."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TimedCache(Generic[Key, Value]):
    def __init__(self, clock: Clock, ttl_ms: int) -> None:
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._entries = dict[Key, tuple[Value, Instant]]()
        self._compute_lock = asyncio.Lock()
        """One computation at a time, for all keys: page requests must not take the CPU from the queues."""

    async def get_or_compute(self, key: Key, compute: Callable[[], Awaitable[Value]]) -> Value:
        """Checks again after waiting for the lock: another request may have computed the same value meanwhile."""
        if key not in self._drop_expired():
            async with self._compute_lock:
                if key not in self._drop_expired():
                    value = await compute()
                    self._entries[key] = (value, self._clock.now())
        return self._entries[key][0]

    def _drop_expired(self) -> dict[Key, tuple[Value, Instant]]:
        oldest = self._clock.now() - self._ttl_ms
        self._entries = {key: (value, at) for key, (value, at) in self._entries.items() if at > oldest}
        return self._entries


def _read_files(folder: Traversable, prefix: str = "") -> dict[str, bytes]:
    contents = dict[str, bytes]()
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        contents |= _read_files(entry, f"{name}/") if entry.is_dir() else {name: entry.read_bytes()}
    return contents


TEMPLATE_SOURCES = {
    name: source.decode() for name, source in _read_files(files("mergeyard.web").joinpath("templates")).items()
}
STATIC_FILES = _read_files(files("mergeyard.web").joinpath("static"))
STATIC_FINGERPRINTS = {name: sha256(content).hexdigest()[:12] for name, content in STATIC_FILES.items()}


def render_template(template: str, **context: object) -> str:
    return TEMPLATE_ENVIRONMENT.get_template(template).render(context)


def static_url(name: str) -> str:
    """The URL of a static file. It changes with the content, so browsers can cache the file indefinitely."""
    return f"/static/{name}?{STATIC_FINGERPRINTS[name]}"


def action_url(key: QueueKey, action: str, number: PullRequestNumber | None = None) -> str:
    """The dialog that confirms an action on a queue, or on one of its pull requests."""
    query = f"queue={quote(formats.format_queue_name(key), safe='')}"
    return f"/actions/{action}?{query}" if number is None else f"/actions/{action}?{query}&number={number}"


TEMPLATE_FILTERS: dict[str, object] = {
    "duration": formats.format_duration,
    "reason": formats.format_reason,
    "iso_time": formats.format_iso_time,
    "plain": formats.strip_bidi_controls,
    "short": formats.shorten_id,
    "time_ago": formats.format_time_ago,
    "time_of_day": formats.format_time_of_day,
    "time_until": formats.format_time_until,
    "timestamp": formats.format_timestamp,
}
TEMPLATE_GLOBALS: dict[str, object] = {
    "CHECK_STATES": formats.CHECK_STATE_LABELS,
    "PRIORITIES": config.PRIORITIES,
    "PULL_REQUEST_STATES": formats.PULL_REQUEST_STATE_LABELS,
    "QUEUE_STATES": formats.QUEUE_STATE_LABELS,
    "RUN_STATES": formats.RUN_STATE_LABELS,
    "action_url": action_url,
    "actions_url": formats.actions_url,
    "check_output_url": formats.check_output_url,
    "format_priority": config.format_priority,
    "list_targets": formats.list_targets,
    "pluralize": formats.pluralize,
    "pull_request_url": formats.pull_request_url,
    "queue_name": formats.format_queue_name,
    "queue_url": formats.queue_url,
    "run_url": formats.run_url,
    "safe_external_url": formats.safe_external_url,
    "static_url": static_url,
    "submission_url": formats.submission_url,
    "timeline_url": formats.timeline_url,
    "version": __version__,
}
TEMPLATE_ENVIRONMENT = Environment(
    loader=DictLoader(TEMPLATE_SOURCES),
    auto_reload=False,
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
cast(dict[str, object], TEMPLATE_ENVIRONMENT.globals).update(TEMPLATE_GLOBALS)
cast(dict[str, object], TEMPLATE_ENVIRONMENT.filters).update(TEMPLATE_FILTERS)


SHOW_MESSAGE_ON_PAGE = {"hx-retarget": "#said", "hx-reswap": "innerHTML", "hx-reselect": ".said"}
SHOW_IN_DIALOG = {"hx-retarget": "#sheet", "hx-reswap": "innerHTML", "hx-reselect": "#act"}
"""Headers with which htmx shows a response elsewhere than the form or link says."""


class PageContext:
    def __init__(self, service: Service, sso_label: str | None = None, *, over_tls: bool = False) -> None:
        """`sso_label` names the identity provider, None without single sign-on. `over_tls`: browsers reach the server
        over https, so cookies are marked secure."""
        self.service = service
        self.sso_label = sso_label
        self.over_tls = over_tls

    async def authenticate(self, request: Request, scope: Scope = Scope.READ) -> CurrentUser:
        """Raises SignInNeeded without a valid session, Forbidden if the session's token lacks the scope."""
        user = await user_sessions.authenticate(request, self.service.sessions, over_tls=self.over_tls)
        user.require(scope)
        return user

    def record_refusal(self, kind: RefusalKind, request: Request, token: Token | None = None, **fields: str) -> None:
        address = user_sessions.client_address(request)
        self.service.refusal_log.record(
            kind, address, token, path=request.url.path, request_id=request.state.request_id, **fields
        )

    def render(
        self, request: Request, template: str, status: int = 200, user: CurrentUser | None = None, **values: object
    ) -> HTMLResponse:
        url, now = formats.current_url(request.scope), self.service.clock.now()
        html = render_template(template, path=request.url.path, current_url=url, now=now, user=user, **values)
        return HTMLResponse(html, status)

    def build_route(
        self, method: str, path: str, respond: Callable[["PageRequest"], Awaitable[Response]], scope: Scope = Scope.READ
    ) -> Route:
        """The route of a page for signed-in users. A request with the method POST must have a form with the user's CSRF
        token."""

        async def handle(request: Request) -> Response:
            user = await self.authenticate(request, scope)
            form = await read_user_form(user, request) if method == "POST" else Form([])
            try:
                return await respond(PageRequest(self, request, user, form))
            except ClientDisconnect:
                return Response(status_code=204)  # the client is gone, so the response reaches no one

        return Route(path, handle, methods=[method])


class PageRequest(Struct, frozen=True):
    """A request of a user who is signed in and has the scope of the page."""

    context: PageContext
    request: Request
    user: CurrentUser
    form: Form

    @property
    def service(self) -> Service:
        return self.context.service

    @property
    def own_name(self) -> str:
        """The user's name on the Git host, as the user saved it, else as the token or the identity provider says."""
        return unquote(self.request.cookies.get(AUTHOR_COOKIE, "")) or self.user.author_name

    @property
    def query(self) -> QueryParams:
        return self.request.query_params

    @property
    def is_htmx(self) -> bool:
        """Whether a script of a page sent the request, and shows the response in that page."""
        return "hx-request" in self.request.headers

    def path_parameter(self, name: str) -> str:
        return self.request.path_params[name]

    def resolve_queue(self, name: str | None = None) -> QueueKey:
        """The key of the queue with this name, by default the name in the path. A queue outside of the token's
        repositories is reported as not found."""
        named = formats.parse_queue_name(self.path_parameter("queue") if name is None else name)
        key = QueueKey(self.service.repositories.canonical_repo(named.repo, self.user.token), named.branch)
        if not self.user.token.can_access(key.repo):
            raise queue_not_found(key)
        return key

    async def require_connected(self) -> None:
        """Before a slow computation that other requests wait for: nothing is computed for a disconnected client."""
        if await self.request.is_disconnected():
            raise ClientDisconnect

    def render(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        return self.context.render(self.request, template, status, self.user, **values)

    def render_form(self, template: str, errors: Sized, /, **values: object) -> HTMLResponse:
        """A form, with status 422 if it is shown again because of errors."""
        return self.render(template, 422 if errors else 200, **values)

    def report_success(self, message: str, next_url: str) -> Response:
        """After an action: htmx shows the message on the open page; a plain form post is redirected."""
        if not self.is_htmx:
            return RedirectResponse(next_url, 303)
        response = self.render("message.html", message=message)
        response.headers.update(SHOW_MESSAGE_ON_PAGE)
        return response

    def ask(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        """A dialog. Without scripts it is a page of its own; htmx shows it over the open page."""
        response = self.render(template, status, **values)
        response.headers.update(SHOW_IN_DIALOG)
        return response
