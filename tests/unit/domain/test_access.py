"""A token allows what its scopes name, for its repositories, until it expires."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.access import (
    MAX_SSO_TOKEN_LIFETIME_MS,
    NO_GRANTS,
    TOKEN_USE_INTERVAL_MS,
    Grants,
    Scope,
    Session,
    SsoPrincipal,
    Token,
)
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import Instant, later

HERE, THERE = Repo("git.local", "acme", "app"), Repo("git.local", "acme", "other")
TOKEN = Token(id="1", name="ci", digest=b"", created_at=Instant(0))


def test_a_token_can_read_submit_and_set_targets_by_default():
    assert {scope for scope in Scope if TOKEN.has_scope(scope)} == {Scope.READ, Scope.SUBMIT, Scope.TARGETS}


@pytest.mark.parametrize("scope", Scope)
def test_an_admin_has_every_scope(scope: Scope):
    assert replace(TOKEN, scopes=frozenset({Scope.ADMIN})).has_scope(scope)


def test_a_token_without_repositories_can_access_all():
    assert TOKEN.can_access(HERE)


def test_a_token_with_repositories_can_access_only_those():
    limited = replace(TOKEN, repos=frozenset({HERE}))
    assert (limited.can_access(HERE), limited.can_access(THERE)) == (True, False)


def test_a_token_with_repositories_can_access_only_their_hosts():
    limited = replace(TOKEN, repos=frozenset({HERE}))
    assert (limited.can_access_host("git.local"), limited.can_access_host("github.com")) == (True, False)
    assert TOKEN.can_access_host("github.com")


def test_a_token_is_valid_until_it_expires():
    ending = replace(TOKEN, expires_at=Instant(10))
    assert (ending.is_valid(Instant(9)), ending.is_valid(Instant(10))) == (True, False)


def test_a_revoked_token_is_not_valid():
    assert not replace(TOKEN, revoked_at=Instant(5)).is_valid(Instant(6))


def test_a_token_without_expiry_is_valid():
    assert TOKEN.is_valid(Instant(10**15))


def test_a_use_is_recorded_when_the_last_recorded_one_is_an_hour_old():
    used = replace(TOKEN, last_used_at=Instant(5))
    assert TOKEN.is_use_record_due(Instant(5))
    assert not used.is_use_record_due(Instant(4 + TOKEN_USE_INTERVAL_MS))
    assert used.is_use_record_due(Instant(5 + TOKEN_USE_INTERVAL_MS))


def test_a_token_created_with_a_token_expires_with_it():
    assert TOKEN.latest_expiry_of_new_token(Instant(5)) is None
    assert replace(TOKEN, expires_at=Instant(10)).latest_expiry_of_new_token(Instant(5)) == Instant(10)


def test_a_token_created_by_an_sso_user_expires():
    principal = SsoPrincipal(id="v", name="ada", digest=b"", created_at=Instant(0))
    assert principal.latest_expiry_of_new_token(Instant(5)) == later(Instant(5), MAX_SSO_TOKEN_LIFETIME_MS)


def test_a_session_is_not_valid_once_it_expired():
    session = Session(digest=b"", token=None, created_at=Instant(0), expires_at=Instant(10))
    assert session.is_valid(Instant(9))
    assert not session.is_valid(Instant(10))


def test_an_sso_user_has_the_scopes_of_all_groups_and_can_read():
    grants = Grants(group_scopes={"ops": frozenset({Scope.ADMIN})}, default_scopes=frozenset({Scope.SUBMIT}))
    assert grants.scopes_for(frozenset({"ops", "unknown"})) == {Scope.ADMIN, Scope.SUBMIT, Scope.READ}
    assert grants.scopes_for(frozenset()) == {Scope.SUBMIT, Scope.READ}


def test_nothing_is_granted_by_default():
    assert NO_GRANTS.scopes_for(frozenset({"ops"})) == frozenset()
