"""A session lasts until its end, its token's end, or until somebody signs out; nobody gets in by guessing."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.instants import HOUR, later
from mergeyard.domain.journal import SignedIn, SignedOut
from mergeyard.domain.sessions import NOTHING_GRANTED, Grants
from mergeyard.domain.tokens import LONGEST_GIFT, Scope
from mergeyard.ports.store import AuditPage
from mergeyard.service import secrets
from mergeyard.service.auditing import decode_kept
from mergeyard.service.errors import Refused
from mergeyard.service.sessions import LASTING, Sessions
from mergeyard.service.tokens import Tokens
from tests.support.asynchronous import asynchronous
from tests.support.clock import START, HandClock

GRANTS = Grants(to_groups={"devs": frozenset({Scope.SUBMIT}), "ops": frozenset({Scope.ADMIN})})


class Desk:
    def __init__(self, folder: Path) -> None:
        self.clock = HandClock()
        self.store = SqliteStore(folder / "mergeyard.db")
        self.tokens = Tokens(self.store, self.clock)
        self.sessions = self.sessions_with(GRANTS)

    def sessions_with(self, grants: Grants) -> Sessions:
        """As after a restart with other settings."""
        return Sessions(self.store, self.clock, self.tokens, grants)

    async def vouched_for(self, name: str = "Ada", group: str = "ops") -> bytes:
        session = await self.sessions.vouch(name, frozenset({group}))
        assert session is not None
        return session.encode()

    async def signed_in(self, lifetime: int | None = None) -> bytes:
        _, secret = await self.tokens.create("ada", lifetime=lifetime)
        session = await self.sessions.sign_in(secret.encode())
        assert session is not None
        return session.encode()

    def time_passes(self, milliseconds: int) -> None:
        self.clock.move_to(later(self.clock.now(), milliseconds))


@asynccontextmanager
async def a_desk(folder: Path) -> AsyncGenerator[Desk]:
    desk = Desk(folder)
    await desk.store.open()
    try:
        yield desk
    finally:
        await desk.store.close()


@asynchronous
async def test_whoever_signs_in_may_do_what_their_token_may(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        token, secret = await desk.tokens.create("ada", {Scope.READ, Scope.PRIORITY})
        session = await desk.sessions.sign_in(secret.encode())
        assert session is not None
        assert await desk.sessions.holder(session.encode()) == token


@asynchronous
async def test_nobody_signs_in_with_a_token_that_is_unknown_revoked_or_expired(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        revoked, its_secret = await desk.tokens.create("revoked")
        await desk.tokens.revoke(revoked.id)
        _, expired = await desk.tokens.create("expired", lifetime=HOUR)
        desk.time_passes(HOUR)
        for secret in (its_secret, expired, secrets.new_secret(), "", "nonsense", "my_" + "0" * 49):
            assert await desk.sessions.sign_in(secret.encode()) is None


@asynchronous
async def test_a_session_ends_after_its_time_and_is_forgotten(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        session = await desk.signed_in()
        desk.time_passes(LASTING - 1)
        await desk.sessions.forget_ended()
        assert await desk.sessions.holder(session) is not None
        desk.time_passes(1)
        assert await desk.sessions.holder(session) is None
        assert await desk.store.session(secrets.digest(session)) is not None
        await desk.sessions.forget_ended()
        assert await desk.store.session(secrets.digest(session)) is None


@asynchronous
async def test_a_token_that_is_revoked_ends_its_sessions_at_once(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        session = await desk.signed_in()
        holder = await desk.sessions.holder(session)
        assert holder is not None
        await desk.tokens.revoke(holder.id)
        assert await desk.sessions.holder(session) is None


@asynchronous
async def test_a_token_that_expires_takes_its_sessions_along(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        session = await desk.signed_in(lifetime=HOUR)
        desk.time_passes(HOUR - 1)
        assert await desk.sessions.holder(session) is not None
        desk.time_passes(1)
        assert await desk.sessions.holder(session) is None


@asynchronous
async def test_whoever_signs_out_is_out_and_others_stay(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        session, other = await desk.signed_in(), await desk.signed_in()
        await desk.sessions.sign_out(session)
        assert await desk.sessions.holder(session) is None
        assert await desk.sessions.holder(other) is not None


@asynchronous
async def test_a_forged_cookie_lets_nobody_in(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        session = await desk.signed_in()
        stored = secrets.digest(session)
        for forged in (b"", b"x", stored, stored.hex().encode(), session[:-1], session + b"x", session.swapcase()):
            assert await desk.sessions.holder(forged) is None
        assert await desk.sessions.holder(secrets.new_secret().encode()) is None


@asynchronous
async def test_the_secrets_of_tokens_and_sessions_are_no_good_in_each_others_place(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        _, token = await desk.tokens.create("ada")
        session = await desk.sessions.sign_in(token.encode())
        assert session is not None
        assert await desk.sessions.holder(token.encode()) is None
        assert await desk.tokens.holder(session.encode()) is None
        assert await desk.sessions.sign_in(session.encode()) is None


@asynchronous
async def test_somebody_who_is_vouched_for_may_do_what_was_granted_until_the_session_ends(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        session = await desk.vouched_for()
        holder = await desk.sessions.holder(session)
        assert holder is not None
        assert (holder.name, holder.scopes, holder.repos) == ("Ada", {Scope.READ, Scope.ADMIN}, frozenset())
        desk.time_passes(LASTING)
        assert await desk.sessions.holder(session) is None


@asynchronous
async def test_what_is_granted_no_more_nobody_may_do_who_came_before(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        session = await desk.vouched_for()
        less = desk.sessions_with(Grants(to_groups={"ops": frozenset({Scope.SUBMIT})}))
        holder = await less.holder(session)
        assert holder is not None
        assert holder.scopes == {Scope.READ, Scope.SUBMIT}
        others = desk.sessions_with(Grants(to_groups={"devs": frozenset({Scope.SUBMIT})}))
        assert await others.holder(session) is None


@asynchronous
async def test_without_a_provider_nobody_stays_whom_it_vouched_for(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        session = await desk.vouched_for()
        assert await desk.sessions_with(NOTHING_GRANTED).holder(session) is None


@asynchronous
async def test_nobody_comes_in_to_whom_nothing_is_granted(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        assert await desk.sessions.vouch("Eve", frozenset({"choir"})) is None
        assert await desk.store.audit(AuditPage(take=9)) == ()


@asynchronous
async def test_only_groups_that_count_are_kept(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        secret = await desk.sessions.vouch("Ada", frozenset({"ops", "choir"}))
        assert secret is not None
        session = await desk.store.session(secrets.digest(secret.encode()))
        assert session is not None
        assert session.groups == {"ops"}


@asynchronous
async def test_whoever_is_vouched_for_makes_no_token_that_lasts_for_ever(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        holder = await desk.sessions.holder(await desk.vouched_for())
        made, _ = await desk.tokens.create("robot", {Scope.READ}, (), LONGEST_GIFT, holder)
        assert made.expires_at == later(START, LONGEST_GIFT)
        for lifetime in (LONGEST_GIFT + 1, None):
            with pytest.raises(Refused, match="choose a shorter time"):
                await desk.tokens.create("robot", {Scope.READ}, (), lifetime, holder)


@asynchronous
async def test_everybody_is_signed_out_whom_somebody_else_vouched_for(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        ada, bob, by_token = await desk.vouched_for(), await desk.vouched_for("Bob", "devs"), await desk.signed_in()
        asker = await desk.sessions.holder(by_token)
        assert asker is not None
        await desk.sessions.sign_out_vouched_for("Acme", asker)
        assert [await desk.sessions.holder(each) for each in (ada, bob, by_token)] == [None, None, asker]
        (entry,) = await desk.store.audit(AuditPage(take=9, kind="SignedOut"))
        assert decode_kept(entry.body) == SignedOut(at=START, actor=f"ada#{asker.id}", id="", name="Acme")


@asynchronous
async def test_a_token_that_may_not_look_is_refused_in_words(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        _, secret = await desk.tokens.create("ci", {Scope.STATUS})
        with pytest.raises(Refused, match="lacks the scope “read”"):
            await desk.sessions.sign_in(secret.encode())
        assert await desk.store.audit(AuditPage(take=9, kind="SignedIn")) == ()


@asynchronous
async def test_signing_in_is_noted_without_any_secret(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        token, secret = await desk.tokens.create("ada")
        session = await desk.sessions.sign_in(secret.encode())
        assert session is not None
        (entry,) = await desk.store.audit(AuditPage(take=9, kind="SignedIn"))
        assert decode_kept(entry.body) == SignedIn(at=START, actor=f"ada#{token.id}", id=token.id, name="ada")
        assert entry.token == token.id
        assert secret.encode() not in entry.body
        assert session.encode() not in entry.body
