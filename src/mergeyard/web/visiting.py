"""Who is visiting: the session that a browser carries, and the proof that a form came from our own page."""

import hmac
from hashlib import sha256

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from mergeyard.domain.tokens import Scope, Token
from mergeyard.service.sessions import LASTING, Sessions

COOKIE = "mergeyard_session"
COOKIE_OVER_TLS = f"__Host-{COOKIE}"
"""With this prefix a browser takes a cookie only from this host itself, over TLS."""
FIELD = "csrf"


class SignInNeeded(Exception):
    """Nobody is signed in, or no longer."""


class Forbidden(Exception):
    """The visitor may not do this."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.scope = scope


class Visitor(Struct, frozen=True):
    token: Token
    csrf: str

    def may(self, scope: str) -> bool:
        return self.token.may(Scope(scope))

    def must(self, scope: Scope) -> None:
        if not self.token.may(scope):
            raise Forbidden(scope)


def session_cookie(*, over_tls: bool) -> str:
    return COOKIE_OVER_TLS if over_tls else COOKIE


async def visitor(request: Request, sessions: Sessions, *, over_tls: bool) -> Visitor:
    secret = request.cookies.get(session_cookie(over_tls=over_tls), "").encode()
    token = await sessions.holder(secret)
    if token is None:
        raise SignInNeeded
    return Visitor(token, csrf_of(secret))


def client_address(request: Request) -> str:
    """As the server knows it behind its trusted proxies."""
    return "" if request.client is None else request.client.host


def csrf_of(secret: bytes) -> str:
    """Known only to pages of this session: it follows from the secret, which does not follow from it."""
    return hmac.new(secret, b"csrf", sha256).hexdigest()


def welcome(response: Response, secret: str, *, over_tls: bool) -> None:
    response.set_cookie(
        session_cookie(over_tls=over_tls),
        secret,
        max_age=LASTING // 1000,
        path="/",
        httponly=True,
        samesite="lax",
        secure=over_tls,
    )


def farewell(response: Response, *, over_tls: bool) -> None:
    response.delete_cookie(session_cookie(over_tls=over_tls), path="/", secure=over_tls)
