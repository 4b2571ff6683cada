"""Sees a database as tables of plain rows, the same whichever kind of database it is: to move it, and to check it.

Nothing else goes on meanwhile in the process that does it, so it may block. It need not fit into memory: rows come and
go a few at a time.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.ids import QueueId
from mergeyard.ports.store import LoadedQueue, StoredQueue

FORM = 5
"""The number of the migration, of every kind of database, that left the tables as they are described here."""

Cell = None | int | bool | str | bytes
Row = tuple[Cell, ...]
"""In the order of the table's columns."""


class Kind(Enum):
    TEXT = auto()
    MAYBE_TEXT = auto()
    NUMBER = auto()
    MAYBE_NUMBER = auto()
    FLAG = auto()
    BYTES = auto()


TEXT, MAYBE_TEXT, NUMBER, MAYBE_NUMBER, FLAG, BYTES = Kind


class Table(Struct, frozen=True):
    name: str
    key: tuple[str, ...]
    """By which its rows are ordered, texts by their bytes."""
    columns: Mapping[str, Kind]


TABLES = (
    Table(
        "queues",
        ("id",),
        {
            "id": TEXT,
            "host": TEXT,
            "owner": TEXT,
            "name": TEXT,
            "branch": TEXT,
            "version": NUMBER,
            "created_at": NUMBER,
            "deleted_at": MAYBE_NUMBER,
        },
    ),
    Table("facts", ("queue", "shelf", "key"), {"queue": TEXT, "shelf": TEXT, "key": TEXT, "body": BYTES}),
    Table(
        "stays",
        ("queue", "ticket"),
        {
            "queue": TEXT,
            "ticket": NUMBER,
            "number": NUMBER,
            "branch": TEXT,
            "state": TEXT,
            "submitted_at": NUMBER,
            "ended_at": MAYBE_NUMBER,
            "live": FLAG,
            "body": BYTES,
        },
    ),
    Table(
        "runs",
        ("place",),
        {
            "place": NUMBER,
            "queue": TEXT,
            "id": TEXT,
            "status": TEXT,
            "tested": NUMBER,
            "tip": MAYBE_TEXT,
            "started_at": MAYBE_NUMBER,
            "decided_at": MAYBE_NUMBER,
            "ended_at": MAYBE_NUMBER,
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
            "queue": MAYBE_TEXT,
            "at": NUMBER,
            "kind": TEXT,
            "actor": TEXT,
            "token": MAYBE_TEXT,
            "ticket": MAYBE_NUMBER,
            "number": MAYBE_NUMBER,
            "source": MAYBE_TEXT,
            "to_state": MAYBE_TEXT,
            "reason": MAYBE_TEXT,
            "bisecting": FLAG,
            "in_state": MAYBE_NUMBER,
            "in_queue": MAYBE_NUMBER,
            "first_run": FLAG,
            "body": BYTES,
        },
    ),
    Table(
        "targets",
        ("queue", "number", "head"),
        {"queue": TEXT, "number": NUMBER, "head": TEXT, "body": BYTES, "at": NUMBER, "token": MAYBE_TEXT},
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
            "unclaimed_by": MAYBE_TEXT,
        },
    ),
    Table(
        "answers",
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
            "expires_at": MAYBE_NUMBER,
            "revoked_at": MAYBE_NUMBER,
            "last_used_at": MAYBE_NUMBER,
            "last_used_from": TEXT,
        },
    ),
    Table("tellers", ("name",), {"name": TEXT}),
    Table(
        "cursors",
        ("teller", "queue"),
        {"teller": TEXT, "queue": TEXT, "seq": NUMBER, "stuck_since": MAYBE_NUMBER},
    ),
    Table("conversations", ("queue", "number"), {"queue": TEXT, "number": NUMBER, "body": BYTES}),
    Table("webhooks", ("id",), {"id": TEXT, "version": NUMBER, "body": BYTES}),
    Table("deliveries", ("place",), {"place": NUMBER, "webhook": TEXT, "event": TEXT, "body": BYTES}),
)
"""Whatever refers to a queue comes after the queues. Who works for what, and other signs of life, belong to none."""


class Unfit(Exception):
    """The rows contradict each other, such as two with one key. Nothing was written."""


class Reading(Protocol):
    """One moment of a database."""

    def rows(self, table: Table) -> AsyncIterator[Row]:
        """All of them, ordered by key."""
        ...

    async def faults(self) -> Sequence[str]:
        """What is wrong with the tables, a sentence each."""
        ...

    async def queues(self) -> Sequence[StoredQueue]:
        """All live ones."""
        ...

    async def load(self, queue: QueueId) -> LoadedQueue: ...


class Filling(Reading, Protocol):
    """One transaction of a database. What is read has been written already."""

    async def hindrances(self) -> Sequence[str]:
        """Why it cannot be filled: what it holds, or who works on it; a few words each."""
        ...

    async def put(self, table: Table, rows: Sequence[Row]) -> None:
        """Raises `Unfit` when they contradict each other."""
        ...

    async def settle(self) -> None:
        """After the last row: makes whatever a database has beside these tables agree with them."""
        ...


class Archive(Protocol):
    @property
    def place(self) -> str:
        """Where the database is, without secrets; a sentence can begin with it."""
        ...

    async def form(self) -> int:
        """The number of its last migration, 0 when there was none yet. Changes nothing."""
        ...

    async def migrate(self) -> None:
        """Brings it to the present form; makes it if it was not there."""
        ...

    def reading(self) -> AbstractAsyncContextManager[Reading]:
        """It must have the present form. Nothing is written."""
        ...

    def filling(self) -> AbstractAsyncContextManager[Filling]:
        """It must have the present form. All is kept at the end, or nothing when an exception leads out."""
        ...
