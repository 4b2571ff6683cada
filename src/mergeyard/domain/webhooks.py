"""Outgoing webhooks: which events an endpoint receives, and the result of each delivery attempt."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.ids import QueueId, QueueKey, Repo
from mergeyard.domain.timestamps import Instant


class EventType(StrEnum):
    PR_SUBMITTED = "pull_request.submitted"
    PR_UPDATED = "pull_request.updated"
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


TEST_EVENT_TYPE = "webhook.test"
"""The type of test deliveries."""


class WebhookKind(StrEnum):
    WEBHOOK = "webhook"
    SLACK = "slack"


class Topic(Struct, frozen=True):
    """One queue, or all queues of a repository."""

    repo: Repo
    branch: str | None = None

    def covers(self, key: QueueKey) -> bool:
        return self.repo == key.repo and self.branch in (None, key.branch)


class DisabledReason(StrEnum):
    ASKED = "asked"
    FAILING = "failing"
    GONE = "gone"
    """The receiver answered 410 Gone."""


class Disabled(Struct, frozen=True):
    at: Instant
    reason: DisabledReason
    detail: str = ""


class Webhook(Struct, frozen=True, kw_only=True):
    id: str
    kind: WebhookKind = WebhookKind.WEBHOOK
    redacted_url: str
    """The URL without its secret parts."""
    encrypted_endpoint: bytes
    """The full URL and the signing key, encrypted with the service's key."""
    events: tuple[EventType, ...] = ()
    """Empty: all events."""
    topics: tuple[Topic, ...] = ()
    """Empty: all queues."""
    description: str = ""
    created_at: Instant
    disabled: Disabled | None = None

    @property
    def consumer(self) -> str:
        """The name of its journal consumer, under which its cursor is stored."""
        return f"webhook:{self.id}"

    def is_subscribed_to(self, key: QueueKey, event: EventType) -> bool:
        is_subscribed_queue = not self.topics or any(topic.covers(key) for topic in self.topics)
        return is_subscribed_queue and (not self.events or event in self.events)


class JournalPosition(Struct, frozen=True):
    """The position of an event in the journal."""

    key: QueueKey
    queue: QueueId
    seq: int


class Delivery(Struct, frozen=True, kw_only=True):
    """One attempt to send one event."""

    event: str
    """The id of the event, the same in every attempt."""
    type: str
    at: Instant
    attempt: int = 1
    delivered: bool
    status: int | None = None
    """The HTTP status of the response; None: no response."""
    detail: str = ""
    journal_position: JournalPosition | None = None
    """None for a test delivery."""
