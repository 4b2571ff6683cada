"""Sessions are stored until they expire or the user signs out."""

import pytest

from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import Store
from mergeyard.ports.writes import DeleteExpiredSessions, DeleteSession, DeleteSsoSessions, SaveSession, SaveToken
from tests.contract.store.builders import a_session, a_token, digest_of, opened
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_a_session_is_found_by_its_digest_with_all_its_fields(store: Store):
    async with opened(store):
        by_token = a_session("by token", token="ada")
        sso_session = a_session("single sign-on \0 é", groups=frozenset({"devs", "ops \0 é"}))
        await store.commit(SaveToken(a_token("ada")), SaveSession(by_token), SaveSession(sso_session))
        assert await store.session(by_token.digest) == by_token
        assert await store.session(sso_session.digest) == sso_session
        assert await store.session(b"unknown") is None


@asynchronous
async def test_a_sign_out_deletes_only_that_session(store: Store):
    async with opened(store):
        await store.commit(SaveSession(a_session("ada")), SaveSession(a_session("bob")))
        await store.commit(DeleteSession(digest_of("ada")))
        assert await store.session(digest_of("ada")) is None
        assert await store.session(digest_of("bob")) == a_session("bob")
        await store.commit(DeleteSession(digest_of("ada")))


@asynchronous
async def test_only_sessions_without_a_token_are_deleted_as_sso_sessions(store: Store):
    async with opened(store):
        by_token = a_session("by token", token="ada")
        await store.commit(SaveToken(a_token("ada")), SaveSession(by_token))
        await store.commit(SaveSession(a_session("bob")), SaveSession(a_session("eve")))
        await store.commit(DeleteSsoSessions())
        assert await store.session(digest_of("bob")) is None
        assert await store.session(digest_of("eve")) is None
        assert await store.session(by_token.digest) == by_token


@asynchronous
async def test_expired_sessions_are_deleted(store: Store):
    async with opened(store):
        await store.commit(*(SaveSession(a_session(f"{end}", expires_at=end)) for end in (4, 5, 6)))
        await store.commit(DeleteExpiredSessions(Instant(5)))
        assert [await store.session(digest_of(f"{end}")) is None for end in (4, 5, 6)] == [True, True, False]


@asynchronous
async def test_sessions_outlast_a_restart(store: Store):
    async with opened(store):
        await store.commit(SaveSession(a_session("ada")))
    async with opened(store):
        assert await store.session(digest_of("ada")) == a_session("ada")


@asynchronous
async def test_a_session_of_an_unknown_token_is_refused(store: Store):
    async with opened(store):
        with pytest.raises(Exception, match=r"(?i)foreign key"):
            await store.commit(SaveSession(a_session("ada", token="unknown")))
        assert await store.session(digest_of("ada")) is None
