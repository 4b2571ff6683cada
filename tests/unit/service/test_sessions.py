"""A session lasts until it expires, its token ends, or the user signs out, and it cannot be forged."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.access import MAX_SSO_TOKEN_LIFETIME_MS, NO_GRANTS, Grants, Scope
from mergeyard.domain.journal import SignedIn, SsoSessionsEnded
from mergeyard.domain.timestamps import HOUR, later
from mergeyard.ports.store import AuditQuery
from mergeyard.service import tokens
from mergeyard.service.audit_log import decode_journal_entry
from mergeyard.service.errors import RequestRefused
from mergeyard.service.sessions import SESSION_LIFETIME_MS, Sessions
from mergeyard.service.tokens import Tokens
from tests.support.asynchronous import asynchronous
from tests.support.clock import START_TIME, ManualClock

GRANTS = Grants(group_scopes={"devs": frozenset({Scope.SUBMIT}), "ops": frozenset({Scope.ADMIN})})


class SessionService:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.store = SqliteStore(folder / "mergeyard.db")
        self.tokens = Tokens(self.store, self.clock)
        self.sessions = self.sessions_with(GRANTS)

    def sessions_with(self, grants: Grants) -> Sessions:
        """Sessions as after a restart with other settings."""
        return Sessions(self.store, self.clock, self.tokens, grants)

    async def sign_in_with_sso(self, name: str = "Ada", group: str = "ops") -> bytes:
        session = await self.sessions.sign_in_with_sso(name, frozenset({group}))
        assert session is not None
        return session.encode()

    async def sign_in_with_token(self, lifetime: int | None = None) -> bytes:
        _, secret = await self.tokens.create("ada", lifetime_ms=lifetime)
        session = await self.sessions.sign_in(secret.encode())
        assert session is not None
        return session.encode()

    def advance_time(self, milliseconds: int) -> None:
        self.clock.move_to(later(self.clock.now(), milliseconds))


@asynccontextmanager
async def open_session_service(folder: Path) -> AsyncGenerator[SessionService]:
    service = SessionService(folder)
    await service.store.open()
    try:
        yield service
    finally:
        await service.store.close()


@asynchronous
async def test_a_session_has_the_rights_of_its_token(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        token, secret = await service.tokens.create("ada", {Scope.READ, Scope.PRIORITY})
        session = await service.sessions.sign_in(secret.encode())
        assert session is not None
        assert await service.sessions.find_user(session.encode()) == token


@asynchronous
async def test_an_unknown_revoked_or_expired_token_cannot_sign_in(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        revoked, its_secret = await service.tokens.create("revoked")
        await service.tokens.revoke(revoked.id)
        _, expired = await service.tokens.create("expired", lifetime_ms=HOUR)
        service.advance_time(HOUR)
        for secret in (its_secret, expired, tokens.generate_secret(), "", "nonsense", "my_" + "0" * 49):
            assert await service.sessions.sign_in(secret.encode()) is None


@asynchronous
async def test_a_session_expires_and_is_deleted(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        session = await service.sign_in_with_token()
        service.advance_time(SESSION_LIFETIME_MS - 1)
        await service.sessions.delete_expired()
        assert await service.sessions.find_user(session) is not None
        service.advance_time(1)
        assert await service.sessions.find_user(session) is None
        assert await service.store.session(tokens.hash_secret(session)) is not None
        await service.sessions.delete_expired()
        assert await service.store.session(tokens.hash_secret(session)) is None


@asynchronous
async def test_a_token_that_is_revoked_ends_its_sessions_at_once(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        session = await service.sign_in_with_token()
        user = await service.sessions.find_user(session)
        assert user is not None
        await service.tokens.revoke(user.id)
        assert await service.sessions.find_user(session) is None


@asynchronous
async def test_sessions_end_when_their_token_expires(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        session = await service.sign_in_with_token(lifetime=HOUR)
        service.advance_time(HOUR - 1)
        assert await service.sessions.find_user(session) is not None
        service.advance_time(1)
        assert await service.sessions.find_user(session) is None


@asynchronous
async def test_signing_out_ends_only_that_session(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        session, other = await service.sign_in_with_token(), await service.sign_in_with_token()
        await service.sessions.sign_out(session)
        assert await service.sessions.find_user(session) is None
        assert await service.sessions.find_user(other) is not None


@asynchronous
async def test_a_forged_cookie_is_rejected(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        session = await service.sign_in_with_token()
        stored = tokens.hash_secret(session)
        for forged in (b"", b"x", stored, stored.hex().encode(), session[:-1], session + b"x", session.swapcase()):
            assert await service.sessions.find_user(forged) is None
        assert await service.sessions.find_user(tokens.generate_secret().encode()) is None


@asynchronous
async def test_secrets_of_tokens_and_sessions_are_not_interchangeable(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        _, token = await service.tokens.create("ada")
        session = await service.sessions.sign_in(token.encode())
        assert session is not None
        assert await service.sessions.find_user(token.encode()) is None
        assert await service.tokens.find_valid(session.encode()) is None
        assert await service.sessions.sign_in(session.encode()) is None


@asynchronous
async def test_an_sso_session_has_the_granted_scopes_until_it_ends(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        session = await service.sign_in_with_sso()
        user = await service.sessions.find_user(session)
        assert user is not None
        assert (user.name, user.scopes, user.repos) == ("Ada", {Scope.READ, Scope.ADMIN}, frozenset())
        service.advance_time(SESSION_LIFETIME_MS)
        assert await service.sessions.find_user(session) is None


@asynchronous
async def test_removed_grants_also_apply_to_existing_sso_sessions(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        session = await service.sign_in_with_sso()
        less = service.sessions_with(Grants(group_scopes={"ops": frozenset({Scope.SUBMIT})}))
        user = await less.find_user(session)
        assert user is not None
        assert user.scopes == {Scope.READ, Scope.SUBMIT}
        others = service.sessions_with(Grants(group_scopes={"devs": frozenset({Scope.SUBMIT})}))
        assert await others.find_user(session) is None


@asynchronous
async def test_without_an_identity_provider_sso_sessions_are_rejected(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        session = await service.sign_in_with_sso()
        assert await service.sessions_with(NO_GRANTS).find_user(session) is None


@asynchronous
async def test_an_sso_user_without_grants_cannot_sign_in(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        assert await service.sessions.sign_in_with_sso("Eve", frozenset({"unrelated"})) is None
        assert await service.store.audit_entries(AuditQuery(take=9)) == ()


@asynchronous
async def test_only_groups_with_grants_are_stored(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        secret = await service.sessions.sign_in_with_sso("Ada", frozenset({"ops", "unrelated"}))
        assert secret is not None
        session = await service.store.session(tokens.hash_secret(secret.encode()))
        assert session is not None
        assert session.groups == {"ops"}


@asynchronous
async def test_an_sso_user_cannot_create_a_token_without_expiry(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        user = await service.sessions.find_user(await service.sign_in_with_sso())
        created, _ = await service.tokens.create("robot", {Scope.READ}, (), MAX_SSO_TOKEN_LIFETIME_MS, user)
        assert created.expires_at == later(START_TIME, MAX_SSO_TOKEN_LIFETIME_MS)
        for lifetime in (MAX_SSO_TOKEN_LIFETIME_MS + 1, None):
            with pytest.raises(RequestRefused, match="choose a shorter time"):
                await service.tokens.create("robot", {Scope.READ}, (), lifetime, user)


@asynchronous
async def test_an_administrator_can_end_all_sso_sessions(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        ada, bob, by_token = (
            await service.sign_in_with_sso(),
            await service.sign_in_with_sso("Bob", "devs"),
            await service.sign_in_with_token(),
        )
        admin = await service.sessions.find_user(by_token)
        assert admin is not None
        await service.sessions.end_sso_sessions("Acme", admin)
        assert [await service.sessions.find_user(each) for each in (ada, bob, by_token)] == [None, None, admin]
        (entry,) = await service.store.audit_entries(AuditQuery(take=9, kind="SsoSessionsEnded"))
        assert decode_journal_entry(entry.body) == SsoSessionsEnded(
            at=START_TIME, actor=f"ada#{admin.id}", id="", name="Acme"
        )


@asynchronous
async def test_a_token_without_the_read_scope_cannot_sign_in(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        _, secret = await service.tokens.create("ci", {Scope.STATUS})
        with pytest.raises(RequestRefused, match="lacks the scope “read”"):
            await service.sessions.sign_in(secret.encode())
        assert await service.store.audit_entries(AuditQuery(take=9, kind="SignedIn")) == ()


@asynchronous
async def test_signing_in_is_in_the_audit_log_without_a_secret(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        token, secret = await service.tokens.create("ada")
        session = await service.sessions.sign_in(secret.encode())
        assert session is not None
        (entry,) = await service.store.audit_entries(AuditQuery(take=9, kind="SignedIn"))
        assert decode_journal_entry(entry.body) == SignedIn(
            at=START_TIME, actor=f"ada#{token.id}", id=token.id, name="ada"
        )
        assert entry.token == token.id
        assert secret.encode() not in entry.body
        assert session.encode() not in entry.body


@asynchronous
async def test_sign_in_with_a_token_and_sign_out_are_logged_without_secrets(tmp_path: Path):
    async with open_session_service(tmp_path) as service:
        token, secret = await service.tokens.create("ada")
        with capture_logs() as lines:
            session = await service.sessions.sign_in(secret.encode())
            assert session is not None
            await service.sessions.sign_out(session.encode())
            await service.sessions.sign_out(session.encode())
        assert lines == [
            {"event": "signed_in", "log_level": "info", "name": "ada", "token_id": token.id, "by": "token"},
            {"event": "signed_out", "log_level": "info", "name": "ada"},
        ]
