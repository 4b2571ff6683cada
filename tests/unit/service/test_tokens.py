"""Creating, checking and revoking tokens, and their audit entries."""

import hashlib
import string
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.access import Scope
from mergeyard.domain.ids import Repo
from mergeyard.domain.journal import TokenCreated, TokenRevoked
from mergeyard.domain.timestamps import HOUR, Instant
from mergeyard.ports.store import AuditQuery, StoreUnavailable
from mergeyard.ports.writes import Write
from mergeyard.service.audit_log import decode_journal_entry
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.tokens import ALPHABET, Tokens, encode_base62, generate_secret, hash_secret, is_well_formed
from tests.support.asynchronous import asynchronous
from tests.support.clock import START_TIME, ManualClock
from tests.support.faulty_store import FaultyStore

APP = Repo("git.local", "acme", "app")
LIB = Repo("git.local", "acme", "lib")


class TokenService:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.store = FaultyStore(folder / "mergeyard.db")
        self.tokens = Tokens(self.store, self.clock)

    async def journal(self) -> list[object]:
        return [decode_journal_entry(entry.body) for entry in await self.store.audit_entries(AuditQuery(take=99))]


@asynccontextmanager
async def open_token_service(folder: Path) -> AsyncGenerator[TokenService]:
    service = TokenService(folder)
    await service.store.open()
    try:
        yield service
    finally:
        await service.store.close()


@asynchronous
async def test_creating_and_revoking_is_in_the_audit_log_with_the_actor_and_without_the_secret(tmp_path: Path):
    async with open_token_service(tmp_path) as service:
        admin, _ = await service.tokens.create("admin", {Scope.ADMIN})
        ci, secret = await service.tokens.create("ci", {Scope.STATUS, Scope.READ}, [APP], created_by=admin)
        await service.tokens.revoke(ci.id, admin)
        by_admin = f"admin#{admin.id}"
        assert await service.journal() == [
            TokenRevoked(at=START_TIME, actor=by_admin, id=ci.id, name="ci"),
            TokenCreated(
                at=START_TIME, actor=by_admin, id=ci.id, name="ci", detail="read, status on git.local/acme/app"
            ),
            TokenCreated(at=START_TIME, actor="operator", id=admin.id, name="admin", detail="admin"),
        ]
        (entry, *_) = await service.store.audit_entries(AuditQuery(take=1, actor="admin", kind="TokenRevoked"))
        assert (entry.key, entry.token) == (None, admin.id)
        everything = b"".join(each.body for each in await service.store.audit_entries(AuditQuery(take=99)))
        assert secret.encode() not in everything
        assert ci.digest not in everything


@asynchronous
async def test_a_token_is_revoked_only_once(tmp_path: Path):
    async with open_token_service(tmp_path) as service:
        token, secret = await service.tokens.create("ci")
        first = await service.tokens.revoke(token.id)
        service.clock.move_to(Instant(START_TIME + HOUR))
        assert await service.tokens.revoke(token.id) == first
        assert len(await service.journal()) == 2
        assert await service.tokens.find_valid(secret.encode()) is None
        assert await service.tokens.revoke("unknown") is None


@asynchronous
async def test_a_failed_creation_leaves_no_token_and_no_audit_entry(tmp_path: Path):
    async with open_token_service(tmp_path) as service:
        service.store.failing_commits = 1
        with pytest.raises(StoreUnavailable):
            await service.tokens.create("ci")
        assert await service.journal() == []
        assert await service.tokens.list_manageable(None) == []


class AlmostFull(SqliteStore):
    """Accepts one more commit, then fails."""

    commits_left = 1

    async def commit(self, *writes: Write) -> None:
        if not self.commits_left:
            raise StoreUnavailable("the disk is full")
        self.commits_left -= 1
        await super().commit(*writes)


@asynchronous
async def test_a_token_and_its_audit_entry_are_one_commit(tmp_path: Path):
    store = AlmostFull(tmp_path / "mergeyard.db")
    await store.open()
    created, _ = await Tokens(store, ManualClock()).create("ci")
    assert await store.tokens() == (created,)
    assert len(await store.audit_entries(AuditQuery(take=9))) == 1
    await store.close()


@pytest.mark.parametrize("name", ["", " ci", "ci#1", "line\nbreak", "x" * 101, "mergeyard", "Operator", "operator "])
@asynchronous
async def test_a_name_that_is_ambiguous_in_the_journal_is_refused(name: str, tmp_path: Path):
    async with open_token_service(tmp_path) as service:
        with pytest.raises(RequestRefused, match="choose another"):
            await service.tokens.create(name)


@asynchronous
async def test_a_token_cannot_create_a_token_with_more_rights_than_it_has(tmp_path: Path):
    async with open_token_service(tmp_path) as service:
        limited, _ = await service.tokens.create("limited", {Scope.READ, Scope.SUBMIT}, [APP], 8 * HOUR)
        created, _ = await service.tokens.create("narrower", {Scope.READ}, [APP], HOUR, limited)
        assert created.repos == {APP}
        for scopes, repos, lifetime in (
            ({Scope.STATUS}, [APP], HOUR),
            ({Scope.ADMIN}, [APP], HOUR),
            ({Scope.READ}, [], HOUR),
            ({Scope.READ}, [APP, LIB], HOUR),
            ({Scope.READ}, [APP], 9 * HOUR),
            ({Scope.READ}, [APP], None),
        ):
            with pytest.raises(RequestRefused) as refused:
                await service.tokens.create("wider", scopes, repos, lifetime, limited)
            assert refused.value.code is Code.INSUFFICIENT_SCOPE
        assert len(await service.tokens.list_manageable(None)) == 2


@asynchronous
async def test_an_unlimited_administrator_can_grant_everything(tmp_path: Path):
    async with open_token_service(tmp_path) as service:
        admin, _ = await service.tokens.create("admin", {Scope.ADMIN})
        created, _ = await service.tokens.create("all", frozenset(Scope), (), None, admin)
        assert created.scopes == frozenset(Scope)


OLD_SECRET = b"my_" + b"0" * 43 + b"1N5DL6"


def test_a_secret_is_a_prefix_43_random_characters_and_a_6_character_checksum():
    secret = generate_secret()
    assert secret.startswith("my_")
    assert len(secret) == 3 + 43 + 6
    assert set(secret[3:]) <= set(string.ascii_letters + string.digits)


def test_43_characters_hold_256_bits_and_6_hold_a_checksum():
    assert 62**42 < 2**256 < 62**43
    assert 2**32 < 62**6


def test_every_secret_is_well_formed_and_unique():
    secrets = {generate_secret() for _ in range(1000)}
    assert len(secrets) == 1000
    assert all(is_well_formed(secret.encode()) for secret in secrets)


def test_an_old_secret_stays_well_formed():
    assert is_well_formed(OLD_SECRET)


@given(st.integers(3, 51), st.sampled_from(ALPHABET))
def test_one_mistyped_character_is_detected(index: int, typed: str):
    secret = generate_secret()
    mistyped = secret[:index] + typed + secret[index + 1 :]
    assert is_well_formed(mistyped.encode()) == (mistyped == secret)


@given(st.integers(3, 50))
def test_two_swapped_characters_are_detected(index: int):
    secret = generate_secret()
    swapped = secret[:index] + secret[index + 1] + secret[index] + secret[index + 2 :]
    assert is_well_formed(swapped.encode()) == (swapped == secret)


@pytest.mark.parametrize("change", [b"%b\n", b" %b", b"%bA", b"MY_%b", b"\xff%b", b"%b%b"])
def test_a_secret_with_extra_characters_is_not_well_formed(change: bytes):
    secret = generate_secret().encode()
    assert not is_well_formed(change.replace(b"%b", secret))


@given(st.binary(max_size=60))
def test_random_bytes_are_not_well_formed(junk: bytes):
    assert not is_well_formed(junk)


def test_the_digest_covers_the_whole_secret():
    assert hash_secret(b"my_secret") == hashlib.sha256(b"my_secret").digest()


def test_base62_has_a_fixed_width():
    assert encode_base62(0, 6) == "000000"
    assert encode_base62(61, 6) == "00000z"
    assert encode_base62(62, 6) == "000010"
    assert len(encode_base62(2**256 - 1, 43)) == 43
