"""Whom we tell of what happens, under which names, and how each attempt to do so went."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey, Repo


class EventType(StrEnum):
    PR_SUBMITTED = "pull_request.submitted"
    PR_QUEUED = "pull_request.queued"
    PR_TESTING = "pull_request.testing"
    PR_TESTS_PASSED = "pull_request.tests_passed"
    PR_PENDING_FAILURE = "pull_request.pending_failure"
    PR_FAILED = "pull_request.failed"
    PR_CANCELLED = "pull_request.cancelled"
    PR_MERGED = "pull_request.merged"
    QUEUE_CREATED = "queue.created"
    QUEUE_UPDATED = "queue.updated"
    QUEUE_DELETED = "queue.deleted"
    QUEUE_STATE_CHANGED = "queue.state_changed"


TEST = "webhook.test"
"""The type of what is sent only to see whether sending works."""


class WebhookKind(StrEnum):
    WEBHOOK = "webhook"
    SLACK = "slack"


class Topic(Struct, frozen=True):
    """One queue, or all queues of a repository."""

    repo: Repo
    branch: str | None = None

    def covers(self, key: QueueKey) -> bool:
        return self.repo == key.repo and self.branch in (None, key.branch)


class WhyDisabled(StrEnum):
    ASKED = "asked"
    FAILING = "failing"
    GONE = "gone"
    """The receiver itself said that nothing is wanted there any more."""


class Disabled(Struct, frozen=True):
    at: Instant
    why: WhyDisabled
    words: str = ""


class Webhook(Struct, frozen=True, kw_only=True):
    id: str
    kind: WebhookKind = WebhookKind.WEBHOOK
    shown_url: str
    """Without what may be secret in it."""
    sealed: bytes
    """Its whole address and the key that it is signed with; readable only with the service's own key."""
    events: tuple[EventType, ...] = ()
    """Empty: all of them."""
    topics: tuple[Topic, ...] = ()
    """Empty: all queues."""
    description: str = ""
    created_at: Instant
    disabled: Disabled | None = None

    @property
    def teller(self) -> str:
        """Under which it is stored how far it was told."""
        return f"webhook:{self.id}"

    def wants(self, key: QueueKey, event: EventType) -> bool:
        of_queue = not self.topics or any(topic.covers(key) for topic in self.topics)
        return of_queue and (not self.events or event in self.events)


class Place(Struct, frozen=True):
    """Where an event stands in the journal."""

    key: QueueKey
    queue: QueueId
    seq: int


class Delivery(Struct, frozen=True, kw_only=True):
    """One attempt to send one event."""

    event: str
    """The same in every attempt."""
    type: str
    at: Instant
    attempt: int = 1
    delivered: bool
    status: int | None = None
    """What was answered; None: nothing."""
    words: str = ""
    place: Place | None = None
    """None for a test, which stands nowhere."""
