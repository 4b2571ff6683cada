"""OpenID Connect login: authorization code flow with PKCE, verification of the ID token, and its claims."""

import hmac
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, cast
from urllib.parse import quote_plus, urlencode

import jwt
import msgspec
from cryptography.fernet import Fernet, InvalidToken
from jwt.types import Options
from msgspec import Struct

from mergeyard.adapters.oidc import discovery
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant, later
from mergeyard.ports import external

LOGIN_TIMEOUT_MS = 10 * MINUTE
PURPOSE = b"mergeyard sign-in"


class LoginState(Struct, frozen=True, kw_only=True):
    state: str
    """Returned in the redirect: proves that it belongs to this login (CSRF)."""
    nonce: str
    """Returned in the ID token: proves that the token was issued for this login."""
    verifier: str
    """PKCE: sent with the authorization code, so that a stolen code is useless."""
    return_to: str
    expires_at: Instant

    @property
    def challenge(self) -> str:
        """The hash of the verifier, sent with the authorization request."""
        return urlsafe_b64encode(sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()


class LoginStateCipher:
    def __init__(self, secret: str) -> None:
        self._cipher = Fernet(urlsafe_b64encode(hmac.digest(secret.encode(), PURPOSE, "sha256")))

    def encrypt(self, login_state: LoginState) -> str:
        return self._cipher.encrypt(msgspec.json.encode(login_state)).decode()

    def decrypt(self, text: str, now: Instant) -> LoginState | None:
        """None if it was not encrypted with our key, or has expired."""
        try:
            login_state = msgspec.json.decode(self._cipher.decrypt(text), type=LoginState)
        except (InvalidToken, ValueError):
            return None
        return login_state if now < login_state.expires_at else None


KEY_TYPES = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}
"""The accepted algorithms. Symmetric ones are excluded: every party that can verify such a signature can forge it."""
MAX_CLOCK_SKEW_MS = 30 * SECOND
REQUIRED_CLAIMS = ["iss", "sub", "aud", "exp", "iat", "nonce"]
OPTIONS: Options = {
    "require": REQUIRED_CLAIMS,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "enforce_minimum_key_length": True,
}
"""Short keys can be broken. Times are verified here instead, with our own clock."""

Claims = Mapping[str, Any]


class InvalidIdToken(Exception):
    """The token is invalid; the message is for the operator."""


class UnknownSigningKey(InvalidIdToken):
    """The provider may have started to use a key after we last read its keys."""


def verify_id_token(
    token: str, keys: Iterable[discovery.Jwk], registration: discovery.ClientRegistration, nonce: str, now: Instant
) -> Claims:
    key = _find_key(token, keys)
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            audience=registration.client_id,
            issuer=registration.issuer,
            options=OPTIONS,
        )
    except (jwt.PyJWTError, ValueError, TypeError) as error:  # TypeError: a claim has an unexpected type
        raise InvalidIdToken(str(error)) from error
    _verify_time(claims, now)
    _verify_audience(claims, registration.client_id)
    if not hmac.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):
        raise InvalidIdToken("it was made for another sign-in")
    return claims


def _find_key(token: str, keys: Iterable[discovery.Jwk]) -> jwt.PyJWK:
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError) as error:
        raise InvalidIdToken(f"it is not a token: {error}") from error
    algorithm, key_id = str(header.get("alg")), header.get("kid")
    if algorithm not in KEY_TYPES:
        raise InvalidIdToken(f"it is signed by {algorithm[:20]!r}, and only {', '.join(KEY_TYPES)} are accepted")
    matching = [key for key in keys if _is_usable(key, algorithm) and key_id in (None, key.get("kid"))]
    if len(matching) != 1:
        raise UnknownSigningKey(f"{len(matching)} keys fit it, for {algorithm} and the key id {key_id!r}")
    try:
        return jwt.PyJWK(matching[0], algorithm)
    except (jwt.PyJWTError, ValueError) as error:
        raise InvalidIdToken(f"its key is unusable: {error}") from error


def _is_usable(key: discovery.Jwk, algorithm: str) -> bool:
    has_type = key.get("kty") == KEY_TYPES[algorithm]
    return has_type and key.get("use", "sig") == "sig" and key.get("alg", algorithm) == algorithm


def _verify_time(claims: Claims, now: Instant) -> None:
    valid_from = max(_read_time(claims, "iat"), _read_time(claims, "nbf"))
    if now >= _read_time(claims, "exp") + MAX_CLOCK_SKEW_MS:
        raise InvalidIdToken("it has expired")
    if now < valid_from - MAX_CLOCK_SKEW_MS:
        raise InvalidIdToken("it is from the future: compare the clocks")


def _read_time(claims: Claims, name: str) -> float:
    value = claims.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidIdToken(f"its {name} is not a time")
    return value * SECOND


def _verify_audience(claims: Claims, client_id: str) -> None:
    """A token for several audiences must name the client that requested it (`azp`)."""
    is_only_audience = claims["aud"] in (client_id, [client_id])
    if claims.get("azp", client_id if is_only_audience else None) != client_id:
        raise InvalidIdToken("it was made for another application")


NO_NAME = "The identity provider does not report your name. Ask your administrator to look into the log."
EMAIL_NOT_VERIFIED = "The identity provider has not verified your e-mail address. Verify it there, then sign in again."

EMAIL = "email"
TRUE_VALUES = (True, "true")
"""Some providers send booleans as text."""

Sources = Sequence[Claims]
"""Claims about one user, from the ID token and then from the userinfo endpoint; the first source takes precedence."""


def read_person(sources: Sources, registration: discovery.ClientRegistration) -> external.Person:
    name = find_in_sources(sources, registration.name_claim)
    if not isinstance(name, str) or not name.strip():
        present = ", ".join(sorted({claim for claims in sources for claim in claims}))[:300]
        raise external.IdentityProviderUnavailable(
            NO_NAME, f"there is no claim {registration.name_claim!r} among {present}: set name_claim to one of these"
        )
    if registration.name_claim == EMAIL and not is_verified(sources, name):
        raise external.SsoLoginRefused(EMAIL_NOT_VERIFIED)
    subject = sources[0].get("sub")
    if not isinstance(subject, str) or not subject:
        raise external.IdentityProviderUnavailable(
            NO_NAME, "there is no claim 'sub' in the ID token, which every provider must send"
        )
    groups = to_groups(find_in_sources(sources, registration.groups_claim))
    return external.Person(name, groups, f"{registration.issuer} {subject}")


def has_required_claims(claims: Claims, registration: discovery.ClientRegistration) -> bool:
    """Whether the ID token is sufficient, without a request to the userinfo endpoint."""
    name = find_claim(claims, registration.name_claim)
    has_valid_name = registration.name_claim != EMAIL or is_verified([claims], name)
    return bool(name and has_valid_name and find_claim(claims, registration.groups_claim))


def find_in_sources(sources: Sources, path: str) -> object:
    """The first value that is not empty."""
    return next((claim for claims in sources if (claim := find_claim(claims, path))), None)


def is_verified(sources: Sources, address: object) -> bool:
    return any(claims.get(EMAIL) == address and claims.get("email_verified") in TRUE_VALUES for claims in sources)


def find_claim(claims: Claims, path: str) -> object:
    """By its name, or by a path of nested names: `realm_access.roles`."""
    if path in claims:
        return claims[path]
    value: object = claims
    for name in path.split("."):
        value = cast(Claims, value).get(name) if isinstance(value, dict) else None
    return value


def to_groups(claim: object) -> frozenset[str]:
    if isinstance(claim, str):
        return frozenset({claim})
    items = cast(list[object], claim) if isinstance(claim, list) else []
    return frozenset(item for item in items if isinstance(item, str))


EXPIRED = "This sign-in took too long, or was started in another window. Sign in again."
DENIED = "The identity provider denied the sign-in. Sign in again, or ask its administrators for access."
INVALID_RESPONSE = (
    "The response of the identity provider is not valid. Sign in again, or ask your administrator to look into the log."
)
POST_AUTH_METHOD = "client_secret_post"
BASIC_AUTH_METHOD = "client_secret_basic"


class Tokens(Struct, frozen=True):
    id_token: str
    access_token: str


class TokenErrorResponse(Struct, frozen=True):
    error: str


class OpenIdProvider:
    def __init__(self, registration: discovery.ClientRegistration, clock: external.Clock) -> None:
        self._registration = registration
        self._clock = clock
        self._discovery = discovery.Discovery(registration.issuer, clock)
        self._cipher = LoginStateCipher(registration.client_secret)

    async def begin_login(self, return_to: str) -> external.AuthorizationRedirect:
        endpoint = (await self._discovery.get_metadata()).authorization_endpoint
        login_state = LoginState(
            state=token_urlsafe(24),
            nonce=token_urlsafe(24),
            verifier=token_urlsafe(48),
            return_to=return_to,
            expires_at=later(self._clock.now(), LOGIN_TIMEOUT_MS),
        )
        query = {
            "response_type": "code",
            "client_id": self._registration.client_id,
            "redirect_uri": self._registration.redirect_uri,
            "scope": " ".join(self._registration.scopes),
            "state": login_state.state,
            "nonce": login_state.nonce,
            "code_challenge": login_state.challenge,
            "code_challenge_method": "S256",
        }
        separator = "&" if "?" in endpoint else "?"
        return external.AuthorizationRedirect(
            endpoint + separator + urlencode(query), self._cipher.encrypt(login_state)
        )

    async def complete_login(self, response: Mapping[str, str], encrypted_state: str) -> external.SsoLogin:
        login_state = self._cipher.decrypt(encrypted_state, self._clock.now())
        if login_state is None or not hmac.compare_digest(
            response.get("state", "").encode(), login_state.state.encode()
        ):
            raise external.SsoLoginRefused(EXPIRED)
        metadata = await self._discovery.get_metadata()
        self._verify_issuer(response, metadata)
        code = _read_code(response)
        tokens = await self._redeem_code(code, login_state, metadata)
        claims = await self._verify_id_token(tokens.id_token, login_state.nonce)
        sources = [claims]
        if not has_required_claims(claims, self._registration) and metadata.userinfo_endpoint is not None:
            sources.append(await self._read_userinfo(claims, tokens, metadata.userinfo_endpoint))
        return external.SsoLogin(read_person(sources, self._registration), login_state.return_to)

    def _verify_issuer(self, response: Mapping[str, str], metadata: discovery.ProviderMetadata) -> None:
        """Prevents a mix-up attack, in which another provider's response is passed off as this one's."""
        default = None if metadata.authorization_response_iss_parameter_supported else self._registration.issuer
        if response.get("iss", default) != self._registration.issuer:
            raise external.IdentityProviderUnavailable(
                INVALID_RESPONSE, f"the response names another issuer, {response.get('iss', '')[:200]!r}"
            )

    async def _redeem_code(self, code: str, login_state: LoginState, metadata: discovery.ProviderMetadata) -> Tokens:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._registration.redirect_uri,
            "code_verifier": login_state.verifier,
        }
        credentials, headers = self._build_credentials(metadata)
        response = await discovery.post_form(metadata.token_endpoint, form | credentials, headers)
        if response.status == 200:
            return response.decode(Tokens)
        if _is_invalid_grant(response):
            raise external.SsoLoginRefused(EXPIRED)
        raise response.to_error()

    def _build_credentials(self, metadata: discovery.ProviderMetadata) -> tuple[dict[str, str], dict[str, str]]:
        """Our client credentials, as form members or as a header, whichever the provider supports."""
        client, secret = self._registration.client_id, self._registration.client_secret
        methods = metadata.token_endpoint_auth_methods_supported
        if POST_AUTH_METHOD in methods and BASIC_AUTH_METHOD not in methods:
            return {"client_id": client, "client_secret": secret}, {}
        pair = f"{quote_plus(client)}:{quote_plus(secret)}".encode()
        return {}, {"authorization": f"Basic {b64encode(pair).decode()}"}

    async def _verify_id_token(self, token: str, nonce: str) -> Claims:
        now = self._clock.now()
        try:
            try:
                return verify_id_token(token, await self._discovery.get_keys(), self._registration, nonce, now)
            except UnknownSigningKey:
                return verify_id_token(token, await self._discovery.refresh_keys(), self._registration, nonce, now)
        except InvalidIdToken as error:
            raise external.IdentityProviderUnavailable(INVALID_RESPONSE, f"the ID token is refused: {error}") from error

    async def _read_userinfo(self, claims: Claims, tokens: Tokens, endpoint: str) -> Claims:
        """Some providers return the name or the groups only here."""
        headers = {"authorization": f"Bearer {tokens.access_token}"}
        userinfo = await discovery.get_json(endpoint, dict[str, Any], headers)
        if userinfo.get("sub") != claims["sub"]:
            raise external.IdentityProviderUnavailable(
                INVALID_RESPONSE, f"{endpoint} reports another subject than the ID token"
            )
        return userinfo


def _read_code(response: Mapping[str, str]) -> str:
    if "error" in response:
        error = response["error"][:100]
        if error == "access_denied":
            raise external.SsoLoginRefused(DENIED)
        raise external.IdentityProviderUnavailable(
            discovery.UNEXPECTED_RESPONSE,
            f"the redirect contains the error {error!r}: {response.get('error_description', '')[:300]}",
        )
    if "code" not in response:
        raise external.IdentityProviderUnavailable(discovery.UNEXPECTED_RESPONSE, "the redirect contains no code")
    return response["code"]


def _is_invalid_grant(response: discovery.ProviderResponse) -> bool:
    """The code was used before, or has expired."""
    return response.status == 400 and response.decode(TokenErrorResponse).error == "invalid_grant"
