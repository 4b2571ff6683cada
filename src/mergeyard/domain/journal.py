"""Entries of the journal: every change, with its time, actor and reason."""

from msgspec import Struct

from mergeyard.domain.ids import PullRequestNumber, RunId, SubmissionId
from mergeyard.domain.states import PullRequestState, QueueState, Reason
from mergeyard.domain.timestamps import Instant

SYSTEM_ACTOR = "mergeyard"
OPERATOR_ACTOR = "operator"
"""The actor of commands that are run on the server's machine."""
RESERVED_ACTORS = {SYSTEM_ACTOR, OPERATOR_ACTOR}
"""Actor names that a token must not have."""


class Cause(Struct, frozen=True):
    """A pull request because of which another one is tested again."""

    number: PullRequestNumber
    act: Reason | None = None
    """What a person did with it, if that is why: they removed it, or made it urgent."""
    actor: str = SYSTEM_ACTOR
    """Who did that."""


class PullRequestChanged(Struct, frozen=True, kw_only=True, tag=True):
    """The state of a pull request changed."""

    at: Instant
    submission_id: SubmissionId
    number: PullRequestNumber
    source: PullRequestState | None
    to: PullRequestState
    reason: Reason
    actor: str = SYSTEM_ACTOR
    run: RunId | None = None
    stacked_on: tuple[PullRequestNumber, ...] = ()
    causes: tuple[Cause, ...] = ()
    detail: str = ""


class PullRequestUpdated(Struct, frozen=True, kw_only=True, tag=True):
    """A person changed how the queue treats a pull request that it holds. Its state stayed the same."""

    at: Instant
    submission_id: SubmissionId
    number: PullRequestNumber
    state: PullRequestState
    reason: Reason
    actor: str
    detail: str = ""


class QueueChanged(Struct, frozen=True, kw_only=True, tag=True):
    """The queue's state changed; when both states are equal, its settings changed, or a problem was
    found while paused."""

    at: Instant
    source: QueueState
    to: QueueState
    reason: Reason
    actor: str = SYSTEM_ACTOR
    detail: str = ""


class QueueCreated(Struct, frozen=True, kw_only=True, tag=True):
    at: Instant
    actor: str


class QueueDeleted(Struct, frozen=True, kw_only=True, tag=True):
    at: Instant
    actor: str


PullRequestEntry = PullRequestChanged | PullRequestUpdated
"""Entries about one submission: its timeline."""

DecisionEntry = PullRequestEntry | QueueChanged
"""Entries that `engine.decide` produces."""

QueueEntry = DecisionEntry | QueueCreated | QueueDeleted
"""All entries about a queue. Webhooks, comments and live pages consume them."""


class AdminAction(Struct, frozen=True, kw_only=True):
    """An administrative action that concerns no queue. It appears only in the audit log."""

    at: Instant
    actor: str
    id: str
    """The id of the token or webhook concerned."""
    name: str
    """Its display name. Never a secret."""
    detail: str = ""


class TokenCreated(AdminAction, frozen=True, tag=True):
    pass


class TokenRevoked(AdminAction, frozen=True, tag=True):
    pass


class WebhookCreated(AdminAction, frozen=True, tag=True):
    pass


class WebhookChanged(AdminAction, frozen=True, tag=True):
    pass


class WebhookDeleted(AdminAction, frozen=True, tag=True):
    pass


class WebhookTested(AdminAction, frozen=True, tag=True):
    pass


class EventResent(AdminAction, frozen=True, tag=True):
    pass


class SignedIn(AdminAction, frozen=True, tag=True):
    pass


class SsoSessionsEnded(AdminAction, frozen=True, tag=True):
    """An administrator ended all sessions of users who signed in through the identity provider."""


AdminEntry = (
    TokenCreated
    | TokenRevoked
    | WebhookCreated
    | WebhookChanged
    | WebhookDeleted
    | WebhookTested
    | EventResent
    | SignedIn
    | SsoSessionsEnded
)

JournalEntry = QueueEntry | AdminEntry
"""Every entry that the journal stores."""
