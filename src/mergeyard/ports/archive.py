"""A database as tables of plain rows, the same for every kind of store: used to export, import and check it.

The commands that use it do nothing else meanwhile, so calls can block. Rows are streamed: a database need not fit into
memory.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.ids import QueueId
from mergeyard.ports.store import LoadedQueue, StoredQueue

SCHEMA_VERSION = 1
"""The number of the last migration of both stores. The tables below describe the schema after it."""

Cell = None | int | bool | str | bytes
Row = tuple[Cell, ...]
"""The values in the order of the table's columns."""


class ColumnType(Enum):
    TEXT = auto()
    NULLABLE_TEXT = auto()
    NUMBER = auto()
    NULLABLE_NUMBER = auto()
    FLAG = auto()
    BYTES = auto()


TEXT, NULLABLE_TEXT, NUMBER, NULLABLE_NUMBER, FLAG, BYTES = ColumnType


class Table(Struct, frozen=True):
    name: str
    key: tuple[str, ...]
    """The columns that its rows are ordered by, texts by their bytes."""
    columns: Mapping[str, ColumnType]


TABLES = (
    Table(
        "queues",
        ("id",),
        {
            "id": TEXT,
            "host": TEXT,
            "owner": TEXT,
            "name": TEXT,
            "target_branch": TEXT,
            "version": NUMBER,
            "created_at": NUMBER,
            "deleted_at": NULLABLE_NUMBER,
        },
    ),
    Table("queue_parts", ("queue", "kind", "key"), {"queue": TEXT, "kind": TEXT, "key": TEXT, "body": BYTES}),
    Table(
        "submissions",
        ("queue", "submission_id"),
        {
            "queue": TEXT,
            "submission_id": NUMBER,
            "number": NUMBER,
            "head_branch": TEXT,
            "state": TEXT,
            "submitted_at": NUMBER,
            "ended_at": NULLABLE_NUMBER,
            "live": FLAG,
            "body": BYTES,
        },
    ),
    Table(
        "runs",
        ("row_id",),
        {
            "row_id": NUMBER,
            "queue": TEXT,
            "id": TEXT,
            "status": TEXT,
            "tested_count": NUMBER,
            "tip": NULLABLE_TEXT,
            "started_at": NULLABLE_NUMBER,
            "decided_at": NULLABLE_NUMBER,
            "ended_at": NULLABLE_NUMBER,
            "live": FLAG,
            "body": BYTES,
        },
    ),
    Table("deleted_runs", ("queue", "id"), {"queue": TEXT, "id": TEXT}),
    Table(
        "journal",
        ("seq",),
        {
            "seq": NUMBER,
            "queue": NULLABLE_TEXT,
            "at": NUMBER,
            "kind": TEXT,
            "actor": TEXT,
            "token": NULLABLE_TEXT,
            "submission_id": NULLABLE_NUMBER,
            "number": NULLABLE_NUMBER,
            "from_state": NULLABLE_TEXT,
            "to_state": NULLABLE_TEXT,
            "reason": NULLABLE_TEXT,
            "bisecting": FLAG,
            "ms_in_state": NULLABLE_NUMBER,
            "ms_in_queue": NULLABLE_NUMBER,
            "first_run": FLAG,
            "body": BYTES,
        },
    ),
    Table(
        "impacted_targets",
        ("queue", "number", "head"),
        {"queue": TEXT, "number": NUMBER, "head": TEXT, "body": BYTES, "at": NUMBER, "token": NULLABLE_TEXT},
    ),
    Table(
        "statuses",
        ("host", "owner", "name", "sha", "context"),
        {
            "host": TEXT,
            "owner": TEXT,
            "name": TEXT,
            "sha": TEXT,
            "context": TEXT,
            "state": TEXT,
            "at": NUMBER,
            "url": TEXT,
            "description": TEXT,
            "suite": TEXT,
            "unclaimed_by": NULLABLE_TEXT,
        },
    ),
    Table(
        "responses",
        ("token", "key"),
        {"token": TEXT, "key": TEXT, "digest": BYTES, "body": BYTES, "at": NUMBER},
    ),
    Table(
        "tokens",
        ("id",),
        {
            "id": TEXT,
            "name": TEXT,
            "digest": BYTES,
            "scopes": TEXT,
            "repos": TEXT,
            "created_at": NUMBER,
            "expires_at": NULLABLE_NUMBER,
            "revoked_at": NULLABLE_NUMBER,
            "last_used_at": NULLABLE_NUMBER,
            "last_used_from": TEXT,
        },
    ),
    Table("consumers", ("name",), {"name": TEXT}),
    Table(
        "cursors",
        ("consumer", "queue"),
        {"consumer": TEXT, "queue": TEXT, "seq": NUMBER, "stalled_since": NULLABLE_NUMBER},
    ),
    Table("thread_states", ("queue", "number"), {"queue": TEXT, "number": NUMBER, "body": BYTES}),
    Table("webhooks", ("id",), {"id": TEXT, "version": NUMBER, "body": BYTES}),
    Table("deliveries", ("row_id",), {"row_id": NUMBER, "webhook": TEXT, "event": TEXT, "body": BYTES}),
)
"""Tables that refer to a queue come after `queues`. Leases, heartbeats and sessions are not exported."""


class ArchiveError(Exception):
    """The rows contradict each other, for example two rows with the same key. Nothing was written."""


class ArchiveReader(Protocol):
    """A consistent snapshot of a database."""

    def rows(self, table: Table) -> AsyncIterator[Row]:
        """All rows, ordered by key."""
        ...

    async def find_problems(self) -> Sequence[str]:
        """Checks the tables, and describes each problem in one sentence."""
        ...

    async def queues(self) -> Sequence[StoredQueue]:
        """All live queues."""
        ...

    async def load(self, queue: QueueId) -> LoadedQueue: ...


class ArchiveWriter(ArchiveReader, Protocol):
    """One write transaction. Reads see what it has written."""

    async def find_blockers(self) -> Sequence[str]:
        """Why the database cannot be filled: what it contains, or which server uses it; a short phrase each."""
        ...

    async def put(self, table: Table, rows: Sequence[Row]) -> None:
        """Raises `ArchiveError` when the rows contradict each other."""
        ...

    async def finish(self) -> None:
        """Call after the last row: resets sequences and creates rows that are not exported, such as leases."""
        ...


class Archive(Protocol):
    @property
    def location(self) -> str:
        """Where the database is, without secrets, written so that a sentence can start with it."""
        ...

    async def schema_version(self) -> int:
        """The number of its last migration, 0 if there was none. Changes nothing."""
        ...

    async def migrate(self) -> None:
        """Brings the schema up to date, and creates the database if it does not exist."""
        ...

    def open_reader(self) -> AbstractAsyncContextManager[ArchiveReader]:
        """Requires the current schema. Writes nothing."""
        ...

    def open_writer(self) -> AbstractAsyncContextManager[ArchiveWriter]:
        """Requires the current schema. Commits at the end, or rolls back if an exception is raised."""
        ...
