"""ID tokens and the claims in them: believed, or not to be believed, whatever a provider or a stranger sends."""

from functools import cache
from typing import Any

import jwt
from hypothesis import strategies as st
from jwt.api_jws import PyJWS

from mergeyard.adapters.oidc.asking import Answer
from mergeyard.adapters.oidc.claims import complete, person_in
from mergeyard.adapters.oidc.knowing import Keys, Places
from mergeyard.adapters.oidc.luggage import Lock, Luggage
from mergeyard.adapters.oidc.registration import Registration
from mergeyard.adapters.oidc.verifying import Unbelievable, believed
from mergeyard.domain.instants import SECOND, Instant
from mergeyard.ports.identity import IdentityTrouble, NotVouchedFor, Person
from tests.fuzz.bending import UNWRITABLE, anything, bent, bent_json, words, written
from tests.fuzz.effort import outcome
from tests.fuzz.laws import holds_for
from tests.support.clock import START
from tests.support.identity_provider import CLIENT, Key, new_private_key

ISSUER = "https://login.example.com"
KNOWN = Registration(
    issuer=ISSUER, client_id=CLIENT, client_secret="s", back="", name_claim="email", groups_claim="a.b"
)
NOW = START // SECOND
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "sub": "7",
    "aud": CLIENT,
    "exp": NOW + 60,
    "iat": NOW,
    "nbf": NOW,
    "nonce": "n",
    "azp": CLIENT,
    "email": "ada@example.org",
    "email_verified": True,
    "a": {"b": ["devs", "ops"]},
}
PLACES: dict[str, Any] = {
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
claims = bent(st.just(CLAIMS)).filter(lambda given: isinstance(given, dict))


def seen(token: str, *keys: Any) -> Any:
    """None: they are not believed."""
    claims = outcome(lambda: believed(token, keys, KNOWN, "n", START), Unbelievable)
    return None if isinstance(claims, Unbelievable) else claims


@holds_for(algorithms, claims)
def claims_are_believed_only_when_they_are_for_us_and_now(algorithm: str, given: dict[str, Any]) -> None:
    token = PyJWS().encode(written(given), key(algorithm).private, algorithm, {"kid": "key-1"})
    read = seen(token, key(algorithm).jwk())
    if read is not None:
        assert (read["iss"], read["nonce"]) == (ISSUER, "n")
        assert read["aud"] == CLIENT or CLIENT in read["aud"]
        assert read["exp"] * SECOND > START - 60 * SECOND


@holds_for(algorithms, anything | st.sampled_from(list(UNWRITABLE)))
def keys_of_a_provider_are_usable_or_not(algorithm: str, instead: Any) -> None:
    good = key(algorithm).jwk()
    for name in good:
        seen(key(algorithm).sign(CLAIMS), good | {name: instead})


@holds_for(
    st.lists(words | st.sampled_from([".", "eyJhbGciOiJub25lIn0", "e30", "="]), max_size=8).map("".join) | st.text()
)
def what_is_no_token_is_not_believed(token: str) -> None:
    assert seen(token, key("ES256").jwk()) is None


@holds_for(algorithms, anything, st.dictionaries(words, anything, max_size=2))
def a_header_of_any_kind_proves_nothing(algorithm: str, name: Any, more: dict[str, Any]) -> None:
    forged = Key("key-1", algorithm, other_key(algorithm))
    try:
        token = jwt.encode(CLAIMS, forged.private, algorithm=algorithm, headers=more | {"kid": name})
    except (TypeError, ValueError, jwt.PyJWTError):
        return
    assert seen(token, key(algorithm).jwk()) is None


@cache
def other_key(algorithm: str) -> Any:
    return new_private_key(algorithm)


@holds_for(claims, claims)
def somebody_is_known_by_name_or_there_is_trouble(one: dict[str, Any], other: dict[str, Any]) -> None:
    person = outcome(lambda: person_in([one, other], KNOWN), IdentityTrouble, NotVouchedFor)
    if not isinstance(person, Person):
        return
    assert person.name.strip()
    assert all(isinstance(group, str) for group in person.groups)
    assert complete(one, KNOWN) in (True, False)


@holds_for(bent_json(PLACES, {"keys": [{"kty": "EC", "kid": "1"}]}, CLAIMS), st.sampled_from([Places, Keys]))
def an_answer_of_a_provider_is_understood_or_trouble(body: bytes, kind: type[Places | Keys]) -> None:
    read = outcome(lambda: Answer(ISSUER, 200, body).read(kind), IdentityTrouble)
    assert isinstance(read, kind | IdentityTrouble)


LOCK = Lock("secret")


@holds_for(words, words, words)
def luggage_comes_back_as_it_was_or_not_at_all(state: str, there: str, forged: str) -> None:
    luggage = Luggage(state=state, nonce="n", verifier="v", there=there, until=Instant(START + 1))
    closed = LOCK.closed(luggage)
    assert LOCK.opened(closed, START) == luggage
    assert LOCK.opened(closed, Instant(START + 1)) is None
    assert LOCK.opened(forged, START) is None
    assert LOCK.opened(closed[:-5] + forged, START) in (None, luggage)
