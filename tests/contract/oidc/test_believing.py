"""Which tokens are believed, and which are not, however well they look."""

from typing import Any

import jwt
import pytest

from mergeyard.domain.instants import SECOND
from mergeyard.ports.identity import NotVouchedFor
from tests.contract.oidc.stage import OidcStage
from tests.support.asynchronous import asynchronous
from tests.support.clock import START
from tests.support.identity_provider import CLIENT, SECRET, Claims, Key, new_private_key

NOW = START // SECOND


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
@asynchronous
async def test_a_token_counts_when_only_the_provider_can_have_signed_it(stage: OidcStage, algorithm: str):
    stage.provider.change_keys(algorithm)
    assert (await stage.sign_in()).person.name == "ada"


@asynchronous
async def test_keys_may_change_at_any_time(stage: OidcStage):
    await stage.sign_in()
    stage.provider.change_keys("EdDSA")
    assert (await stage.sign_in()).person.name == "ada"


@asynchronous
async def test_a_key_without_a_name_counts_when_there_is_only_one(stage: OidcStage):
    provider = stage.provider
    provider.writes = lambda claims: jwt.encode(claims, provider.keys[0].private, algorithm="ES256")
    assert (await stage.sign_in()).person.name == "ada"
    provider.keys += [Key("another", "ES256", new_private_key("ES256"))]
    stage.adapter = stage.replica()
    assert "2 keys fit it" in (await stage.trouble()).detail


def unsigned(claims: Claims) -> str:
    return jwt.encode(claims, "", algorithm="none")


def signed_with_what_we_know_too(claims: Claims) -> str:
    return jwt.encode(claims, SECRET * 3, algorithm="HS256", headers={"kid": "key-1"})


def signed_by_somebody_else(claims: Claims) -> str:
    return Key("key-1", "ES256", new_private_key("ES256")).sign(claims)


def signed_with_another_kind_of_key(claims: Claims) -> str:
    return Key("key-1", "RS256", new_private_key("RS256")).sign(claims)


def without_its_end(claims: Claims) -> str:
    return signed_by_somebody_else(claims).rpartition(".")[0] + "."


def nonsense(_: Claims) -> str:
    return "a.b.c"


@pytest.mark.parametrize(
    "writing",
    [
        unsigned,
        signed_with_what_we_know_too,
        signed_by_somebody_else,
        signed_with_another_kind_of_key,
        without_its_end,
        nonsense,
    ],
)
@asynchronous
async def test_a_token_that_somebody_else_may_have_written_is_refused(stage: OidcStage, writing: Any):
    stage.provider.writes = writing
    trouble = await stage.trouble()
    assert str(trouble).startswith("What the identity provider sent is not to be believed.")
    assert "the ID token is refused" in trouble.detail


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ({"iss": "https://evil.example"}, "issuer"),
        ({"iss": None}, "iss"),
        ({"aud": "somebody else"}, "udience"),
        ({"aud": None}, "aud"),
        ({"aud": [CLIENT, "somebody else"]}, "another application"),
        ({"aud": [CLIENT, "somebody else"], "azp": "somebody else"}, "another application"),
        ({"azp": "somebody else"}, "another application"),
        ({"nonce": "of another sign-in"}, "another sign-in"),
        ({"nonce": None}, "nonce"),
        ({"sub": None}, "sub"),
        ({"exp": None}, "exp"),
        ({"exp": NOW - 31}, "expired"),
        ({"exp": "tomorrow"}, "no time"),
        ({"iat": NOW + 31}, "future"),
        ({"nbf": NOW + 31}, "future"),
        ({"iat": True}, "no time"),
    ],
)
@asynchronous
async def test_a_token_that_was_not_made_for_this_sign_in_is_refused(stage: OidcStage, says: Claims, words: str):
    stage.provider.token_says = says
    assert words in (await stage.trouble()).detail


@pytest.mark.parametrize(
    "says",
    [
        {"exp": NOW - 29, "iat": NOW + 29},
        {"aud": [CLIENT]},
        {"aud": [CLIENT, "somebody else"], "azp": CLIENT},
    ],
)
@asynchronous
async def test_clocks_that_differ_a_little_and_tokens_for_several_are_fine(stage: OidcStage, says: Claims):
    stage.provider.token_says = says
    assert (await stage.sign_in()).person.name == "ada"


# Who it is


@asynchronous
async def test_what_is_not_in_the_token_is_asked_for(stage: OidcStage):
    stage.provider.keeps_for_userinfo = {"preferred_username", "groups"}
    person = (await stage.sign_in()).person
    assert (person.name, person.groups) == ("ada", {"devs"})


@asynchronous
async def test_what_is_told_of_somebody_else_does_not_count(stage: OidcStage):
    stage.provider.keeps_for_userinfo = {"groups"}
    stage.provider.token_says = {"sub": "8"}
    assert "speaks of somebody else" in (await stage.trouble()).detail


@asynchronous
async def test_names_and_groups_may_be_called_otherwise(stage: OidcStage):
    stage.provider.visitor = {
        "sub": "7", "email": "ada@example.com", "email_verified": "true",
        "realm_access": {"roles": ["devs", 7]}, "https://a.example/team": "ops",
    }  # fmt: skip
    stage.adapter = stage.replica(name_claim="email", groups_claim="realm_access.roles")
    person = (await stage.sign_in()).person
    assert (person.name, person.groups) == ("ada@example.com", {"devs"})
    stage.adapter = stage.replica(name_claim="email", groups_claim="https://a.example/team")
    assert (await stage.sign_in()).person.groups == {"ops"}


@pytest.mark.parametrize("empty", [[], "", {}])
@asynchronous
async def test_what_is_empty_in_the_token_is_asked_for(stage: OidcStage, empty: object):
    stage.provider.token_says = {"groups": empty}
    assert (await stage.sign_in()).person.groups == {"devs"}


@asynchronous
async def test_a_claim_inside_another_is_asked_for_where_the_outer_one_lacks_it(stage: OidcStage):
    stage.provider.visitor |= {"realm_access": {"roles": ["devs"]}}
    stage.provider.token_says = {"realm_access": {"other": 1}}
    stage.adapter = stage.replica(groups_claim="realm_access.roles")
    assert (await stage.sign_in()).person.groups == {"devs"}


@asynchronous
async def test_an_address_may_be_verified_where_more_is_told(stage: OidcStage):
    stage.provider.visitor = {"sub": "7", "email": "ada@example.com", "email_verified": True, "groups": ["devs"]}
    stage.provider.keeps_for_userinfo = {"email_verified"}
    stage.adapter = stage.replica(name_claim="email")
    assert (await stage.sign_in()).person.name == "ada@example.com"
    stage.provider.token_says = {"email": "boss@example.com"}
    with pytest.raises(NotVouchedFor, match="Verify it there"):
        await stage.sign_in()


@pytest.mark.parametrize("said", [{"email_verified": False}, {"email_verified": "false"}, {}], ids=str)
@asynchronous
async def test_an_address_that_nobody_verified_names_nobody(stage: OidcStage, said: dict[str, object]):
    stage.provider.visitor = {"sub": "7", "email": "boss@example.com", **said}
    stage.adapter = stage.replica(name_claim="email")
    with pytest.raises(NotVouchedFor, match="Verify it there"):
        await stage.sign_in()


@asynchronous
async def test_a_missing_name_is_told_to_the_operator(stage: OidcStage):
    stage.provider.visitor = {"sub": "7", "nickname": "ada"}
    assert "'preferred_username' among" in (await stage.trouble()).detail
