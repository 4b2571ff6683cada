"""Keeps everything. What is to be written is a value; a commit writes all of it or nothing, and survives a crash."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.domain.statuses import Status
from mergeyard.domain.tokens import Token


class StoreTrouble(Exception):
    """Nothing was written: the disk is full, the database gone."""


class Outrun(Exception):
    """Somebody else wrote this queue meanwhile: load it and decide again. Nothing was written."""


class Taken(Exception):
    """A queue for this branch is there already. Nothing was written."""


class Fact(Struct, frozen=True):
    """One piece of a queue. Without a body it is there no more."""

    shelf: str
    key: str
    body: bytes | None


class StayRow(Struct, frozen=True, kw_only=True):
    """One stay of a pull request, live or ended; the body is all of it."""

    ticket: Ticket
    number: PrNumber
    branch: str
    state: PrState
    submitted_at: Instant
    live: bool
    body: bytes


class RunRow(Struct, frozen=True, kw_only=True):
    """One run, from its plan on. It stays after the queue has let go of it (`live` no more)."""

    id: RunId
    status: RunStatus
    started_at: Instant | None
    decided_at: Instant | None
    live: bool
    body: bytes


class EntryRow(Struct, frozen=True, kw_only=True):
    """One entry of the journal, with what lists and figures ask for beside the whole of it."""

    queue: QueueId | None
    at: Instant
    kind: str
    """The tag of the entry's struct."""
    actor: str
    token: str | None
    ticket: Ticket | None = None
    number: PrNumber | None = None
    source: str | None = None
    to: str | None = None
    reason: str | None = None
    bisecting: bool = False
    """It happened beside the line, in a bisection."""
    in_state: int | None = None
    """Milliseconds that it had been in the state it left."""
    in_queue: int | None = None
    """Milliseconds since it was admitted."""
    first_run: bool = False
    """It was tested for the first time in this stay."""
    body: bytes


class CreateQueue(Struct, frozen=True):
    id: QueueId
    key: QueueKey
    at: Instant


class DeleteQueue(Struct, frozen=True):
    """It is found no more; its stays, runs and entries remain under its id."""

    id: QueueId
    at: Instant


class SaveTurn(Struct, frozen=True, kw_only=True):
    """What one turn changed. Refused (`Outrun`) when the queue's version is not `version - 1`."""

    queue: QueueId
    version: int
    facts: tuple[Fact, ...] = ()
    stays: tuple[StayRow, ...] = ()
    runs: tuple[RunRow, ...] = ()


class AppendEntries(Struct, frozen=True):
    entries: tuple[EntryRow, ...]


class KeepTargets(Struct, frozen=True):
    queue: QueueId
    number: PrNumber
    head: Sha
    body: bytes
    at: Instant


class KeepStatus(Struct, frozen=True):
    repo: Repo
    sha: Sha
    status: Status


class Answer(Struct, frozen=True):
    """What a request with an idempotency key was answered."""

    token: str
    key: str
    digest: bytes
    """Of path and body."""
    body: bytes
    at: Instant


class KeepAnswer(Struct, frozen=True):
    answer: Answer


class ForgetAnswers(Struct, frozen=True):
    before: Instant


class SaveToken(Struct, frozen=True):
    """New, or as it is now."""

    token: Token


Write = (
    CreateQueue
    | DeleteQueue
    | SaveTurn
    | AppendEntries
    | KeepTargets
    | KeepStatus
    | KeepAnswer
    | ForgetAnswers
    | SaveToken
)


class StoredQueue(Struct, frozen=True):
    id: QueueId
    key: QueueKey
    version: int


class LoadedQueue(Struct, frozen=True, kw_only=True):
    """All that is live of a queue, as of one version."""

    version: int
    facts: tuple[Fact, ...]
    stays: tuple[bytes, ...]
    runs: tuple[bytes, ...]


class Page(Struct, frozen=True, kw_only=True):
    """Which stays to list, newest submission first."""

    take: int
    before: Ticket | None = None
    state: PrState | None = None
    since: Instant | None = None
    until: Instant | None = None


class Figure(Struct, frozen=True):
    """An entry of the journal about a pull request, as figures need it."""

    queue: QueueId
    source: str | None
    to: str
    bisecting: bool
    in_state: int | None
    in_queue: int | None
    first_run: bool


class StoredEntry(Struct, frozen=True):
    seq: int
    queue: QueueId | None
    token: str | None
    body: bytes


class Store(Protocol):
    async def open(self) -> None:
        """Bring the database to the present form, or raise `StoreTrouble` with advice."""
        ...

    async def close(self) -> None: ...

    async def commit(self, *writes: Write) -> None:
        """All of it, durably, or nothing. Commits that wait for each other share one write to the disk."""
        ...

    async def check(self) -> None:
        """Raises `StoreTrouble` when it cannot be written to."""
        ...

    async def queues(self) -> Sequence[StoredQueue]: ...

    async def load(self, queue: QueueId) -> LoadedQueue:
        """Raises `LookupError` when there is no such queue, or no more."""
        ...

    async def token(self, digest: bytes) -> Token | None: ...

    async def tokens(self) -> Sequence[Token]: ...

    async def answer(self, token: str, key: str) -> Answer | None: ...

    async def targets(self, queue: QueueId, number: PrNumber, head: Sha) -> bytes | None: ...

    async def any_targets(self, repo: Repo) -> bool: ...

    async def statuses(self, repo: Repo, sha: Sha) -> Sequence[Status]:
        """One per context, the latest, in the order of their contexts."""
        ...

    async def last_stay(self, queue: QueueId, number: PrNumber) -> bytes | None: ...

    async def last_stay_of_branch(self, queue: QueueId, branch: str) -> bytes | None:
        """The live one, else the latest."""
        ...

    async def stay(self, queue: QueueId, ticket: Ticket) -> bytes | None: ...

    async def stays(self, queue: QueueId, page: Page) -> Sequence[bytes]: ...

    async def run(self, queue: QueueId, run: RunId) -> bytes | None: ...

    async def decided_runs(self, queue: QueueId, since: Instant, until: Instant) -> Sequence[bytes]:
        """Runs that were started and decided in this time, the latest first."""
        ...

    async def timeline(self, queue: QueueId, ticket: Ticket) -> Sequence[StoredEntry]:
        """Everything that happened to one stay, newest first."""
        ...

    async def figures(self, queues: Sequence[QueueId], since: Instant) -> Sequence[Figure]:
        """What happened to pull requests of these queues since then."""
        ...

    async def entries(self, after: int, take: int) -> Sequence[StoredEntry]:
        """The journal behind a place in it, oldest first."""
        ...
