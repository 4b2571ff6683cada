"""What the endpoints about webhooks are asked and answer, by name, type and meaning."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from mergeyard.api import wire
from mergeyard.api.answers import Answer, At
from mergeyard.api.requests import Request, Take
from mergeyard.api.wire import RepoReference, says
from mergeyard.domain.webhooks import EventType, WebhookKind, WhyDisabled

Url = Annotated[str, Meta(min_length=1, max_length=2048, description="Where events are sent, over https.")]
WebhookId = Annotated[str, Meta(min_length=1, max_length=100, description="Which webhook.")]
Description = Annotated[str, Meta(max_length=200, description="For people: what it is for.")]
Events = Annotated[list[EventType], Meta(max_length=50, description="Only these types; an empty list means all.")]


class WebhookTopic(Struct, frozen=True, kw_only=True, rename="camel"):
    """One queue, or, without a branch, all queues of a repository."""

    repo: RepoReference
    target_branch: wire.TargetBranch | UnsetType = UNSET


Topics = Annotated[list[WebhookTopic], Meta(max_length=100, description="Only these queues; an empty list means all.")]


class CreateWebhook(Request, frozen=True, kw_only=True):
    url: Url
    kind: Annotated[WebhookKind, says("`slack` for an incoming webhook of Slack.")] = WebhookKind.WEBHOOK
    events: Events | UnsetType = UNSET
    queues: Topics | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class UpdateWebhook(Request, frozen=True, kw_only=True):
    """Members that are not given stay as they are."""

    id: WebhookId
    url: Url | UnsetType = UNSET
    events: Events | UnsetType = UNSET
    queues: Topics | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    enabled: Annotated[bool, says("`true` goes on where it stopped.")] | UnsetType = UNSET


class DeleteWebhook(Request, frozen=True, kw_only=True):
    id: WebhookId


class TestWebhook(Request, frozen=True, kw_only=True):
    __test__ = False
    id: WebhookId


class ListWebhooks(Request, frozen=True, kw_only=True):
    pass


class ListWebhookDeliveries(Request, frozen=True, kw_only=True):
    id: WebhookId
    take: Take = 50


class ResendWebhookEvent(Request, frozen=True, kw_only=True):
    id: WebhookId
    event_id: Annotated[str, Meta(min_length=1, max_length=100, description="As `listWebhookDeliveries` shows it.")]


class WebhookDisabled(Answer, frozen=True, kw_only=True):
    at: At
    reason: Annotated[WhyDisabled, says("Whether somebody asked for it, or nobody listened there any more.")]
    message: Annotated[str, says("What was answered last.")]


class Webhook(Answer, frozen=True, kw_only=True):
    id: str
    kind: WebhookKind
    url: Annotated[str, says("Without what may be secret in it.")]
    events: tuple[EventType, ...]
    queues: tuple[WebhookTopic, ...]
    description: str
    enabled: bool
    disabled: WebhookDisabled | None
    created_at: At
    secret: Annotated[str, says("To verify signatures with; shown this once.")] | UnsetType = UNSET


class Webhooks(Answer, frozen=True, kw_only=True):
    webhooks: tuple[Webhook, ...]


class WebhookDeleted(Answer, frozen=True, kw_only=True):
    deleted: Literal[True] = True
    id: str


class WebhookDelivery(Answer, frozen=True, kw_only=True):
    event_id: Annotated[str, says("The same in every attempt: its `webhook-id`.")]
    type: str
    at: At
    attempt: int
    delivered: bool
    status: Annotated[int | None, says("What was answered; null when nobody answered.")]
    message: Annotated[str, says("The beginning of the answer, or what went wrong.")]


class WebhookDeliveries(Answer, frozen=True, kw_only=True):
    deliveries: Annotated[tuple[WebhookDelivery, ...], says("Newest first.")]
