"""Tokens are made with no more than their giver has, taken back at once, and all of it is noted."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.instants import HOUR, Instant
from mergeyard.domain.journal import TokenCreated, TokenRevoked
from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import Scope
from mergeyard.ports.store import AuditPage, StoreTrouble
from mergeyard.ports.writes import Write
from mergeyard.service.auditing import decode_kept
from mergeyard.service.errors import Code, Refused
from mergeyard.service.tokens import Tokens
from tests.support.asynchronous import asynchronous
from tests.support.clock import START, HandClock
from tests.support.troubled_store import TroubledStore

APP = Repo("git.local", "acme", "app")
LIB = Repo("git.local", "acme", "lib")


class Desk:
    def __init__(self, folder: Path) -> None:
        self.clock = HandClock()
        self.store = TroubledStore(folder / "mergeyard.db")
        self.tokens = Tokens(self.store, self.clock)

    async def journal(self) -> list[object]:
        return [decode_kept(entry.body) for entry in await self.store.audit(AuditPage(take=99))]


@asynccontextmanager
async def a_desk(folder: Path) -> AsyncGenerator[Desk]:
    desk = Desk(folder)
    await desk.store.open()
    try:
        yield desk
    finally:
        await desk.store.close()


@asynchronous
async def test_making_and_revoking_is_noted_with_who_did_it_and_without_the_secret(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        boss, _ = await desk.tokens.create("boss", {Scope.ADMIN})
        ci, secret = await desk.tokens.create("ci", {Scope.STATUS, Scope.READ}, [APP], giver=boss)
        await desk.tokens.revoke(ci.id, boss)
        by_boss = f"boss#{boss.id}"
        assert await desk.journal() == [
            TokenRevoked(at=START, actor=by_boss, id=ci.id, name="ci"),
            TokenCreated(at=START, actor=by_boss, id=ci.id, name="ci", words="read, status on git.local/acme/app"),
            TokenCreated(at=START, actor="operator", id=boss.id, name="boss", words="admin"),
        ]
        (entry, *_) = await desk.store.audit(AuditPage(take=1, actor="boss", kind="TokenRevoked"))
        assert (entry.key, entry.token) == (None, boss.id)
        everything = b"".join(each.body for each in await desk.store.audit(AuditPage(take=99)))
        assert secret.encode() not in everything
        assert ci.digest not in everything


@asynchronous
async def test_what_is_revoked_already_is_revoked_once(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        token, secret = await desk.tokens.create("ci")
        first = await desk.tokens.revoke(token.id)
        desk.clock.move_to(Instant(START + HOUR))
        assert await desk.tokens.revoke(token.id) == first
        assert len(await desk.journal()) == 2
        assert await desk.tokens.holder(secret.encode()) is None
        assert await desk.tokens.revoke("nobody's") is None


@asynchronous
async def test_nothing_is_noted_of_what_could_not_be_done(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.store.failures = 1
        with pytest.raises(StoreTrouble):
            await desk.tokens.create("ci")
        assert await desk.journal() == []
        assert await desk.tokens.all() == ()


class AlmostFull(SqliteStore):
    """Takes one more commit."""

    room = 1

    async def commit(self, *writes: Write) -> None:
        if not self.room:
            raise StoreTrouble("the disk is full")
        self.room -= 1
        await super().commit(*writes)


@asynchronous
async def test_what_is_done_and_its_note_are_one_commit(tmp_path: Path):
    store = AlmostFull(tmp_path / "mergeyard.db")
    await store.open()
    made, _ = await Tokens(store, HandClock()).create("ci")
    assert await store.tokens() == (made,)
    assert len(await store.audit(AuditPage(take=9))) == 1
    await store.close()


@pytest.mark.parametrize("name", ["", " ci", "ci#1", "line\nbreak", "x" * 101, "mergeyard", "Operator", "operator "])
@asynchronous
async def test_a_name_that_the_journal_could_not_keep_apart_is_refused(name: str, tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        with pytest.raises(Refused, match="choose another"):
            await desk.tokens.create(name)


@asynchronous
async def test_nobody_gives_away_more_than_they_have(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        modest, _ = await desk.tokens.create("modest", {Scope.READ, Scope.SUBMIT}, [APP], 8 * HOUR)
        made, _ = await desk.tokens.create("less", {Scope.READ}, [APP], HOUR, modest)
        assert made.repos == {APP}
        for scopes, repos, lifetime in (
            ({Scope.STATUS}, [APP], HOUR),
            ({Scope.ADMIN}, [APP], HOUR),
            ({Scope.READ}, [], HOUR),
            ({Scope.READ}, [APP, LIB], HOUR),
            ({Scope.READ}, [APP], 9 * HOUR),
            ({Scope.READ}, [APP], None),
        ):
            with pytest.raises(Refused) as refused:
                await desk.tokens.create("more", scopes, repos, lifetime, modest)
            assert refused.value.code is Code.INSUFFICIENT_SCOPE
        assert len(await desk.tokens.all()) == 2


@asynchronous
async def test_an_administrator_who_is_not_limited_gives_anything(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        boss, _ = await desk.tokens.create("boss", {Scope.ADMIN})
        made, _ = await desk.tokens.create("all", frozenset(Scope), (), None, boss)
        assert made.scopes == frozenset(Scope)
