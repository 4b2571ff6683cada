"""Which ID tokens are accepted and which are refused."""

from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from mergeyard.domain.timestamps import SECOND
from mergeyard.ports.external import SsoLoginRefused
from tests.contract.oidc.environment import OidcEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.clock import START_TIME
from tests.support.identity_provider import CLIENT_ID, CLIENT_SECRET, Claims, Key, new_private_key

NOW = START_TIME // SECOND


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
@asynchronous
async def test_a_token_with_a_signature_of_the_provider_is_accepted(env: OidcEnvironment, algorithm: str):
    env.provider.change_keys(algorithm)
    assert (await env.sign_in()).person.name == "ada"


@asynchronous
async def test_the_provider_can_change_its_keys_at_any_time(env: OidcEnvironment):
    await env.sign_in()
    env.provider.change_keys("EdDSA")
    assert (await env.sign_in()).person.name == "ada"


@asynchronous
async def test_a_key_without_an_id_is_accepted_if_it_is_the_only_one(env: OidcEnvironment):
    provider = env.provider
    provider.encode_token = lambda claims: jwt.encode(claims, provider.keys[0].private, algorithm="ES256")
    assert (await env.sign_in()).person.name == "ada"
    provider.keys += [Key("another", "ES256", new_private_key("ES256"))]
    env.adapter = env.replica()
    assert "2 keys fit it" in (await env.sign_in_error()).detail


def unsigned(claims: Claims) -> str:
    return jwt.encode(claims, "", algorithm="none")


def signed_with_what_we_know_too(claims: Claims) -> str:
    return jwt.encode(claims, CLIENT_SECRET * 3, algorithm="HS256", headers={"kid": "key-1"})


def signed_with_another_key(claims: Claims) -> str:
    return Key("key-1", "ES256", new_private_key("ES256")).sign(claims)


def signed_with_another_kind_of_key(claims: Claims) -> str:
    return Key("key-1", "RS256", new_private_key("RS256")).sign(claims)


def without_its_end(claims: Claims) -> str:
    return signed_with_another_key(claims).rpartition(".")[0] + "."


def malformed(_: Claims) -> str:
    return "a.b.c"


@pytest.mark.parametrize(
    "writing",
    [
        unsigned,
        signed_with_what_we_know_too,
        signed_with_another_key,
        signed_with_another_kind_of_key,
        without_its_end,
        malformed,
    ],
)
@asynchronous
async def test_a_token_that_the_provider_did_not_sign_is_refused(env: OidcEnvironment, writing: Any):
    env.provider.encode_token = writing
    error = await env.sign_in_error()
    assert str(error).startswith("The response of the identity provider is not valid.")
    assert "the ID token is refused" in error.detail


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")  # the provider itself gets it
@pytest.mark.parametrize("algorithm", ["RS256", "PS256"])
@asynchronous
async def test_a_token_signed_with_a_short_key_is_refused(env: OidcEnvironment, algorithm: str):
    """An attacker who computes the private key of a provider can sign in as any user."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    env.provider.keys = [Key("short", algorithm, key)]
    detail = (await env.sign_in_error()).detail
    assert "the ID token is refused" in detail
    assert "1024 bits" in detail


@pytest.mark.parametrize(
    ("claims", "detail"),
    [
        ({"iss": "https://evil.example"}, "issuer"),
        ({"iss": None}, "iss"),
        ({"aud": "another-client"}, "udience"),
        ({"aud": None}, "aud"),
        ({"aud": [CLIENT_ID, "another-client"]}, "another application"),
        ({"aud": [CLIENT_ID, "another-client"], "azp": "another-client"}, "another application"),
        ({"azp": "another-client"}, "another application"),
        ({"nonce": "of another sign-in"}, "another sign-in"),
        ({"nonce": None}, "nonce"),
        ({"sub": None}, "sub"),
        ({"exp": None}, "exp"),
        ({"exp": NOW - 31}, "expired"),
        ({"exp": "tomorrow"}, "not a time"),
        ({"iat": NOW + 31}, "future"),
        ({"nbf": NOW + 31}, "future"),
        ({"iat": True}, "not a time"),
    ],
)
@asynchronous
async def test_a_token_of_another_sign_in_is_refused(env: OidcEnvironment, claims: Claims, detail: str):
    env.provider.token_overrides = claims
    assert detail in (await env.sign_in_error()).detail


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": NOW - 29, "iat": NOW + 29},
        {"aud": [CLIENT_ID]},
        {"aud": [CLIENT_ID, "another-client"], "azp": CLIENT_ID},
    ],
)
@asynchronous
async def test_small_clock_skew_and_several_audiences_are_accepted(env: OidcEnvironment, claims: Claims):
    env.provider.token_overrides = claims
    assert (await env.sign_in()).person.name == "ada"


# Claims


@asynchronous
async def test_a_claim_that_is_not_in_the_token_is_read_from_userinfo(env: OidcEnvironment):
    env.provider.userinfo_only_claims = {"preferred_username", "groups"}
    person = (await env.sign_in()).person
    assert (person.name, person.groups) == ("ada", {"devs"})


@asynchronous
async def test_userinfo_of_another_subject_is_refused(env: OidcEnvironment):
    env.provider.userinfo_only_claims = {"groups"}
    env.provider.token_overrides = {"sub": "8"}
    assert "reports another subject" in (await env.sign_in_error()).detail


@asynchronous
async def test_the_claims_for_name_and_groups_can_be_configured(env: OidcEnvironment):
    env.provider.user_claims = {
        "sub": "7", "email": "ada@example.com", "email_verified": "true",
        "realm_access": {"roles": ["devs", 7]}, "https://a.example/team": "ops",
    }  # fmt: skip
    env.adapter = env.replica(name_claim="email", groups_claim="realm_access.roles")
    person = (await env.sign_in()).person
    assert (person.name, person.groups) == ("ada@example.com", {"devs"})
    env.adapter = env.replica(name_claim="email", groups_claim="https://a.example/team")
    assert (await env.sign_in()).person.groups == {"ops"}


@pytest.mark.parametrize("empty", [[], "", {}])
@asynchronous
async def test_a_claim_that_is_empty_in_the_token_is_read_from_userinfo(env: OidcEnvironment, empty: object):
    env.provider.token_overrides = {"groups": empty}
    assert (await env.sign_in()).person.groups == {"devs"}


@asynchronous
async def test_a_missing_nested_claim_is_read_from_userinfo(env: OidcEnvironment):
    env.provider.user_claims |= {"realm_access": {"roles": ["devs"]}}
    env.provider.token_overrides = {"realm_access": {"other": 1}}
    env.adapter = env.replica(groups_claim="realm_access.roles")
    assert (await env.sign_in()).person.groups == {"devs"}


@asynchronous
async def test_userinfo_can_state_that_an_email_address_is_verified(env: OidcEnvironment):
    env.provider.user_claims = {"sub": "7", "email": "ada@example.com", "email_verified": True, "groups": ["devs"]}
    env.provider.userinfo_only_claims = {"email_verified"}
    env.adapter = env.replica(name_claim="email")
    assert (await env.sign_in()).person.name == "ada@example.com"
    env.provider.token_overrides = {"email": "boss@example.com"}
    with pytest.raises(SsoLoginRefused, match="Verify it there"):
        await env.sign_in()


@pytest.mark.parametrize("claims", [{"email_verified": False}, {"email_verified": "false"}, {}], ids=str)
@asynchronous
async def test_an_unverified_email_address_identifies_no_user(env: OidcEnvironment, claims: dict[str, object]):
    env.provider.user_claims = {"sub": "7", "email": "boss@example.com", **claims}
    env.adapter = env.replica(name_claim="email")
    with pytest.raises(SsoLoginRefused, match="Verify it there"):
        await env.sign_in()


@asynchronous
async def test_a_missing_name_claim_is_reported_to_the_operator(env: OidcEnvironment):
    env.provider.user_claims = {"sub": "7", "nickname": "ada"}
    assert "'preferred_username' among" in (await env.sign_in_error()).detail
