"""The audit log is read newest first, page by page, with filters."""

from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import AuditedEntry, AuditQuery, Store
from mergeyard.ports.writes import AppendEntries, DeleteQueue
from tests.contract.store.builders import MAIN, NEXT, OTHER, QUEUE, REPO, a_queue, an_entry, opened
from tests.support.asynchronous import asynchronous

LIB = QueueKey(Repo("git.local", "acme", "lib"), "main")


async def fill(store: Store) -> None:
    await store.commit(a_queue(), a_queue(OTHER, key=LIB))
    entries = (
        an_entry(
            "token made", queue=None, submission_id=None, number=None, kind="TokenCreated", actor="operator", at=10
        ),
        an_entry("created", submission_id=None, number=None, kind="QueueCreated", at=20, token="t1"),
        an_entry("five", number=5, at=30),
        an_entry("six", number=6, actor="bob", at=40),
        an_entry("lib five", queue=OTHER, number=5, at=50),
    )
    await store.commit(AppendEntries(entries))


async def audited(store: Store, page: AuditQuery) -> list[bytes]:
    return [entry.body for entry in await store.audit_entries(page)]


@asynchronous
async def test_the_audit_log_is_read_newest_first_with_queue_names(store: Store):
    async with opened(store):
        await fill(store)
        found = await store.audit_entries(AuditQuery(take=9))
        seqs = [entry.seq for entry in found]
        assert seqs == sorted(seqs, reverse=True)
        assert [(entry.key, entry.token, entry.body) for entry in found] == [
            (LIB, None, b"lib five"),
            (MAIN, None, b"six"),
            (MAIN, None, b"five"),
            (MAIN, "t1", b"created"),
            (None, None, b"token made"),
        ]


@asynchronous
async def test_a_page_continues_after_the_previous_one(store: Store):
    async with opened(store):
        await fill(store)
        first = await store.audit_entries(AuditQuery(take=2))
        second = await store.audit_entries(AuditQuery(take=2, before=first[-1].seq))
        third = await store.audit_entries(AuditQuery(take=2, before=second[-1].seq))
        assert (*first, *second, *third) == await store.audit_entries(AuditQuery(take=9))
        assert await store.audit_entries(AuditQuery(take=2, before=third[-1].seq)) == ()


@asynchronous
async def test_the_audit_log_is_filtered_by_repositories_and_branch(store: Store):
    async with opened(store):
        await fill(store)
        assert await audited(store, AuditQuery(take=9, repos=(LIB.repo,))) == [b"lib five"]
        assert len(await audited(store, AuditQuery(take=9, repos=(LIB.repo, REPO)))) == 4
        assert await audited(store, AuditQuery(take=9, repos=())) == []
        assert await audited(store, AuditQuery(take=9, repos=(Repo("git.local", "acme", "li"),))) == []
        assert len(await audited(store, AuditQuery(take=9, branch="main"))) == 4
        assert await audited(store, AuditQuery(take=9, branch=NEXT.branch)) == []


@asynchronous
async def test_the_audit_log_is_filtered_by_pull_request_actor_or_kind(store: Store):
    async with opened(store):
        await fill(store)
        assert await audited(store, AuditQuery(take=9, number=PullRequestNumber(5))) == [b"lib five", b"five"]
        assert await audited(store, AuditQuery(take=9, number=PullRequestNumber(5), repos=(REPO,))) == [b"five"]
        assert await audited(store, AuditQuery(take=9, actor="bob")) == [b"six"]
        assert await audited(store, AuditQuery(take=9, actor="operator")) == [b"token made"]
        assert b"six" not in await audited(store, AuditQuery(take=9, without_actor="bob"))
        assert b"token made" in await audited(store, AuditQuery(take=9, without_actor="bob"))
        assert await audited(store, AuditQuery(take=9, kind="QueueCreated")) == [b"created"]


@asynchronous
async def test_the_audit_log_is_filtered_by_a_half_open_time_range(store: Store):
    async with opened(store):
        await fill(store)
        assert await audited(store, AuditQuery(take=9, since=Instant(20), until=Instant(40))) == [b"five", b"created"]
        assert await audited(store, AuditQuery(take=9, since=Instant(41))) == [b"lib five"]
        assert await audited(store, AuditQuery(take=9, until=Instant(11))) == [b"token made"]


@asynchronous
async def test_the_audit_log_contains_deleted_queues(store: Store):
    async with opened(store):
        await store.commit(a_queue(), AppendEntries((an_entry("created"),)))
        await store.commit(DeleteQueue(QUEUE, 0, Instant(2)))
        await store.commit(a_queue(OTHER), AppendEntries((an_entry("created again", queue=OTHER),)))
        found = await store.audit_entries(AuditQuery(take=9, repos=(REPO,), branch="main"))
        assert found == (
            AuditedEntry(found[0].seq, MAIN, None, b"created again"),
            AuditedEntry(found[1].seq, MAIN, None, b"created"),
        )


@asynchronous
async def test_the_audit_log_finds_names_with_any_character(store: Store):
    async with opened(store):
        strange = "\0 \1 '%s' é \U0001f9ea"
        key = QueueKey(Repo("git.local", strange, "app"), strange)
        await store.commit(a_queue(key=key), AppendEntries((an_entry("strange", actor=strange),)))
        (found,) = await store.audit_entries(AuditQuery(take=9, repos=(key.repo,), branch=strange, actor=strange))
        assert found.key == key
