"""Whoever reads the journal sees what they may see, however much there is of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import QueueCreated, TokenCreated
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.tokens import Scope, Token
from mergeyard.ports.store import AuditPage
from mergeyard.ports.writes import AppendEntries, CreateQueue
from mergeyard.service.auditing import AT_A_TIME, Auditing
from mergeyard.service.journaling import entry_about_queue, noted
from tests.support.asynchronous import asynchronous

APP = QueueKey(Repo("git.local", "acme", "app"), "main")
LIB = QueueKey(Repo("git.local", "acme", "lib"), "main")
EVERYTHING = AuditPage(take=50)


def a_reader(*repos: Repo) -> Token:
    scopes = frozenset({Scope.ADMIN})
    return Token(id="t1", name="ada", digest=b"", scopes=scopes, repos=frozenset(repos), created_at=Instant(0))


@asynccontextmanager
async def a_journal(folder: Path) -> AsyncGenerator[tuple[SqliteStore, Auditing]]:
    """Of two queues, and of a token."""
    store = SqliteStore(folder / "mergeyard.db")
    await store.open()
    for queue, key in ((QueueId("app"), APP), (QueueId("lib"), LIB)):
        created = entry_about_queue(queue, QueueCreated(at=Instant(1), actor="ada#t1"))
        await store.commit(CreateQueue(queue, key, Instant(1)), AppendEntries((created,)))
    await store.commit(noted(TokenCreated(at=Instant(2), actor="operator", id="t2", name="ci")))
    try:
        yield store, Auditing(store)
    finally:
        await store.close()


@asynchronous
async def test_an_entry_is_told_with_its_queue_and_with_the_token_that_it_was_done_with(tmp_path: Path):
    async with a_journal(tmp_path) as (_, auditing):
        (token, lib, app), more = await auditing.page(a_reader(), EVERYTHING)
        assert (token.key, token.token, more) == (None, None, None)
        assert token.record == TokenCreated(at=Instant(2), actor="operator", id="t2", name="ci")
        assert (lib.key, app.key, app.token) == (LIB, APP, "t1")


@asynchronous
async def test_whoever_is_limited_to_repositories_reads_of_nothing_else(tmp_path: Path):
    async with a_journal(tmp_path) as (_, auditing):
        limited = a_reader(APP.repo)
        (entry,), _ = await auditing.page(limited, EVERYTHING)
        assert entry.key == APP
        assert await auditing.page(limited, AuditPage(take=50, repos=(LIB.repo,))) == ([], None)
        assert await auditing.page(limited, AuditPage(take=50, kind="TokenCreated")) == ([], None)


@asynchronous
async def test_a_page_tells_where_the_next_one_begins_and_the_last_one_does_not(tmp_path: Path):
    async with a_journal(tmp_path) as (_, auditing):
        first, more = await auditing.page(a_reader(), AuditPage(take=2))
        assert (len(first), more) == (2, first[-1].seq)
        last, none = await auditing.page(a_reader(), AuditPage(take=2, before=more))
        assert ([entry.key for entry in last], none) == ([APP], None)
        assert (await auditing.page(a_reader(), AuditPage(take=3)))[1] is None


@asynchronous
async def test_all_of_it_comes_a_few_at_a_time(tmp_path: Path):
    async with a_journal(tmp_path) as (store, auditing):
        many = [entry_about_queue(QueueId("app"), QueueCreated(at=Instant(3), actor="x"))] * (2 * AT_A_TIME)
        await store.commit(AppendEntries(tuple(many)))
        sizes = [len(some) async for some in auditing.all(a_reader(), EVERYTHING)]
        assert sizes == [AT_A_TIME, AT_A_TIME, 3]
