"""Believes an ID token, or does not: who signed it, for whom, for which sign-in, and until when."""

import hmac
from collections.abc import Iterable, Mapping
from typing import Any

import jwt
from jwt.types import Options

from mergeyard.adapters.oidc.knowing import Jwk
from mergeyard.adapters.oidc.registration import Registration
from mergeyard.domain.instants import SECOND, Instant

KEY_TYPES = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}
"""The algorithms that count: a signature that whoever can check it can also make proves nothing."""
LEEWAY = 30 * SECOND
"""For clocks that do not agree."""
CLAIMS = ["iss", "sub", "aud", "exp", "iat", "nonce"]
OPTIONS: Options = {
    "require": CLAIMS,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "enforce_minimum_key_length": True,
}
"""A key that is too short has been broken by others. Times are checked here, with our own clock."""

Claims = Mapping[str, Any]


class Unbelievable(Exception):
    """What is wrong with a token, for the operator."""


class UnknownKey(Unbelievable):
    """It may be signed with a key that the provider has had only for a short while."""


def believed(token: str, keys: Iterable[Jwk], registration: Registration, nonce: str, now: Instant) -> Claims:
    key = _key_of(token, keys)
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            audience=registration.client_id,
            issuer=registration.issuer,
            options=OPTIONS,
        )
    except (jwt.PyJWTError, ValueError, TypeError) as error:  # the last where a claim is of another kind
        raise Unbelievable(str(error)) from error
    _check_time(claims, now)
    _check_receiver(claims, registration.client_id)
    if not hmac.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):
        raise Unbelievable("it was made for another sign-in")
    return claims


def _key_of(token: str, keys: Iterable[Jwk]) -> jwt.PyJWK:
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError) as error:
        raise Unbelievable(f"it is no token: {error}") from error
    algorithm, name = str(header.get("alg")), header.get("kid")
    if algorithm not in KEY_TYPES:
        raise Unbelievable(f"it is signed by {algorithm[:20]!r}, and only {', '.join(KEY_TYPES)} count")
    fitting = [key for key in keys if _fits(key, algorithm) and name in (None, key.get("kid"))]
    if len(fitting) != 1:
        raise UnknownKey(f"{len(fitting)} keys fit it, for {algorithm} and the key id {name!r}")
    try:
        return jwt.PyJWK(fitting[0], algorithm)
    except (jwt.PyJWTError, ValueError) as error:
        raise Unbelievable(f"its key is unusable: {error}") from error


def _fits(key: Jwk, algorithm: str) -> bool:
    right_kind = key.get("kty") == KEY_TYPES[algorithm]
    return right_kind and key.get("use", "sig") == "sig" and key.get("alg", algorithm) == algorithm


def _check_time(claims: Claims, now: Instant) -> None:
    begins = max(_instant(claims, "iat"), _instant(claims, "nbf"))
    if now >= _instant(claims, "exp") + LEEWAY:
        raise Unbelievable("it has expired")
    if now < begins - LEEWAY:
        raise Unbelievable("it is from the future: compare the clocks")


def _instant(claims: Claims, name: str) -> float:
    value = claims.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unbelievable(f"its {name} is no time")
    return value * SECOND


def _check_receiver(claims: Claims, client_id: str) -> None:
    """A token for several must say which of them asked for it."""
    alone = claims["aud"] in (client_id, [client_id])
    if claims.get("azp", client_id if alone else None) != client_id:
        raise Unbelievable("it was made for another application")
