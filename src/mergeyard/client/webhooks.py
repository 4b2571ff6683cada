"""Webhooks, and the attempts to send something to them, as the server tells of them."""

from datetime import datetime

from mergeyard.client.answer import Answer
from mergeyard.client.naming import RepoName


class WebhookTopic(Answer, frozen=True, kw_only=True):
    """One queue, or, without a branch, all queues of a repository."""

    repo: RepoName
    target_branch: str | None = None


class WebhookDisabled(Answer, frozen=True, kw_only=True):
    at: datetime
    reason: str
    message: str


class Webhook(Answer, frozen=True, kw_only=True):
    id: str
    kind: str
    url: str
    events: tuple[str, ...]
    queues: tuple[WebhookTopic, ...]
    description: str
    enabled: bool
    disabled: WebhookDisabled | None
    created_at: datetime
    secret: str | None = None


class Webhooks(Answer, frozen=True, kw_only=True):
    webhooks: tuple[Webhook, ...]


class WebhookDeleted(Answer, frozen=True, kw_only=True):
    deleted: bool
    id: str


class WebhookDelivery(Answer, frozen=True, kw_only=True):
    event_id: str
    type: str
    at: datetime
    attempt: int
    delivered: bool
    status: int | None
    message: str


class WebhookDeliveries(Answer, frozen=True, kw_only=True):
    deliveries: tuple[WebhookDelivery, ...]
