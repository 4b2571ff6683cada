"""Reading the audit log: which entries a token can see, pages, and export in chunks."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.access import Scope, Token
from mergeyard.domain.ids import QueueId, QueueKey, Repo
from mergeyard.domain.journal import QueueChanged, QueueCreated, TokenCreated
from mergeyard.domain.queue import Decision, Queue, TargetBranch
from mergeyard.domain.states import QueueState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import AuditQuery
from mergeyard.ports.writes import AppendEntries, CreateQueue
from mergeyard.service.audit_log import (
    EXPORT_CHUNK_ENTRIES,
    MAX_LINES,
    MAX_LINES_PER_ADDRESS,
    WINDOW_MS,
    AuditLogReader,
    RefusalKind,
    RefusalLog,
    audit_entry,
    build_row,
    log_decision,
)
from mergeyard.service.background import Background
from mergeyard.service.metrics import REGISTRY
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock

APP = QueueKey(Repo("git.local", "acme", "app"), "main")
LIB = QueueKey(Repo("git.local", "acme", "lib"), "main")
NO_FILTER = AuditQuery(take=50)


def a_reader(*repos: Repo) -> Token:
    scopes = frozenset({Scope.ADMIN})
    return Token(id="t1", name="ada", digest=b"", scopes=scopes, repos=frozenset(repos), created_at=Instant(0))


@asynccontextmanager
async def a_journal(folder: Path) -> AsyncGenerator[tuple[SqliteStore, AuditLogReader]]:
    """A journal with entries about two queues and one token."""
    store = SqliteStore(folder / "mergeyard.db")
    await store.open()
    for queue, key in ((QueueId("app"), APP), (QueueId("lib"), LIB)):
        created = build_row(queue, QueueCreated(at=Instant(1), actor="ada#t1"))
        await store.commit(CreateQueue(queue, key, Instant(1)), AppendEntries((created,)))
    await store.commit(audit_entry(TokenCreated(at=Instant(2), actor="operator", id="t2", name="ci")))
    try:
        yield store, AuditLogReader(store)
    finally:
        await store.close()


@asynchronous
async def test_an_entry_has_its_queue_and_the_token_that_was_used(tmp_path: Path):
    async with a_journal(tmp_path) as (_, reader):
        (token, lib, app), more = await reader.read_page(a_reader(), NO_FILTER)
        assert (token.key, token.token_id, more) == (None, None, None)
        assert token.entry == TokenCreated(at=Instant(2), actor="operator", id="t2", name="ci")
        assert (lib.key, app.key, app.token_id) == (LIB, APP, "t1")


@asynchronous
async def test_a_token_limited_to_repositories_reads_only_their_entries(tmp_path: Path):
    async with a_journal(tmp_path) as (_, reader):
        limited = a_reader(APP.repo)
        (entry,), _ = await reader.read_page(limited, NO_FILTER)
        assert entry.key == APP
        assert await reader.read_page(limited, AuditQuery(take=50, repos=(LIB.repo,))) == ([], None)
        assert await reader.read_page(limited, AuditQuery(take=50, kind="TokenCreated")) == ([], None)


@asynchronous
async def test_every_page_but_the_last_has_a_cursor_for_the_next(tmp_path: Path):
    async with a_journal(tmp_path) as (_, reader):
        first, more = await reader.read_page(a_reader(), AuditQuery(take=2))
        assert (len(first), more) == (2, first[-1].seq)
        last, none = await reader.read_page(a_reader(), AuditQuery(take=2, before=more))
        assert ([entry.key for entry in last], none) == ([APP], None)
        assert (await reader.read_page(a_reader(), AuditQuery(take=3)))[1] is None


@asynchronous
async def test_an_export_is_read_in_chunks(tmp_path: Path):
    async with a_journal(tmp_path) as (store, reader):
        many = [build_row(QueueId("app"), QueueCreated(at=Instant(3), actor="x"))] * (2 * EXPORT_CHUNK_ENTRIES)
        await store.commit(AppendEntries(tuple(many)))
        sizes = [len(some) async for some in reader.iterate_chunks(a_reader(), NO_FILTER)]
        assert sizes == [EXPORT_CHUNK_ENTRIES, EXPORT_CHUNK_ENTRIES, 3]


REJECTED = RefusalKind.TOKEN_REJECTED


class RefusalLogFixture:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.background = Background(self.clock)
        self.refusals = RefusalLog(self.clock, self.background)

    def record(self, times: int, address: Callable[[int], str] = lambda _: "192.0.2.7") -> None:
        for number in range(times):
            self.refusals.record(REJECTED, address(number), path="/v1/getQueue")

    def let_a_window_pass(self) -> None:
        self.clock.move_to(Instant(self.clock.now() + WINDOW_MS))


def counted() -> float:
    return REGISTRY.get_sample_value("mergeyard_refused_requests_total", {"kind": REJECTED}) or 0.0


def suppressed(lines: list[Any]) -> dict[str, int]:
    return {line["client"]: line["count"] for line in lines if line["event"] == "refusals_suppressed"}


def test_another_problem_of_a_paused_queue_is_no_change_of_its_settings():
    paused, queue = QueueState.PAUSED, Queue(id=QueueId("app"), target_branch=TargetBranch(name="main"))
    entry = QueueChanged(at=Instant(1), source=paused, to=paused, reason=Reason.AUDIT_MISMATCH, detail="two trees")
    with capture_logs() as lines:
        log_decision(APP, Decision(queue=queue, journal=(entry,), refusals={}))
    (line,) = lines
    assert (line["event"], line["reason"], line["detail"]) == ("queue_problem_found", "audit_mismatch", "two trees")
    assert (line["actor"], line["state"]) == ("mergeyard", "PAUSED")


@asynchronous
async def test_a_refusal_names_the_token_where_it_is_known():
    token = Token(id="t1", name="ci", digest=b"", created_at=Instant(0))
    with capture_logs() as lines:
        RefusalLogFixture().refusals.record(
            RefusalKind.SCOPE_MISSING, "192.0.2.7", token, path="/v1/createQueue", request_id="r1"
        )
    assert lines == [
        {
            "event": "scope_missing", "log_level": "warning", "client": "192.0.2.7", "token_id": "t1",
            "token_name": "ci", "path": "/v1/createQueue", "request_id": "r1",
        }
    ]  # fmt: skip


@asynchronous
async def test_an_address_gets_a_few_lines_a_minute_and_the_rest_is_counted_and_reported():
    fixture, before = RefusalLogFixture(), counted()
    with capture_logs() as lines:
        fixture.record(MAX_LINES_PER_ADDRESS + 30)
        assert len(lines) == MAX_LINES_PER_ADDRESS
        await fixture.background.close()
        fixture.let_a_window_pass()
        fixture.record(1)
    assert counted() - before == MAX_LINES_PER_ADDRESS + 31
    assert suppressed(lines) == {"192.0.2.7": 30}
    assert [line["event"] for line in lines[MAX_LINES_PER_ADDRESS:]] == ["refusals_suppressed", "token_rejected"]


@asynchronous
async def test_what_was_suppressed_is_reported_without_another_refusal():
    fixture = RefusalLogFixture()
    with capture_logs() as lines:
        slept = fixture.clock.next_sleep()
        fixture.record(MAX_LINES_PER_ADDRESS + 1)
        async with asyncio.timeout(5):
            await slept
        fixture.let_a_window_pass()
        (task,) = fixture.background._tasks  # pyright: ignore[reportPrivateUsage]
        await task
    assert suppressed(lines) == {"192.0.2.7": 1}


@asynchronous
async def test_many_addresses_together_get_a_limited_number_of_lines():
    fixture = RefusalLogFixture()
    with capture_logs() as lines:
        fixture.record(3 * MAX_LINES, address=lambda number: f"2001:db8::{number:x}")
        assert len(lines) == MAX_LINES
        fixture.let_a_window_pass()
        fixture.record(1)
        await fixture.background.close()
    assert suppressed(lines) == {"others": 2 * MAX_LINES}


@asynchronous
async def test_one_address_does_not_silence_another():
    fixture = RefusalLogFixture()
    with capture_logs() as lines:
        fixture.record(50)
        fixture.record(1, address=lambda _: "192.0.2.8")
        await fixture.background.close()
    assert lines[-1]["client"] == "192.0.2.8"
