"""The current user of a page: the session cookie, the token it belongs to, and the CSRF token of its forms."""

import asyncio
import hmac
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from urllib.parse import parse_qsl

from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mergeyard.domain.access import Scope, Token
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.sessions import SESSION_LIFETIME_MS, Sessions

SESSION_COOKIE = "mergeyard_session"
SESSION_COOKIE_OVER_TLS = f"__Host-{SESSION_COOKIE}"
"""With the prefix `__Host-`, browsers accept the cookie only from this exact host, over TLS."""
CSRF_FIELD = "csrf"
SSO_SUFFIX = re.compile(r" \([0-9a-f]{8}\)$")


class SignInNeeded(Exception):
    """The request carries no valid session."""


class Forbidden(RequestRefused):
    def __init__(self, scope: Scope) -> None:
        super().__init__(
            Code.INSUFFICIENT_SCOPE,
            f"This needs the scope “{scope}”. Sign in with another token, or ask an administrator.",
        )


class CurrentUser(Struct, frozen=True):
    token: Token
    csrf: str

    @property
    def author_name(self) -> str:
        """The name under which a Git host probably knows the user: `ada`, also for `ada (3f2a9c1b)`, as single sign-on
        names users."""
        return SSO_SUFFIX.sub("", self.token.name)

    def has_scope(self, scope: str) -> bool:
        return self.token.has_scope(Scope(scope))

    def require(self, scope: Scope) -> None:
        if not self.token.has_scope(scope):
            raise Forbidden(scope)


def session_cookie_name(*, over_tls: bool) -> str:
    return SESSION_COOKIE_OVER_TLS if over_tls else SESSION_COOKIE


async def authenticate(request: Request, sessions: Sessions, *, over_tls: bool) -> CurrentUser:
    secret = request.cookies.get(session_cookie_name(over_tls=over_tls), "").encode()
    token = await sessions.find_user(secret)
    if token is None:
        raise SignInNeeded
    return CurrentUser(token, derive_csrf_token(secret))


def client_address(request: Request) -> str:
    """The client's IP address; the server has already resolved it through the trusted proxies."""
    return "" if request.client is None else request.client.host


def derive_csrf_token(secret: bytes) -> str:
    """Derived from the session's secret by HMAC, so that a page can show it without revealing the secret."""
    return hmac.new(secret, b"csrf", sha256).hexdigest()


def set_session_cookie(response: Response, secret: str, *, over_tls: bool) -> None:
    response.set_cookie(
        session_cookie_name(over_tls=over_tls),
        secret,
        max_age=SESSION_LIFETIME_MS // 1000,
        path="/",
        httponly=True,
        samesite="lax",
        secure=over_tls,
    )


def delete_session_cookie(response: Response, *, over_tls: bool) -> None:
    response.delete_cookie(session_cookie_name(over_tls=over_tls), path="/", secure=over_tls)


MAX_FORM_BYTES = 256 * 1024
MAX_FORM_FIELDS = 200
BODY_TIMEOUT_S = 10.0
RETRY_ADVICE = "Reload the page and try again."


class Form:
    """The fields of a form. Values are stripped of surrounding whitespace."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self._fields = [(name, value.strip()) for name, value in fields]

    def get(self, name: str) -> str:
        return next((value for field, value in self._fields if field == name), "")

    def get_all(self, name: str) -> list[str]:
        return [value for field, value in self._fields if field == name and value]

    def __contains__(self, name: str) -> bool:
        return any(field == name for field, _ in self._fields)

    def items(self) -> Sequence[tuple[str, str]]:
        return self._fields

    def to_dict(self) -> Mapping[str, str]:
        return dict(self._fields)


async def read_form(request: Request) -> Form:
    """For a client without a session, which has no CSRF token: only the request's origin is checked."""
    if not _is_same_origin(request):
        raise RequestRefused(Code.INVALID_REQUEST, f"This form was sent from another site. {RETRY_ADVICE}")
    try:
        fields = parse_qsl((await _read_body(request)).decode(), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
    except ValueError:
        raise RequestRefused(Code.INVALID_REQUEST, f"The form cannot be decoded. {RETRY_ADVICE}") from None
    if any("\0" in value for _, value in fields):
        raise RequestRefused(Code.INVALID_REQUEST, "A field contains a NUL character. Type the value again.")
    return Form(fields)


async def read_user_form(user: CurrentUser, request: Request) -> Form:
    form = await read_form(request)
    if not hmac.compare_digest(form.get(CSRF_FIELD).encode(), user.csrf.encode()):
        raise RequestRefused(Code.INVALID_REQUEST, f"This form belongs to an earlier session. {RETRY_ADVICE}")
    return form


def _is_same_origin(request: Request) -> bool:
    """Over plain http browsers send only `origin`. A request with neither header comes from no browser, and so cannot
    be a cross-site request that a user was tricked into."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site in ("same-origin", "none")
    return origin is None or origin.partition("://")[2] == request.headers.get("host")


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for part in request.stream():
                body += part
                if len(body) > MAX_FORM_BYTES:
                    raise RequestRefused(Code.BODY_TOO_LARGE, "The form is too large. Shorten its fields.")
    except (TimeoutError, ClientDisconnect):
        raise RequestRefused(Code.REQUEST_TIMEOUT, f"The form did not arrive completely. {RETRY_ADVICE}") from None
    return bytes(body)
