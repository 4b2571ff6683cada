"""Sends people to an OpenID provider, and takes them in when they come back: authorization code flow with PKCE."""

import hmac
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus, urlencode

from msgspec import Struct

from mergeyard.adapters.oidc.asking import CONFUSING, Answer, ask, post
from mergeyard.adapters.oidc.claims import Claims, complete, person_in
from mergeyard.adapters.oidc.knowing import Knowledge, Places
from mergeyard.adapters.oidc.luggage import Lock, Luggage, packed_for
from mergeyard.adapters.oidc.registration import Registration
from mergeyard.adapters.oidc.verifying import Unbelievable, UnknownKey, believed
from mergeyard.ports.clock import Clock
from mergeyard.ports.identity import Arrival, Departure, IdentityTrouble, NotVouchedFor

TOO_LATE = "This sign-in took too long, or was begun in another window. Begin again."
DENIED = "The identity provider did not let you in. Begin again, or ask its administrators for access."
DOUBTED = (
    "What the identity provider sent is not to be believed. Begin again, or tell your administrator: the log says why."
)
POST = "client_secret_post"
BASIC = "client_secret_basic"


class Tokens(Struct, frozen=True):
    id_token: str
    access_token: str


class TokensDenied(Struct, frozen=True):
    error: str


class OpenIdProvider:
    def __init__(self, registration: Registration, clock: Clock) -> None:
        self._registration = registration
        self._clock = clock
        self._known = Knowledge(registration.issuer, clock)
        self._lock = Lock(registration.client_secret)

    async def departure(self, there: str) -> Departure:
        endpoint = (await self._known.places()).authorization_endpoint
        luggage = packed_for(there, self._clock.now())
        question = {
            "response_type": "code",
            "client_id": self._registration.client_id,
            "redirect_uri": self._registration.back,
            "scope": " ".join(self._registration.scopes),
            "state": luggage.state,
            "nonce": luggage.nonce,
            "code_challenge": luggage.challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in endpoint else "?"
        return Departure(endpoint + joint + urlencode(question), self._lock.closed(luggage))

    async def arrival(self, answer: Mapping[str, str], luggage: str) -> Arrival:
        carried = self._lock.opened(luggage, self._clock.now())
        if carried is None or not hmac.compare_digest(answer.get("state", "").encode(), carried.state.encode()):
            raise NotVouchedFor(TOO_LATE)
        places = await self._known.places()
        self._check_sender(answer, places)
        code = _code_in(answer)
        tokens = await self._redeem(code, carried, places)
        claims = await self._verified(tokens.id_token, carried.nonce)
        sources = [claims]
        if not complete(claims, self._registration) and places.userinfo_endpoint is not None:
            sources.append(await self._more_about(claims, tokens, places.userinfo_endpoint))
        return Arrival(person_in(sources, self._registration), carried.there)

    def _check_sender(self, answer: Mapping[str, str], places: Places) -> None:
        """Another provider may not pass its answers off as this one's."""
        silent = None if places.authorization_response_iss_parameter_supported else self._registration.issuer
        if answer.get("iss", silent) != self._registration.issuer:
            raise IdentityTrouble(DOUBTED, f"the answer names another issuer, {answer.get('iss', '')[:200]!r}")

    async def _redeem(self, code: str, carried: Luggage, places: Places) -> Tokens:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._registration.back,
            "code_verifier": carried.verifier,
        }
        proof, headers = self._proof(places)
        answer = await post(places.token_endpoint, form | proof, headers)
        if answer.status == 200:
            return answer.read(Tokens)
        if _grant_refused(answer):
            raise NotVouchedFor(TOO_LATE)
        raise answer.trouble()

    def _proof(self, places: Places) -> tuple[dict[str, str], dict[str, str]]:
        """That it is us who ask: as part of the form, or as a header."""
        client, secret = self._registration.client_id, self._registration.client_secret
        methods = places.token_endpoint_auth_methods_supported
        if POST in methods and BASIC not in methods:
            return {"client_id": client, "client_secret": secret}, {}
        pair = f"{quote_plus(client)}:{quote_plus(secret)}".encode()
        return {}, {"authorization": f"Basic {b64encode(pair).decode()}"}

    async def _verified(self, token: str, nonce: str) -> Claims:
        now = self._clock.now()
        try:
            try:
                return believed(token, await self._known.keys(), self._registration, nonce, now)
            except UnknownKey:
                return believed(token, await self._known.keys_anew(), self._registration, nonce, now)
        except Unbelievable as error:
            raise IdentityTrouble(DOUBTED, f"the ID token is refused: {error}") from error

    async def _more_about(self, claims: Claims, tokens: Tokens, endpoint: str) -> Claims:
        """What some tell only on request; about the same person, and nobody else."""
        headers = {"authorization": f"Bearer {tokens.access_token}"}
        more = await ask(endpoint, dict[str, Any], headers)
        if more.get("sub") != claims["sub"]:
            raise IdentityTrouble(DOUBTED, f"{endpoint} speaks of somebody else")
        return more


def _code_in(answer: Mapping[str, str]) -> str:
    if "error" in answer:
        error = answer["error"][:100]
        if error == "access_denied":
            raise NotVouchedFor(DENIED)
        raise IdentityTrouble(
            CONFUSING, f"it sent people back with {error!r}: {answer.get('error_description', '')[:300]}"
        )
    if "code" not in answer:
        raise IdentityTrouble(CONFUSING, "it sent people back without a code")
    return answer["code"]


def _grant_refused(answer: Answer) -> bool:
    """The code was used before, or is too old."""
    return answer.status == 400 and answer.read(TokensDenied).error == "invalid_grant"
