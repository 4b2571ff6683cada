"""ID tokens and their claims: accepted or refused, whatever a provider or an attacker sends."""

from functools import cache
from typing import Any

import jwt
from hypothesis import strategies as st
from jwt.api_jws import PyJWS

from mergeyard.adapters.oidc.discovery import ClientRegistration, JwkSet, ProviderMetadata, ProviderResponse
from mergeyard.adapters.oidc.provider import (
    InvalidIdToken,
    LoginState,
    LoginStateCipher,
    has_required_claims,
    read_person,
    verify_id_token,
)
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.ports.external import IdentityProviderUnavailable, Person, SsoLoginRefused
from tests.fuzz.mutations import PLACEHOLDERS, anything, encoded, mutated, mutated_json, words
from tests.fuzz.properties import holds_for, outcome
from tests.support.clock import START_TIME
from tests.support.identity_provider import CLIENT_ID, Key, new_private_key

ISSUER = "https://login.example.com"
REGISTRATION = ClientRegistration(
    issuer=ISSUER, client_id=CLIENT_ID, client_secret="s", redirect_uri="", name_claim="email", groups_claim="a.b"
)
NOW = START_TIME // SECOND
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "sub": "7",
    "aud": CLIENT_ID,
    "exp": NOW + 60,
    "iat": NOW,
    "nbf": NOW,
    "nonce": "n",
    "azp": CLIENT_ID,
    "email": "ada@example.org",
    "email_verified": True,
    "a": {"b": ["devs", "ops"]},
}
METADATA: dict[str, Any] = {
    "issuer": ISSUER,
    "authorization_endpoint": ISSUER,
    "token_endpoint": ISSUER,
    "jwks_uri": ISSUER,
    "userinfo_endpoint": None,
    "token_endpoint_auth_methods_supported": ["client_secret_post"],
}


@cache
def key(algorithm: str) -> Key:
    return Key("key-1", algorithm, new_private_key(algorithm))


algorithms = st.sampled_from(["ES256", "EdDSA", "RS256"])
claims = mutated(st.just(CLAIMS)).filter(lambda given: isinstance(given, dict))


def verified(token: str, *keys: Any) -> Any:
    """The claims; None if the token is refused."""
    claims = outcome(lambda: verify_id_token(token, keys, REGISTRATION, "n", START_TIME), InvalidIdToken)
    return None if isinstance(claims, InvalidIdToken) else claims


@holds_for(algorithms, claims)
def claims_are_accepted_only_for_this_client_and_time(algorithm: str, given: dict[str, Any]) -> None:
    token = PyJWS().encode(encoded(given), key(algorithm).private, algorithm, {"kid": "key-1"})
    read = verified(token, key(algorithm).jwk())
    if read is not None:
        assert (read["iss"], read["nonce"]) == (ISSUER, "n")
        assert read["aud"] == CLIENT_ID or CLIENT_ID in read["aud"]
        assert read["exp"] * SECOND > START_TIME - 60 * SECOND


@holds_for(algorithms, anything | st.sampled_from(list(PLACEHOLDERS)))
def provider_keys_are_usable_or_refused(algorithm: str, instead: Any) -> None:
    good = key(algorithm).jwk()
    for name in good:
        verified(key(algorithm).sign(CLAIMS), good | {name: instead})


@holds_for(
    st.lists(words | st.sampled_from([".", "eyJhbGciOiJub25lIn0", "e30", "="]), max_size=8).map("".join) | st.text()
)
def invalid_token_is_refused(token: str) -> None:
    assert verified(token, key("ES256").jwk()) is None


@holds_for(algorithms, anything, st.dictionaries(words, anything, max_size=2))
def token_with_any_header_and_a_wrong_key_is_refused(algorithm: str, name: Any, more: dict[str, Any]) -> None:
    forged = Key("key-1", algorithm, other_key(algorithm))
    try:
        token = jwt.encode(CLAIMS, forged.private, algorithm=algorithm, headers=more | {"kid": name})
    except (TypeError, ValueError, jwt.PyJWTError):
        return
    assert verified(token, key(algorithm).jwk()) is None


@cache
def other_key(algorithm: str) -> Any:
    return new_private_key(algorithm)


@holds_for(claims, claims)
def person_has_a_name_or_login_is_refused(one: dict[str, Any], other: dict[str, Any]) -> None:
    person = outcome(lambda: read_person([one, other], REGISTRATION), IdentityProviderUnavailable, SsoLoginRefused)
    if not isinstance(person, Person):
        return
    assert person.name.strip()
    assert all(isinstance(group, str) for group in person.groups)
    assert has_required_claims(one, REGISTRATION) in (True, False)


@holds_for(
    mutated_json(METADATA, {"keys": [{"kty": "EC", "kid": "1"}]}, CLAIMS), st.sampled_from([ProviderMetadata, JwkSet])
)
def provider_response_is_decoded_or_unavailable(body: bytes, kind: type[ProviderMetadata | JwkSet]) -> None:
    read = outcome(lambda: ProviderResponse(ISSUER, 200, body).decode(kind), IdentityProviderUnavailable)
    assert isinstance(read, kind | IdentityProviderUnavailable)


CIPHER = LoginStateCipher("secret")


@holds_for(words, words, words)
def login_state_is_decrypted_unchanged_or_refused(state: str, return_to: str, forged: str) -> None:
    login_state = LoginState(
        state=state, nonce="n", verifier="v", return_to=return_to, expires_at=Instant(START_TIME + 1)
    )
    encrypted = CIPHER.encrypt(login_state)
    assert CIPHER.decrypt(encrypted, START_TIME) == login_state
    assert CIPHER.decrypt(encrypted, Instant(START_TIME + 1)) is None
    assert CIPHER.decrypt(forged, START_TIME) is None
    assert CIPHER.decrypt(encrypted[:-5] + forged, START_TIME) in (None, login_state)
