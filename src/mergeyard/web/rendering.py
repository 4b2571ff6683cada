"""Renders Jinja2 templates. Autoescaping is on: every value is text unless a template marks it as safe."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sized
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Generic, TypeVar, cast

from jinja2 import DictLoader, Environment, StrictUndefined
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from mergeyard import __version__
from mergeyard.domain import config
from mergeyard.domain.access import Scope, Token
from mergeyard.domain.ids import QueueKey
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.external import Clock
from mergeyard.service.audit_log import RefusalKind
from mergeyard.service.registry import queue_not_found
from mergeyard.service.service import Service
from mergeyard.web import formats, user_sessions
from mergeyard.web.user_sessions import CurrentUser

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class CacheEntry(Struct, Generic[Value], frozen=True):
    value: Value
    at: Instant


class TimedCache(Generic[Key, Value]):
    def __init__(self, clock: Clock, ttl_ms: int) -> None:
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._entries = dict[Key, CacheEntry[Value]]()
        self._compute_lock = asyncio.Lock()
        """One computation at a time, for all keys: page requests must not take the CPU from the queues."""

    async def get_or_compute(self, key: Key, compute: Callable[[], Awaitable[Value]]) -> Value:
        """Checks again after waiting for the lock: another request may have computed the same value meanwhile."""
        if key not in self._drop_expired():
            async with self._compute_lock:
                if key not in self._drop_expired():
                    value = await compute()
                    self._entries[key] = CacheEntry(value, self._clock.now())
        return self._entries[key].value

    def _drop_expired(self) -> dict[Key, CacheEntry[Value]]:
        oldest = self._clock.now() - self._ttl_ms
        self._entries = {key: entry for key, entry in self._entries.items() if entry.at > oldest}
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


TEMPLATE_FILTERS: dict[str, object] = {
    "duration": formats.format_duration,
    "iso_time": formats.format_iso_time,
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
    "actions_url": formats.actions_url,
    "check_output_url": formats.check_output_url,
    "format_priority": config.format_priority,
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


UNPROCESSABLE = 422


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

    def resolve_queue(self, user: CurrentUser, name: str) -> QueueKey:
        """The key of the named queue. A queue outside of the token's repositories is reported as not found."""
        named = formats.parse_queue_name(name)
        key = QueueKey(self.service.repositories.canonical_repo(named.repo, user.token), named.branch)
        if not user.token.can_access(key.repo):
            raise queue_not_found(key)
        return key

    def render_page(
        self, request: Request, template: str, user: CurrentUser | None = None, **context: object
    ) -> HTMLResponse:
        return self.render(request, template, 200, user=user, **context)

    def render_form(
        self, request: Request, template: str, user: CurrentUser, errors: Sized, /, **context: object
    ) -> HTMLResponse:
        """A form, with status 422 if it is shown again because of errors."""
        return self.render(request, template, UNPROCESSABLE if errors else 200, user=user, **context)

    def render(self, request: Request, template: str, status: int, **context: object) -> HTMLResponse:
        url, now = formats.current_url(request.scope), self.service.clock.now()
        html = render_template(template, path=request.url.path, current_url=url, now=now, **context)
        return HTMLResponse(html, status)

    def report_success(self, request: Request, message: str, next_url: str) -> Response:
        """After an action: htmx shows the message on the open page; a plain form post is redirected."""
        if "hx-request" in request.headers:
            return self.render_page(request, "message.html", message=message)
        return RedirectResponse(next_url, 303)
