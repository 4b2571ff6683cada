"""Every question that can be asked about webhooks, each written once for both clients."""

from collections.abc import Iterable

from mergeyard.client.naming import QueueName, RepoName
from mergeyard.client.request import Request, reading, writing
from mergeyard.client.webhooks import (
    Webhook,
    WebhookDeleted,
    WebhookDeliveries,
    WebhookDelivery,
    Webhooks,
    WebhookTopic,
)

Topics = Iterable[QueueName | RepoName]
"""Single queues, or all queues of a repository."""


def create_webhook(
    url: str,
    *,
    kind: str | None = None,
    events: Iterable[str] | None = None,
    queues: Topics | None = None,
    description: str | None = None,
    enabled: bool | None = None,
) -> Request[Webhook]:
    """Have events sent to an address; the answer has the secret that they are signed with, this once."""
    wishes = {"events": _listed(events), "queues": _topics(queues), "description": description, "enabled": enabled}
    return writing("createWebhook", Webhook, url=url, kind=kind, **wishes)


def list_webhooks() -> Request[Webhooks]:
    """The webhooks that the token may see."""
    return reading("listWebhooks", Webhooks)


def update_webhook(
    webhook_id: str,
    *,
    url: str | None = None,
    events: Iterable[str] | None = None,
    queues: Topics | None = None,
    description: str | None = None,
    enabled: bool | None = None,
) -> Request[Webhook]:
    """Change what is named."""
    wishes = {"events": _listed(events), "queues": _topics(queues), "description": description, "enabled": enabled}
    return writing("updateWebhook", Webhook, id=webhook_id, url=url, **wishes)


def delete_webhook(webhook_id: str) -> Request[WebhookDeleted]:
    """Send nothing there any more."""
    return writing("deleteWebhook", WebhookDeleted, id=webhook_id)


def test_webhook(webhook_id: str) -> Request[WebhookDelivery]:
    """Send a test event now."""
    return writing("testWebhook", WebhookDelivery, id=webhook_id)


def list_deliveries(webhook_id: str, *, take: int | None = None) -> Request[WebhookDeliveries]:
    """The last attempts to send something there, newest first."""
    return reading("listWebhookDeliveries", WebhookDeliveries, id=webhook_id, take=take)


def resend_event(webhook_id: str, event_id: str) -> Request[WebhookDelivery]:
    """Send an event once more, now."""
    return writing("resendWebhookEvent", WebhookDelivery, id=webhook_id, eventId=event_id)


def _listed(events: Iterable[str] | None) -> list[str] | None:
    return None if events is None else list(events)


def _topics(queues: Topics | None) -> list[WebhookTopic] | None:
    return None if queues is None else list(map(_topic, queues))


def _topic(named: QueueName | RepoName) -> WebhookTopic:
    if isinstance(named, RepoName):
        return WebhookTopic(repo=named)
    return WebhookTopic(repo=named.repo, target_branch=named.branch)
