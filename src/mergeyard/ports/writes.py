"""Writes as values. The store applies all writes of a commit, or none."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.access import Session, Token
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import Status
from mergeyard.domain.states import PullRequestState, RunStatus
from mergeyard.domain.timestamps import Instant


class QueuePart(Struct, frozen=True):
    """One part of a queue. None as body deletes it."""

    kind: str
    key: str
    body: bytes | None


class SubmissionRow(Struct, frozen=True, kw_only=True):
    """One submission, live or ended. The body is the encoded `Submission`."""

    submission_id: SubmissionId
    number: PullRequestNumber
    branch: str
    state: PullRequestState
    submitted_at: Instant
    ended_at: Instant | None
    """When it left the queue; None while it is live."""
    live: bool
    body: bytes


class RunRow(Struct, frozen=True, kw_only=True):
    """One run. The record stays after the run left the queue (`live` is then false)."""

    id: RunId
    status: RunStatus
    tested_count: int
    """How many pull requests it tests."""
    tip: Sha | None
    """The commit that it tests, once it has started."""
    started_at: Instant | None
    decided_at: Instant | None
    ended_at: Instant | None
    """When it left the queue; None while it is live."""
    live: bool
    body: bytes


class EntryRow(Struct, frozen=True, kw_only=True):
    """One journal entry: the encoded body, and the columns that lists and metrics need."""

    queue: QueueId | None
    at: Instant
    kind: str
    """The tag of the entry's struct."""
    actor: str
    token: str | None
    submission_id: SubmissionId | None = None
    number: PullRequestNumber | None = None
    source: str | None = None
    to: str | None = None
    reason: str | None = None
    bisecting: bool = False
    """The pull request was in a bisection."""
    ms_in_state: int | None = None
    """Milliseconds spent in the state that it left."""
    ms_in_queue: int | None = None
    """Milliseconds since it was admitted."""
    first_run: bool = False
    """It was tested for the first time in this submission."""
    body: bytes


class CreateQueue(Struct, frozen=True):
    id: QueueId
    key: QueueKey
    at: Instant


class DeleteQueue(Struct, frozen=True):
    """The queue is no longer found; its submissions, runs and entries stay under its id. Raises `VersionConflict` if
    its version differs."""

    id: QueueId
    version: int
    at: Instant


class SaveDecision(Struct, frozen=True, kw_only=True):
    """The changes of one decision. Raises `VersionConflict` unless the queue's version is `version - 1`."""

    queue: QueueId
    version: int
    parts: tuple[QueuePart, ...] = ()
    submissions: tuple[SubmissionRow, ...] = ()
    runs: tuple[RunRow, ...] = ()


class AppendEntries(Struct, frozen=True):
    entries: tuple[EntryRow, ...]


class SaveImpactedTargets(Struct, frozen=True):
    """Stores the impacted targets of a head. Only the last `MAX_HEADS_WITH_IMPACTED_TARGETS` heads of a pull request
    keep theirs."""

    queue: QueueId
    number: PullRequestNumber
    head: Sha
    body: bytes
    at: Instant
    token: str | None = None
    """The id of the token that uploaded them."""


class SaveStatus(Struct, frozen=True):
    """Stores a status. With a token, only the last `MAX_UNCLAIMED_STATUSES` that it reported for commits which no run
    tests are kept; its older ones are deleted."""

    repo: Repo
    sha: Sha
    status: Status
    token: str | None = None
    """The id of the token that reported it; None: the service itself."""


class StoredResponse(Struct, frozen=True):
    """The response to a request with an idempotency key."""

    token: str
    key: str
    digest: bytes
    """The digest of path and body."""
    body: bytes
    at: Instant


class SaveResponse(Struct, frozen=True):
    """Raises `DuplicateRequest` if a response saved at this time or later exists."""

    response: StoredResponse
    unless_saved_since: Instant


class DeleteExpiredResponses(Struct, frozen=True):
    before: Instant


class AssertLease(Struct, frozen=True):
    """Writes nothing. Raises `LeaseLost` unless this replica holds the lease of the repository under this fencing
    number."""

    replica: str
    repo: Repo
    fence: int


class SaveToken(Struct, frozen=True):
    """Creates or updates a token."""

    token: Token


class RecordTokenUse(Struct, frozen=True):
    """When and from which address a token was last used. Of several writes the latest time counts."""

    id: str
    at: Instant
    address: str


class StartConsumer(Struct, frozen=True):
    """A new consumer starts at the current end of every journal: earlier entries are not delivered."""

    consumer: str


class MoveCursor(Struct, frozen=True):
    """The consumer has processed all entries of the queue's journal up to this one. The cursor never moves back."""

    consumer: str
    queue: QueueId
    seq: int


class MarkStalled(Struct, frozen=True):
    """The consumer cannot process the entry after its cursor. The first time counts until the cursor moves."""

    consumer: str
    queue: QueueId
    at: Instant


class ClearStalled(Struct, frozen=True):
    """Clears the stalled marks, so that retries start again."""

    consumer: str


class DeleteConsumer(Struct, frozen=True):
    consumer: str


class SaveThreadState(Struct, frozen=True):
    """The state of our comment thread on a pull request."""

    queue: QueueId
    number: PullRequestNumber
    body: bytes


class WebhookRow(Struct, frozen=True):
    id: str
    version: int
    body: bytes


class SaveWebhook(Struct, frozen=True):
    """Version 1 creates it. Raises `VersionConflict` if the stored version is not the one before."""

    webhook: WebhookRow


class DeleteWebhook(Struct, frozen=True):
    """Deletes it and its deliveries."""

    id: str


class SaveDelivery(Struct, frozen=True):
    """One delivery attempt. The last ones of a webhook are kept. Ignored if the webhook was deleted."""

    webhook: str
    event: str
    body: bytes


class SaveSession(Struct, frozen=True):
    session: Session


class DeleteSession(Struct, frozen=True):
    digest: bytes


class DeleteSsoSessions(Struct, frozen=True):
    """Deletes all sessions of users who signed in through the identity provider."""


class DeleteExpiredSessions(Struct, frozen=True):
    """Deletes sessions that expire before this time."""

    before: Instant


class RecordKind(StrEnum):
    """The records that are deleted when they expire."""

    SUBMISSIONS = "submissions"
    RUNS = "runs"
    JOURNAL = "journal"
    IMPACTED_TARGETS = "impacted_targets"
    STATUSES = "statuses"


RecordKey = tuple[str | int, ...]


class DeleteExpired(Struct, frozen=True):
    """Deletes the records with these keys, which `Store.expired_keys` returned. Those renewed since
    `before` are kept."""

    kind: RecordKind
    keys: tuple[RecordKey, ...]
    before: Instant


Write = (
    CreateQueue
    | DeleteQueue
    | SaveDecision
    | AppendEntries
    | SaveImpactedTargets
    | SaveStatus
    | SaveResponse
    | DeleteExpiredResponses
    | AssertLease
    | SaveToken
    | RecordTokenUse
    | SaveSession
    | DeleteSession
    | DeleteSsoSessions
    | DeleteExpiredSessions
    | DeleteExpired
    | StartConsumer
    | MoveCursor
    | MarkStalled
    | ClearStalled
    | DeleteConsumer
    | SaveThreadState
    | SaveWebhook
    | DeleteWebhook
    | SaveDelivery
)
