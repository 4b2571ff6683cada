"""Keeps everything. A commit writes all that it is given or nothing, and survives a crash."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.sessions import Session
from mergeyard.domain.states import PrState, QueueState
from mergeyard.domain.statuses import Status
from mergeyard.domain.tokens import Token
from mergeyard.ports.writes import Answer, Fact, RecordKey, RecordKind, WebhookRow, Write

DELIVERIES_KEPT = 200
"""Of every webhook."""
HEADS_WITH_TARGETS = 5
"""Of one pull request: more would let a client fill the disk with uploads for old heads."""
MAX_UNCLAIMED_STATUSES = 10_000
"""Statuses of one token that are kept for commits which no run tests. CI may report before the run is stored."""


class StoreTrouble(Exception):
    """Nothing was written: the disk is full, the database gone."""


class Outrun(Exception):
    """Somebody else wrote this queue meanwhile: load it and decide again. Nothing was written."""


class Relieved(Exception):
    """Somebody else works for this repository now, or this replica was silent for too long. Nothing was written."""


class Answered(Exception):
    """A request with this key was answered already, perhaps by another replica. Nothing was written."""


class Taken(Exception):
    """A queue for this branch is there already. Nothing was written."""


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


class Changed(Struct, frozen=True):
    """A stay or a run as it is now; one that is not live has left the queue."""

    live: bool
    body: bytes


class Changes(Struct, frozen=True, kw_only=True):
    """All that was written to a queue after some version, up to this one."""

    version: int
    facts: tuple[Fact, ...]
    stays: tuple[Changed, ...]
    runs: tuple[Changed, ...]


class Page(Struct, frozen=True, kw_only=True):
    """Which stays to list, newest submission first."""

    take: int
    before: Ticket | None = None
    state: PrState | None = None
    since: Instant | None = None
    until: Instant | None = None


class StoredRun(Struct, frozen=True):
    """A decided run; the next chunk of a list begins behind its time and place."""

    decided_at: Instant
    place: int
    body: bytes


class ResultsPage(Struct, frozen=True):
    """A page of test results: one result per decided run and pull request that it tests, the latest run first."""

    total: int
    """How many results there are altogether."""
    skipped: int
    """How many results of the first run belong to the page before."""
    runs: tuple[bytes, ...]


class Figure(Struct, frozen=True):
    """An entry of the journal about a pull request, as figures need it."""

    queue: QueueId
    at: Instant
    source: str | None
    to: str
    reason: str
    bisecting: bool
    in_state: int | None
    in_queue: int | None
    first_run: bool


class StoredEntry(Struct, frozen=True):
    seq: int
    queue: QueueId | None
    token: str | None
    body: bytes


class AuditPage(Struct, frozen=True, kw_only=True):
    """Which entries of the whole journal to list, newest first; what is None is not asked for."""

    take: int
    before: int | None = None
    repos: tuple[Repo, ...] | None = None
    """None: of all repositories, and also what is about none of them."""
    branch: str | None = None
    number: PrNumber | None = None
    actor: str | None = None
    kind: str | None = None
    since: Instant | None = None
    until: Instant | None = None


class AuditedEntry(Struct, frozen=True):
    seq: int
    key: QueueKey | None
    """Of a queue that may be deleted by now; None for what is about no queue."""
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

    async def changes(self, queue: QueueId, after: int) -> Changes | None:
        """None when that is so long ago that only loading the whole of it helps, or when there is no such queue."""
        ...

    async def token(self, digest: bytes) -> Token | None: ...

    async def token_of_id(self, token: str) -> Token | None: ...

    async def tokens(self) -> Sequence[Token]: ...

    async def session(self, digest: bytes) -> Session | None: ...

    async def answer(self, token: str, key: str) -> Answer | None: ...

    async def targets(self, queue: QueueId, number: PrNumber, head: Sha) -> bytes | None: ...

    async def has_targets(self, queue: QueueId, number: PrNumber, head: Sha) -> bool:
        """Without reading them, for they may be long."""
        ...

    async def any_targets(self, repo: Repo) -> bool: ...

    async def targets_size(self, token: str) -> int:
        """How many bytes of targets are kept that this token uploaded."""
        ...

    async def queues_ever(self, repo: Repo) -> Sequence[QueueId]:
        """All that it ever had, deleted ones among them."""
        ...

    async def statuses(self, repo: Repo, sha: Sha) -> Sequence[Status]:
        """One per context, the latest, in the order of their contexts."""
        ...

    async def last_stay(self, queue: QueueId, number: PrNumber) -> bytes | None: ...

    async def last_stay_of_branch(self, queue: QueueId, branch: str) -> bytes | None:
        """The live one, else the latest."""
        ...

    async def stay(self, queue: QueueId, ticket: Ticket) -> bytes | None: ...

    async def stays_of(self, queue: QueueId, number: PrNumber, take: int) -> Sequence[bytes]:
        """The last stays of one pull request, the latest first."""
        ...

    async def stays(self, queue: QueueId, page: Page) -> Sequence[bytes]: ...

    async def concluded_stays(self, queue: QueueId, take: int) -> Sequence[bytes]:
        """Those that ended last, the latest first, however long ago they were submitted."""
        ...

    async def run(self, queue: QueueId, run: RunId) -> bytes | None: ...

    async def had_run(self, queue: QueueId, run: RunId) -> bool:
        """Whether the queue has this run, or had it and it passed before its record was deleted."""
        ...

    async def queue_of_run(self, run: RunId) -> StoredQueue | None:
        """The live queue that a run belongs to."""
        ...

    async def decided_runs(
        self, queue: QueueId, since: Instant, until: Instant, take: int, before: int = 0
    ) -> Sequence[StoredRun]:
        """Runs that were started and decided in this time, the latest first. For the next chunk, `until` and `before`
        are the time and the place of the last run of this one."""
        ...

    async def results(self, queue: QueueId, since: Instant, until: Instant, offset: int, take: int) -> ResultsPage:
        """A page of the results of runs that were started and decided in this time."""
        ...

    async def timeline(self, queue: QueueId, ticket: Ticket, take: int) -> Sequence[StoredEntry]:
        """What happened last to one stay, newest first."""
        ...

    async def figures(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> Sequence[Figure]:
        """What happened to pull requests of these queues in this time, oldest first."""
        ...

    async def last_change(self, queue: QueueId, to: QueueState) -> bytes | None:
        """The entry by which the queue last came into this state out of another one."""
        ...

    async def audit(self, page: AuditPage) -> Sequence[AuditedEntry]: ...

    async def entries(self, queue: QueueId, after: int, take: int) -> Sequence[StoredEntry]:
        """The journal of a queue behind a place in it, oldest first. What is smaller was visible earlier."""
        ...

    async def cursor(self, teller: str, queue: QueueId) -> int:
        """How far in the journal of a queue it told of it, 0 when not at all."""
        ...

    async def stuck_since(self, teller: str, queue: QueueId) -> Instant | None:
        """Since when it has been trying to tell of the entry behind its cursor."""
        ...

    async def behind(self, teller: str) -> Sequence[StoredQueue]:
        """The queues, deleted ones among them, whose journal goes on behind its cursor."""
        ...

    async def expired(self, kind: RecordKind, before: Instant, take: int) -> Sequence[RecordKey]:
        """The keys of records to be deleted with `DeleteExpired`, the oldest first: submissions and runs that left
        their queue before, entries of the journal that every consumer has read and that are about no live submission,
        targets of pull requests that are in no queue, and statuses of commits that no run is known to test."""
        ...

    async def conversation(self, queue: QueueId, number: PrNumber) -> bytes | None: ...

    async def webhooks(self) -> Sequence[WebhookRow]: ...

    async def deliveries(self, webhook: str, take: int) -> Sequence[bytes]:
        """The last attempts to send something there, newest first."""
        ...

    async def delivery(self, webhook: str, event: str) -> bytes | None:
        """The last attempt to send this event there, if it is known still."""
        ...
