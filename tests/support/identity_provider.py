"""A stateful fake OpenID provider: signs users in, issues codes for one use, and can change its signing keys.

with IdentityProvider(clock) as provider:
    provider.user_claims = {"sub": "7", "preferred_username": "ada", "groups": ["devs"]}
    provider.change_keys("RS256")
    provider.token_overrides = {"aud": "another client"}
    provider.faults.plan(RespondsWith(503), "/token")
"""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from html import escape
from itertools import count
from typing import Any, Self
from urllib.parse import parse_qsl, unquote_plus, urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from mergeyard.domain.timestamps import MINUTE, SECOND, Instant
from mergeyard.ports.external import Clock
from tests.support.forges.faults import Faults
from tests.support.http_server import ThreadedServer

CLIENT_ID = "yard"
CLIENT_SECRET = "not: so/secret"
REDIRECT_URI = "http://yard.example/sign-in/back"
CODE_LIFETIME_MS = MINUTE
TOKEN_LIFETIME_MS = 5 * MINUTE

Claims = dict[str, Any]


class Key(Struct, frozen=True):
    id: str
    algorithm: str
    private: Any

    def jwk(self) -> Claims:
        writer = {"RS": RSAAlgorithm, "PS": RSAAlgorithm, "ES": ECAlgorithm, "Ed": OKPAlgorithm}[self.algorithm[:2]]
        return {**writer.to_jwk(self.private.public_key(), as_dict=True), "kid": self.id, "use": "sig"}

    def sign(self, claims: Claims) -> str:
        return jwt.encode(claims, self.private, algorithm=self.algorithm, headers={"kid": self.id})


class Grant(Struct, frozen=True):
    """The authorization request for which a code was issued, and the user's claims."""

    request: dict[str, str]
    claims: Claims
    expires_at: Instant


class IdentityProvider:
    def __init__(self, clock: Clock) -> None:
        self.user_claims: Claims = {"sub": "7", "preferred_username": "ada", "groups": ["devs"]}
        """All claims of the user at the browser."""
        self.redirect_uri = REDIRECT_URI
        """The registered redirect URI."""
        self.requires_consent = False
        """Shows the user a consent page first."""
        self.error_code: str | None = None
        self.userinfo_only_claims = set[str]()
        """Claims that are only in the userinfo response, not in ID tokens."""
        self.token_overrides: Claims = {}
        """Claims that replace those of the ID token; None removes one."""
        self.discovery_overrides: Claims = {}
        self.encode_token: Callable[[Claims], str] = self.sign
        self.keys = list[Key]()
        self._clock = clock
        self._numbers = count(1)
        self._codes = dict[str, Grant]()
        self._access = dict[str, Grant]()
        self.change_keys("ES256")
        self.faults = Faults(self._application())
        self._serving = ThreadedServer(self.faults)
        self.issuer = self._serving.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._serving.stop()

    def change_keys(self, algorithm: str) -> None:
        """The old keys are no longer published."""
        self.keys = [Key(f"key-{next(self._numbers)}", algorithm, new_private_key(algorithm))]

    def sign(self, claims: Claims) -> str:
        return self.keys[0].sign(claims)

    # Endpoints

    def _application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._discovery),
                Route("/keys", self._show_keys),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/userinfo", self._userinfo),
            ]
        )

    async def _discovery(self, _: Request) -> Response:
        endpoints = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
        }
        return JSONResponse(endpoints | self.discovery_overrides)

    async def _show_keys(self, _: Request) -> Response:
        return JSONResponse({"keys": [key.jwk() for key in self.keys]})

    async def _authorize(self, request: Request) -> Response:
        """The user is already signed in at the provider."""
        query = dict(request.query_params)
        if self.requires_consent and "agreed" not in query:
            link = escape(f"?{urlencode(query)}&agreed=1")
            return HTMLResponse(f'<link rel="icon" href="data:,"><a href="{link}">Let me in</a>')
        expected = {
            "response_type": "code",
            "client_id": CLIENT_ID,
            "redirect_uri": self.redirect_uri,
            "code_challenge_method": "S256",
        }
        if {name: query.get(name) for name in expected} != expected or "openid" not in query["scope"].split():
            return JSONResponse({"error": "invalid_request", "query": query}, 400)
        response = {"state": query["state"]}
        if self.error_code is not None:
            response["error"] = self.error_code
        else:
            response["code"] = code = f"code-{next(self._numbers)}"
            self._codes[code] = Grant(query, dict(self.user_claims), Instant(self._clock.now() + CODE_LIFETIME_MS))
        return RedirectResponse(f"{self.redirect_uri}?{urlencode(response)}", 302)

    async def _token(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        if self._client_credentials(request, form) != (CLIENT_ID, CLIENT_SECRET):
            return JSONResponse({"error": "invalid_client"}, 401)
        grant = self._codes.pop(form["code"], None)
        if grant is None or not self._is_valid_grant(grant, form):
            return JSONResponse({"error": "invalid_grant"}, 400)
        access = f"access-{next(self._numbers)}"
        self._access[access] = grant
        content = {"access_token": access, "token_type": "Bearer", "id_token": self.encode_token(self._claims(grant))}
        return JSONResponse(content)

    async def _userinfo(self, request: Request) -> Response:
        grant = self._access.get(request.headers["authorization"].removeprefix("Bearer "))
        return JSONResponse({"error": "invalid_token"}, 401) if grant is None else JSONResponse(grant.claims)

    # Checks

    def _client_credentials(self, request: Request, form: dict[str, str]) -> tuple[str, str]:
        if self.discovery_overrides.get("token_endpoint_auth_methods_supported") == ["client_secret_post"]:
            return form.get("client_id", ""), form.get("client_secret", "")
        scheme, _, pair = request.headers.get("authorization", "").partition(" ")
        name, _, secret = b64decode(pair).decode().partition(":")
        return (unquote_plus(name), unquote_plus(secret)) if scheme == "Basic" else ("", "")

    def _is_valid_grant(self, grant: Grant, form: dict[str, str]) -> bool:
        digest = sha256(form.get("code_verifier", "").encode()).digest()
        challenge = urlsafe_b64encode(digest).rstrip(b"=").decode()
        in_time, verified = self._clock.now() < grant.expires_at, challenge == grant.request["code_challenge"]
        return in_time and verified and form.get("redirect_uri") == self.redirect_uri

    def _claims(self, grant: Grant) -> Claims:
        now = self._clock.now() // SECOND
        known = {name: value for name, value in grant.claims.items() if name not in self.userinfo_only_claims}
        own = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + TOKEN_LIFETIME_MS // SECOND}
        claims = {**known, **own, "nonce": grant.request["nonce"], **self.token_overrides}
        return {name: value for name, value in claims.items() if value is not None}


def new_private_key(algorithm: str) -> Any:
    if algorithm.startswith(("RS", "PS")):
        return rsa_key()
    return ed25519.Ed25519PrivateKey.generate() if algorithm == "EdDSA" else ec.generate_private_key(ec.SECP256R1())


@cache
def rsa_key() -> rsa.RSAPrivateKey:
    """Cached, because generating one is slow; its key ID changes nevertheless."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)
