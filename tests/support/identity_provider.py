"""An OpenID provider that remembers: it signs people in, gives out codes once, and signs with keys that it changes.

with IdentityProvider(clock) as provider:
    provider.visitor = {"sub": "7", "preferred_username": "ada", "groups": ["devs"]}
    provider.change_keys("RS256")
    provider.token_says = {"aud": "somebody else"}
    provider.faults.plan(Answers(503), "/token")
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

from mergeyard.domain.instants import MINUTE, SECOND, Instant
from mergeyard.ports.clock import Clock
from tests.support.forges.faults import Faults
from tests.support.forges.serving import Serving

CLIENT = "yard"
SECRET = "not: so/secret"
BACK = "http://yard.example/sign-in/back"
CODE_LASTS = MINUTE
TOKEN_LASTS = 5 * MINUTE

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
    """What was asked for when a code was given out, and by whom."""

    asked: dict[str, str]
    claims: Claims
    until: Instant


class IdentityProvider:
    def __init__(self, clock: Clock) -> None:
        self.visitor: Claims = {"sub": "7", "preferred_username": "ada", "groups": ["devs"]}
        """Who sits before the browser, with everything that is known of them."""
        self.back = BACK
        """Where it was told that people come from."""
        self.asks_first = False
        """Shows the visitor a page before it lets them go on."""
        self.refuses_with: str | None = None
        self.keeps_for_userinfo = set[str]()
        """Claims that it does not put into tokens."""
        self.token_says: Claims = {}
        """Other claims than the true ones; None leaves one out."""
        self.says_of_itself: Claims = {}
        self.writes: Callable[[Claims], str] = self.sign
        self.keys = list[Key]()
        self._clock = clock
        self._numbers = count(1)
        self._codes = dict[str, Grant]()
        self._access = dict[str, Grant]()
        self.change_keys("ES256")
        self.faults = Faults(self._application())
        self._serving = Serving(self.faults)
        self.issuer = self._serving.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._serving.stop()

    def change_keys(self, algorithm: str) -> None:
        """The old ones are gone."""
        self.keys = [Key(f"key-{next(self._numbers)}", algorithm, new_private_key(algorithm))]

    def sign(self, claims: Claims) -> str:
        return self.keys[0].sign(claims)

    # Its pages

    def _application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._describe),
                Route("/keys", self._show_keys),
                Route("/authorize", self._authorize),
                Route("/token", self._redeem, methods=["POST"]),
                Route("/userinfo", self._tell_more),
            ]
        )

    async def _describe(self, _: Request) -> Response:
        places = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
        }
        return JSONResponse(places | self.says_of_itself)

    async def _show_keys(self, _: Request) -> Response:
        return JSONResponse({"keys": [key.jwk() for key in self.keys]})

    async def _authorize(self, request: Request) -> Response:
        """The visitor is signed in here already."""
        asked = dict(request.query_params)
        if self.asks_first and "agreed" not in asked:
            on = escape(f"?{urlencode(asked)}&agreed=1")
            return HTMLResponse(f'<link rel="icon" href="data:,"><a href="{on}">Let me in</a>')
        wanted = {
            "response_type": "code",
            "client_id": CLIENT,
            "redirect_uri": self.back,
            "code_challenge_method": "S256",
        }
        if {name: asked.get(name) for name in wanted} != wanted or "openid" not in asked["scope"].split():
            return JSONResponse({"error": "invalid_request", "asked": asked}, 400)
        answer = {"state": asked["state"]}
        if self.refuses_with is not None:
            answer["error"] = self.refuses_with
        else:
            answer["code"] = code = f"code-{next(self._numbers)}"
            self._codes[code] = Grant(asked, dict(self.visitor), Instant(self._clock.now() + CODE_LASTS))
        return RedirectResponse(f"{self.back}?{urlencode(answer)}", 302)

    async def _redeem(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        if self._who_asks(request, form) != (CLIENT, SECRET):
            return JSONResponse({"error": "invalid_client"}, 401)
        grant = self._codes.pop(form["code"], None)
        if grant is None or not self._good(grant, form):
            return JSONResponse({"error": "invalid_grant"}, 400)
        access = f"access-{next(self._numbers)}"
        self._access[access] = grant
        told = {"access_token": access, "token_type": "Bearer", "id_token": self.writes(self._claims(grant))}
        return JSONResponse(told)

    async def _tell_more(self, request: Request) -> Response:
        grant = self._access.get(request.headers["authorization"].removeprefix("Bearer "))
        return JSONResponse({"error": "invalid_token"}, 401) if grant is None else JSONResponse(grant.claims)

    # Its rules

    def _who_asks(self, request: Request, form: dict[str, str]) -> tuple[str, str]:
        if self.says_of_itself.get("token_endpoint_auth_methods_supported") == ["client_secret_post"]:
            return form.get("client_id", ""), form.get("client_secret", "")
        scheme, _, pair = request.headers.get("authorization", "").partition(" ")
        name, _, secret = b64decode(pair).decode().partition(":")
        return (unquote_plus(name), unquote_plus(secret)) if scheme == "Basic" else ("", "")

    def _good(self, grant: Grant, form: dict[str, str]) -> bool:
        digest = sha256(form.get("code_verifier", "").encode()).digest()
        challenge = urlsafe_b64encode(digest).rstrip(b"=").decode()
        timely, proven = self._clock.now() < grant.until, challenge == grant.asked["code_challenge"]
        return timely and proven and form.get("redirect_uri") == self.back

    def _claims(self, grant: Grant) -> Claims:
        now = self._clock.now() // SECOND
        known = {name: value for name, value in grant.claims.items() if name not in self.keeps_for_userinfo}
        own = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + TOKEN_LASTS // SECOND}
        claims = {**known, **own, "nonce": grant.asked["nonce"], **self.token_says}
        return {name: value for name, value in claims.items() if value is not None}


def new_private_key(algorithm: str) -> Any:
    if algorithm.startswith(("RS", "PS")):
        return rsa_key()
    return ed25519.Ed25519PrivateKey.generate() if algorithm == "EdDSA" else ec.generate_private_key(ec.SECP256R1())


@cache
def rsa_key() -> rsa.RSAPrivateKey:
    """Making one takes long; its id changes all the same."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)
