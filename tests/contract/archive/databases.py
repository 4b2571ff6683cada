"""Databases of every kind, accessible as stores, as archives and by SQL."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from mergeyard.adapters.store_postgres.archive import PostgresArchive
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.adapters.store_sqlite.archive import SqliteArchive
from mergeyard.adapters.store_sqlite.connection import connect
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.access import Scope
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo, Sha
from mergeyard.domain.states import PullRequestState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.archive import Archive
from mergeyard.ports.store import Store
from mergeyard.ports.writes import (
    AppendEntries,
    DeleteExpired,
    DeleteQueue,
    MarkStalled,
    MoveCursor,
    QueuePart,
    RecordKind,
    SaveDelivery,
    SaveImpactedTargets,
    SaveResponse,
    SaveSession,
    SaveStatus,
    SaveThreadState,
    SaveToken,
    StartConsumer,
)
from tests.contract.store.builders import (
    HEAD,
    MAIN,
    NEXT,
    OTHER,
    QUEUE,
    REPO,
    a_decision,
    a_queue,
    a_response,
    a_run,
    a_session,
    a_status,
    a_submission,
    a_token,
    a_webhook,
    an_entry,
    opened,
)
from tests.support.postgres import execute, shared_server


class Database(Protocol):
    kind: str
    option: str
    """As a command-line option names it."""

    @property
    def archive(self) -> Archive: ...

    def store(self) -> Store: ...

    async def execute(self, statement: str) -> list[tuple[Any, ...]]: ...


class SqliteDatabase:
    kind = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.option = f"sqlite:///{path}"
        self.archive = SqliteArchive(path)

    def store(self) -> Store:
        return SqliteStore(self.path)

    async def execute(self, statement: str) -> list[tuple[Any, ...]]:
        connection = connect(self.path)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()


class PostgresDatabase:
    kind = "postgres"

    def __init__(self, url: str) -> None:
        self.option = url
        self.archive = PostgresArchive(url)

    def store(self) -> Store:
        return PostgresStore(self.option)

    async def execute(self, statement: str) -> list[tuple[Any, ...]]:
        return await execute(self.option, statement)


def sqlite(folder: Path) -> Database:
    return SqliteDatabase(folder / "data" / "mergeyard.db")


def postgres(_: Path) -> Database:
    return PostgresDatabase(shared_server().fresh_database())


MakeDatabase = Callable[[Path], Database]
KINDS: tuple[MakeDatabase, ...] = (sqlite, postgres)


HOSTILE = "\0 \1 \2 'single' \"double\" \\ \r\n\t $1 :name %s é \u2028 \U0001f9ea \uffff"
BYTES = bytes(range(256))
DELETED_QUEUE = QueueId("q0")
OTHER_REPO = Repo("git.local", HOSTILE, "other")


async def fill_database(store: Store) -> None:
    async with opened(store):
        await add_deleted_queue(store)
        await add_live_queues(store)
        await add_journal_and_records(store)
        await add_consumers_and_webhooks(store)
        await store.commit(SaveSession(a_session("ada", token="ada")))


async def add_deleted_queue(store: Store) -> None:
    await store.commit(a_queue(DELETED_QUEUE))
    await store.commit(
        a_decision(1, a_submission(1, state=PullRequestState.MERGED), a_run("r1", live=False), queue=DELETED_QUEUE)
    )
    await store.commit(DeleteQueue(DELETED_QUEUE, 1, Instant(2)))


async def add_live_queues(store: Store) -> None:
    await store.commit(a_queue(), a_queue(OTHER, key=NEXT), a_queue(QueueId("q3"), key=QueueKey(OTHER_REPO, HOSTILE)))
    await store.commit(a_decision(1, QueuePart("batch", "1", b"{}"), a_run("z"), a_run("a", started=3, decided=5)))
    await store.commit(a_decision(2, QueuePart("queue", HOSTILE, BYTES), QueuePart("batch", "1", None)))
    await store.commit(
        a_decision(
            3, a_submission(1, branch=HOSTILE, body=BYTES), a_submission(2, state=PullRequestState.FAILED), a_run("m")
        )
    )
    # Rows that are written again keep their row ids.
    await store.commit(
        a_decision(4, a_run("a", started=3, decided=5, live=False), a_run("z", body=BYTES), a_submission(3))
    )
    await store.commit(
        a_decision(
            1, QueuePart("queue", "", b""), a_submission(2**62), a_run("old", decided=5, live=False), queue=OTHER
        )
    )
    await store.commit(DeleteExpired(RecordKind.RUNS, ((OTHER, "old"),), Instant(9)))


async def add_journal_and_records(store: Store) -> None:
    await store.commit(
        AppendEntries((an_entry("one"), an_entry(HOSTILE, kind=HOSTILE, token="t1", bisecting=True, in_state=0)))
    )
    await store.commit(AppendEntries((an_entry("three", queue=None, submission_id=None, source=None, first_run=True),)))
    await store.commit(SaveImpactedTargets(QUEUE, PullRequestNumber(5), Sha(HEAD), BYTES, Instant(4)))
    await store.commit(SaveStatus(REPO, HEAD, a_status(HOSTILE, description=HOSTILE, suite=HOSTILE)))
    await store.commit(SaveStatus(OTHER_REPO, HEAD, a_status("unit")), SaveStatus(MAIN.repo, HEAD, a_status("\1")))
    await store.commit(SaveResponse(a_response(BYTES, key=HOSTILE), Instant(0)))
    await store.commit(SaveToken(a_token("ada")), SaveToken(a_token(HOSTILE, scopes=frozenset({Scope.READ}))))


async def add_consumers_and_webhooks(store: Store) -> None:
    await store.commit(StartConsumer(HOSTILE), MoveCursor(HOSTILE, OTHER, 7), MarkStalled("b", QUEUE, Instant(9)))
    await store.commit(
        SaveThreadState(QUEUE, PullRequestNumber(5), BYTES), SaveThreadState(DELETED_QUEUE, PullRequestNumber(5), b"")
    )
    await store.commit(a_webhook(HOSTILE, body=BYTES), a_webhook("w1"))
    await store.commit(SaveDelivery(HOSTILE, HOSTILE, BYTES), SaveDelivery("w1", "e1", b""))
