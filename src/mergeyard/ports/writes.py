"""What is to be written, as values: the store writes all that it is given at once, or nothing of it."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, QueueId, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.sessions import Session
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.domain.statuses import Status
from mergeyard.domain.tokens import Token


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
    ended_at: Instant | None
    """When it left the queue; None while it is live."""
    live: bool
    body: bytes


class RunRow(Struct, frozen=True, kw_only=True):
    """One run, from its plan on. It stays after the queue has let go of it (`live` no more)."""

    id: RunId
    status: RunStatus
    tested: int
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
    """It is found no more; its stays, runs and entries remain under its id. Refused (`Outrun`) at another version."""

    id: QueueId
    version: int
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
    """Store the targets of a head. Of a pull request only the last `HEADS_WITH_TARGETS` heads keep theirs."""

    queue: QueueId
    number: PrNumber
    head: Sha
    body: bytes
    at: Instant
    token: str | None = None
    """The id of the token that uploaded them."""


class KeepStatus(Struct, frozen=True):
    """Store a status. With a token, only the last `MAX_UNCLAIMED_STATUSES` that it reported for commits which no run
    tests are kept; its older ones are deleted."""

    repo: Repo
    sha: Sha
    status: Status
    token: str | None = None
    """The id of the token that reported it; None for what this service found out by itself."""


class Answer(Struct, frozen=True):
    """What a request with an idempotency key was answered."""

    token: str
    key: str
    digest: bytes
    """Of path and body."""
    body: bytes
    at: Instant


class KeepAnswer(Struct, frozen=True):
    """Refused (`Answered`) when there is one already that was given at this time or later."""

    answer: Answer
    unless_since: Instant


class ForgetAnswers(Struct, frozen=True):
    before: Instant


class ProveDuty(Struct, frozen=True):
    """Writes nothing. Refused (`Relieved`) unless this replica still works for the repository, under this fence."""

    replica: str
    repo: Repo
    fence: int


class SaveToken(Struct, frozen=True):
    """New, or as it is now."""

    token: Token


class RecordTokenUse(Struct, frozen=True):
    """When and from which address a token was last used. Of several times the latest counts."""

    id: str
    at: Instant
    address: str


class BeginTelling(Struct, frozen=True):
    """Who has not begun yet begins at the present end of every journal: what happened before is not told."""

    teller: str


class MoveCursor(Struct, frozen=True):
    """All entries of the queue's journal up to this one were told. It never goes back."""

    teller: str
    queue: QueueId
    seq: int


class NoteStuck(Struct, frozen=True):
    """The entry behind the cursor cannot be told. Of several times the first counts, until the cursor moves."""

    teller: str
    queue: QueueId
    at: Instant


class TakeHeart(Struct, frozen=True):
    """Whatever it was stuck with counts as never tried."""

    teller: str


class ForgetTeller(Struct, frozen=True):
    teller: str


class KeepConversation(Struct, frozen=True):
    """What was said on a pull request, as it is now."""

    queue: QueueId
    number: PrNumber
    body: bytes


class WebhookRow(Struct, frozen=True):
    id: str
    version: int
    body: bytes


class SaveWebhook(Struct, frozen=True):
    """New at version 1. Refused (`Outrun`) when the stored version is not the one before."""

    webhook: WebhookRow


class DropWebhook(Struct, frozen=True):
    """It is there no more, nor what is known of sending to it."""

    id: str


class KeepDelivery(Struct, frozen=True):
    """One attempt to send an event. The last ones of a webhook are kept, and none of a webhook that is gone."""

    webhook: str
    event: str
    body: bytes


class SaveSession(Struct, frozen=True):
    session: Session


class DropSession(Struct, frozen=True):
    digest: bytes


class DropVouchedFor(Struct, frozen=True):
    """All sessions of those who signed in without a token."""


class ForgetSessions(Struct, frozen=True):
    """Those that have ended by then."""

    before: Instant


class RecordKind(StrEnum):
    """The records that are deleted when they expire."""

    SUBMISSIONS = "submissions"
    RUNS = "runs"
    JOURNAL = "journal"
    TARGETS = "targets"
    STATUSES = "statuses"


RecordKey = tuple[str | int, ...]


class DeleteExpired(Struct, frozen=True):
    """Delete the records with these keys, which `Store.expired` returned. Those renewed since `before` are kept."""

    kind: RecordKind
    keys: tuple[RecordKey, ...]
    before: Instant


Write = (
    CreateQueue
    | DeleteQueue
    | SaveTurn
    | AppendEntries
    | KeepTargets
    | KeepStatus
    | KeepAnswer
    | ForgetAnswers
    | ProveDuty
    | SaveToken
    | RecordTokenUse
    | SaveSession
    | DropSession
    | DropVouchedFor
    | ForgetSessions
    | DeleteExpired
    | BeginTelling
    | MoveCursor
    | NoteStuck
    | TakeHeart
    | ForgetTeller
    | KeepConversation
    | SaveWebhook
    | DropWebhook
    | KeepDelivery
)
