"""The store. A commit writes all of its writes or none, and survives a crash. Replicas share it with leases."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

from msgspec import Struct

from mergeyard.domain.access import Session, Token
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import Status
from mergeyard.domain.states import PullRequestState, QueueState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.writes import QueuePart, RecordKey, RecordKind, StoredResponse, WebhookRow, Write

MAX_DELIVERIES_PER_WEBHOOK = 200
"""Older deliveries are deleted."""
MAX_HEADS_WITH_IMPACTED_TARGETS = 5
"""Per pull request. Without a limit a client could fill the disk with uploads for old heads."""
MAX_UNCLAIMED_STATUSES = 10_000
"""Statuses kept per token for commits that no run tests. CI may report before the run is stored."""


class StoreUnavailable(Exception):
    """Nothing was written: the disk is full, or the database is unreachable."""


class VersionConflict(Exception):
    """Another process wrote this queue since it was loaded: load it and decide again. Nothing was written."""


class LeaseLost(Exception):
    """Another replica holds the lease of this repository, or this replica's registration expired.
    Nothing was written."""


class DuplicateRequest(Exception):
    """A request with this idempotency key has a response already, perhaps from another replica. Nothing was written."""


class AlreadyExists(Exception):
    """This branch already has a queue. Nothing was written."""


class StoredQueue(Struct, frozen=True):
    id: QueueId
    key: QueueKey
    version: int


class LoadedQueue(Struct, frozen=True, kw_only=True):
    """All live parts of a queue at one version."""

    version: int
    parts: tuple[QueuePart, ...]
    submissions: tuple[bytes, ...]
    runs: tuple[bytes, ...]


class ChangedRow(Struct, frozen=True):
    """The current body of a submission or run. If it is not live, it has left the queue."""

    live: bool
    body: bytes


class QueueChanges(Struct, frozen=True, kw_only=True):
    """All that was written to a queue after some version, up to this one."""

    version: int
    parts: tuple[QueuePart, ...]
    submissions: tuple[ChangedRow, ...]
    runs: tuple[ChangedRow, ...]


class SubmissionsQuery(Struct, frozen=True, kw_only=True):
    """Which submissions to list, newest first."""

    take: int
    before: SubmissionId | None = None
    state: PullRequestState | None = None
    since: Instant | None = None
    """Submitted at this time or later."""
    until: Instant | None = None
    """Submitted before this time."""
    concluded_since: Instant | None = None
    """Ended at this time or later."""


class EndedSubmission(Struct, frozen=True):
    """A submission that left its queue."""

    queue: QueueId
    ended_at: Instant
    submission_id: SubmissionId
    body: bytes


class EndedSubmissionsQuery(Struct, frozen=True, kw_only=True):
    """Which ended submissions to list, the last end first."""

    queues: Sequence[QueueId]
    take: int
    since: Instant
    until: Instant
    state: PullRequestState | None = None
    after: EndedSubmission | None = None
    """The last one of the previous page."""


class StoredRun(Struct, frozen=True):
    """A decided run. The next page of a list starts after its time and row id."""

    decided_at: Instant
    row_id: int
    body: bytes


class ResultsPage(Struct, frozen=True):
    """A page of test results: one per decided run and pull request that it tests, the latest run first."""

    total: int
    """The number of results on all pages."""
    skipped: int
    """How many results of the first run belong to the previous page."""
    runs: tuple[bytes, ...]


class TransitionRow(Struct, frozen=True):
    """A journal entry about a pull request, reduced to what metrics need."""

    queue: QueueId
    at: Instant
    source: str | None
    to: str
    reason: str
    bisecting: bool
    ms_in_state: int | None
    ms_in_queue: int | None
    first_run: bool


class StoredEntry(Struct, frozen=True):
    seq: int
    queue: QueueId | None
    token: str | None
    body: bytes


class AuditQuery(Struct, frozen=True, kw_only=True):
    """Which journal entries to list, newest first; None: no filter."""

    take: int
    before: int | None = None
    repos: tuple[Repo, ...] | None = None
    """None: all repositories, and entries that concern no repository."""
    branch: str | None = None
    number: PullRequestNumber | None = None
    actor: str | None = None
    without_actor: str | None = None
    """All actors but this one."""
    kind: str | None = None
    since: Instant | None = None
    until: Instant | None = None


class AuditedEntry(Struct, frozen=True):
    seq: int
    key: QueueKey | None
    """None for an entry that concerns no queue. The queue may have been deleted since."""
    token: str | None
    body: bytes


class Store(Protocol):
    async def open(self) -> None:
        """Migrates the database to the current schema, or raises `StoreUnavailable` with advice."""
        ...

    async def close(self) -> None: ...

    async def commit(self, *writes: Write) -> None:
        """Writes all or nothing, durably. Concurrent commits share one write to disk."""
        ...

    async def check(self) -> None:
        """Raises `StoreUnavailable` if the store is not writable."""
        ...

    async def queues(self) -> Sequence[StoredQueue]: ...

    async def load(self, queue: QueueId) -> LoadedQueue:
        """Raises `LookupError` if the queue does not exist or was deleted."""
        ...

    async def changes(self, queue: QueueId, after: int) -> QueueChanges | None:
        """None if the version is too old for a delta, or the queue does not exist: load the whole queue."""
        ...

    async def token(self, digest: bytes) -> Token | None: ...

    async def token_by_id(self, token: str) -> Token | None: ...

    async def tokens(self) -> Sequence[Token]: ...

    async def session(self, digest: bytes) -> Session | None: ...

    async def response(self, token: str, key: str) -> StoredResponse | None: ...

    async def impacted_targets(self, queue: QueueId, number: PullRequestNumber, head: Sha) -> bytes | None: ...

    async def has_impacted_targets(self, queue: QueueId, number: PullRequestNumber, head: Sha) -> bool:
        """Does not read them, because they can be long."""
        ...

    async def has_any_impacted_targets(self, repo: Repo) -> bool: ...

    async def impacted_targets_size(self, token: str) -> int:
        """How many bytes of impacted targets uploaded with this token are stored."""
        ...

    async def all_queue_ids(self, repo: Repo) -> Sequence[QueueId]:
        """All queues that the repository ever had, including deleted ones."""
        ...

    async def statuses(self, repo: Repo, sha: Sha) -> Sequence[Status]:
        """The latest of each context, ordered by context."""
        ...

    async def last_submission(self, queue: QueueId, number: PullRequestNumber) -> bytes | None: ...

    async def last_submission_of_branch(self, queue: QueueId, branch: str) -> bytes | None:
        """The live submission, otherwise the latest."""
        ...

    async def submission(self, queue: QueueId, submission_id: SubmissionId) -> bytes | None: ...

    async def submissions_of(self, queue: QueueId, number: PullRequestNumber, take: int) -> Sequence[bytes]:
        """The last submissions of one pull request, the latest first."""
        ...

    async def submissions(self, queue: QueueId, query: SubmissionsQuery) -> Sequence[bytes]: ...

    async def concluded_submissions(self, queue: QueueId, take: int) -> Sequence[bytes]:
        """The submissions that ended last, the latest first, whenever they were submitted."""
        ...

    async def ended_submissions(self, query: EndedSubmissionsQuery) -> Sequence[EndedSubmission]: ...

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
        """Runs that were started and decided in this time, the latest first. For the next page, pass the time and row
        id of the last run as `until` and `before`."""
        ...

    async def results(self, queue: QueueId, since: Instant, until: Instant, offset: int, take: int) -> ResultsPage:
        """A page of the results of runs that were started and decided in this time."""
        ...

    async def timeline(self, queue: QueueId, submission_id: SubmissionId, take: int) -> Sequence[StoredEntry]:
        """The last entries about one submission, newest first."""
        ...

    async def transitions(self, queues: Sequence[QueueId], since: Instant, until: Instant) -> Sequence[TransitionRow]:
        """The state changes of pull requests of these queues in this time, oldest first."""
        ...

    async def last_change(self, queue: QueueId, to: QueueState) -> bytes | None:
        """The entry with which the queue last entered this state."""
        ...

    async def last_state_entry(self, queue: QueueId) -> bytes | None:
        """The last entry about the state of the queue: a change, or another reason for the same state."""
        ...

    async def audit_entries(self, query: AuditQuery) -> Sequence[AuditedEntry]: ...

    async def entries(self, queue: QueueId, after: int, take: int) -> Sequence[StoredEntry]:
        """The journal of a queue after a position, oldest first. Entries become visible in the order of `seq`."""
        ...

    async def cursor(self, consumer: str, queue: QueueId) -> int:
        """The last entry of the queue's journal that the consumer has processed; 0: none."""
        ...

    async def stalled_since(self, consumer: str, queue: QueueId) -> Instant | None:
        """Since when the consumer has failed to process the entry after its cursor."""
        ...

    async def queues_with_unread_entries(self, consumer: str) -> Sequence[StoredQueue]:
        """The queues, including deleted ones, whose journal has entries after the consumer's cursor."""
        ...

    async def expired_keys(self, kind: RecordKind, before: Instant, take: int) -> Sequence[RecordKey]:
        """The keys of records to be deleted with `DeleteExpired`, the oldest first: submissions and runs that left
        their queue before, journal entries that every consumer has read and that concern no live submission,
        impacted targets of pull requests that are in no queue, and statuses of commits that no run is known to test."""
        ...

    async def thread_state(self, queue: QueueId, number: PullRequestNumber) -> bytes | None: ...

    async def webhooks(self) -> Sequence[WebhookRow]: ...

    async def deliveries(self, webhook: str, take: int) -> Sequence[bytes]:
        """The last delivery attempts, newest first."""
        ...

    async def delivery(self, webhook: str, event: str) -> bytes | None:
        """The last attempt to deliver this event, if it is still stored."""
        ...


class Lease(Struct, frozen=True):
    """The right of one replica to process a repository. The fencing number grows with every new holder, so that writes
    under an older one are refused."""

    repo: Repo
    fence: int


class LeaseStatus(Struct, frozen=True, kw_only=True):
    leases: tuple[Lease, ...]
    """The leases of the calling replica."""
    repository_count: int
    worker_count: int
    """How many replicas process repositories, including the caller."""


HintHandler = Callable[[str], None]


class SharedStore(Store, Protocol):
    async def find_queue(self, key: QueueKey) -> StoredQueue | None:
        """The live queue of a branch, with its current version."""
        ...

    async def changed_queues(self, known: Collection[tuple[QueueId, int]]) -> Sequence[StoredQueue]:
        """Of these queues, those whose version changed. Deleted ones are omitted."""
        ...

    async def queues_of_repo(self, repo: Repo) -> Sequence[StoredQueue]:
        """The live queues of a repository, with their current versions."""
        ...

    async def leased_queues(self, replica: str) -> Sequence[StoredQueue]:
        """The live queues of the repositories whose leases it holds."""
        ...

    async def register_worker(self, replica: str, ttl_ms: int) -> None:
        """Registers a worker for so many milliseconds of the store's clock."""
        ...

    async def renew_leases(self, replica: str, ttl_ms: int) -> LeaseStatus:
        """Renews the worker's registration and leases. Raises `LeaseLost` if they had expired."""
        ...

    async def acquire_leases(
        self, replica: str, limit: int, mirrored: Collection[Repo], grace_ms: int
    ) -> Sequence[Lease]:
        """Takes leases of repositories that no replica holds; skips those that another replica is taking now.

        Repositories whose mirrors this replica has come first. Others must have been free for `grace_ms`, so that a
        replica that has their mirrors can take them first.
        """
        ...

    async def release_leases(self, replica: str, repos: Collection[Repo]) -> None: ...

    async def unregister_worker(self, replica: str) -> None:
        """Releases all its leases, and unregisters the worker."""
        ...

    async def notify(self, *hints: str) -> None:
        """Sends hints to all replicas, including this one. A hint may be lost, so receivers also poll."""
        ...

    async def listen(self, on_hint: HintHandler, on_disconnect: Callable[[], Awaitable[None]]) -> None:
        """Receives hints until the store is closed. After a reconnect, calls back because hints may have been lost."""
        ...
