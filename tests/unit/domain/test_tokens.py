"""A token may do what its scopes name, where its repositories are, until it ends."""

import pytest
from msgspec.structs import replace

from mergeyard.domain.instants import Instant, later
from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import LONGEST_GIFT, USE_RECORDED_EVERY, Scope, Token, VouchedFor

HERE, THERE = Repo("git.local", "acme", "app"), Repo("git.local", "acme", "other")
TOKEN = Token(id="1", name="ci", digest=b"", created_at=Instant(0))


def test_without_more_a_token_reads_submits_and_names_targets():
    assert {scope for scope in Scope if TOKEN.may(scope)} == {Scope.READ, Scope.SUBMIT, Scope.TARGETS}


@pytest.mark.parametrize("scope", Scope)
def test_an_admin_may_everything(scope: Scope):
    assert replace(TOKEN, scopes=frozenset({Scope.ADMIN})).may(scope)


def test_a_token_without_repositories_sees_all():
    assert TOKEN.sees(HERE)


def test_a_token_with_repositories_sees_only_those():
    limited = replace(TOKEN, repos=frozenset({HERE}))
    assert (limited.sees(HERE), limited.sees(THERE)) == (True, False)


def test_a_token_with_repositories_sees_only_their_hosts():
    limited = replace(TOKEN, repos=frozenset({HERE}))
    assert (limited.sees_host("git.local"), limited.sees_host("github.com")) == (True, False)
    assert TOKEN.sees_host("github.com")


def test_a_token_is_valid_until_the_moment_of_its_end():
    ending = replace(TOKEN, expires_at=Instant(10))
    assert (ending.valid(Instant(9)), ending.valid(Instant(10))) == (True, False)


def test_a_revoked_token_is_not_valid():
    assert not replace(TOKEN, revoked_at=Instant(5)).valid(Instant(6))


def test_a_token_without_an_end_is_valid():
    assert TOKEN.valid(Instant(10**15))


def test_a_use_is_recorded_when_the_last_recorded_one_is_an_hour_old():
    used = replace(TOKEN, last_used_at=Instant(5))
    assert TOKEN.use_is_due(Instant(5))
    assert not used.use_is_due(Instant(4 + USE_RECORDED_EVERY))
    assert used.use_is_due(Instant(5 + USE_RECORDED_EVERY))


def test_what_a_token_gives_ends_with_it():
    assert TOKEN.gives_until(Instant(5)) is None
    assert replace(TOKEN, expires_at=Instant(10)).gives_until(Instant(5)) == Instant(10)


def test_what_somebody_gives_who_is_vouched_for_ends_after_a_while():
    vouched = VouchedFor(id="v", name="ada", digest=b"", created_at=Instant(0))
    assert vouched.gives_until(Instant(5)) == later(Instant(5), LONGEST_GIFT)
