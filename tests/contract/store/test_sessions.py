"""Sessions are kept until they end, or until somebody signs out."""

import pytest

from mergeyard.domain.instants import Instant
from mergeyard.ports.store import Store
from mergeyard.ports.writes import DropSession, DropVouchedFor, ForgetSessions, SaveSession, SaveToken
from tests.contract.store.given import a_session, a_token, digest_of, opened
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_a_session_is_found_by_its_digest_with_all_that_is_known_of_it(store: Store):
    async with opened(store):
        by_token = a_session("by token", token="ada")
        vouched_for = a_session("vouched for \0 é", groups=frozenset({"devs", "ops \0 é"}))
        await store.commit(SaveToken(a_token("ada")), SaveSession(by_token), SaveSession(vouched_for))
        assert await store.session(by_token.digest) == by_token
        assert await store.session(vouched_for.digest) == vouched_for
        assert await store.session(b"unknown") is None


@asynchronous
async def test_whoever_signs_out_is_forgotten_and_nobody_else_is(store: Store):
    async with opened(store):
        await store.commit(SaveSession(a_session("ada")), SaveSession(a_session("bob")))
        await store.commit(DropSession(digest_of("ada")))
        assert await store.session(digest_of("ada")) is None
        assert await store.session(digest_of("bob")) == a_session("bob")
        await store.commit(DropSession(digest_of("ada")))


@asynchronous
async def test_whoever_came_without_a_token_is_forgotten_and_nobody_else_is(store: Store):
    async with opened(store):
        by_token = a_session("by token", token="ada")
        await store.commit(SaveToken(a_token("ada")), SaveSession(by_token))
        await store.commit(SaveSession(a_session("bob")), SaveSession(a_session("eve")))
        await store.commit(DropVouchedFor())
        assert await store.session(digest_of("bob")) is None
        assert await store.session(digest_of("eve")) is None
        assert await store.session(by_token.digest) == by_token


@asynchronous
async def test_sessions_that_have_ended_are_forgotten(store: Store):
    async with opened(store):
        await store.commit(*(SaveSession(a_session(f"{end}", expires_at=end)) for end in (4, 5, 6)))
        await store.commit(ForgetSessions(Instant(5)))
        assert [await store.session(digest_of(f"{end}")) is None for end in (4, 5, 6)] == [True, True, False]


@asynchronous
async def test_sessions_outlast_a_restart(store: Store):
    async with opened(store):
        await store.commit(SaveSession(a_session("ada")))
    async with opened(store):
        assert await store.session(digest_of("ada")) == a_session("ada")


@asynchronous
async def test_a_session_of_a_token_that_nobody_made_is_refused(store: Store):
    async with opened(store):
        with pytest.raises(Exception, match=r"(?i)foreign key"):
            await store.commit(SaveSession(a_session("ada", token="nobody's")))
        assert await store.session(digest_of("ada")) is None
