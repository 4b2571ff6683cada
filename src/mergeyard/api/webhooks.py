"""The endpoints about webhooks."""

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from mergeyard.api import request_schemas
from mergeyard.api.endpoint import Call, Endpoints
from mergeyard.api.fields import format_time
from mergeyard.api.presenting import encode
from mergeyard.api.request_schemas import Repository, Request, Take, describe
from mergeyard.api.response_schemas import ResponseBody, Timestamp
from mergeyard.domain.webhooks import Delivery, DisabledReason, EventType, Topic, WebhookKind
from mergeyard.domain.webhooks import Webhook as StoredWebhook
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.webhooks.webhooks import WebhookChanges, WebhookClient

Url = Annotated[str, Meta(min_length=1, max_length=2048, description="Address that events are sent to, over https.")]
WebhookId = Annotated[str, Meta(min_length=1, max_length=100, description="Id of the webhook.")]
Description = Annotated[str, Meta(max_length=200, description="Free text.")]
Events = Annotated[list[EventType], Meta(max_length=50, description="Event types to send; an empty list means all.")]


class WebhookTopic(Struct, frozen=True, kw_only=True, rename="camel"):
    """One queue; without `targetBranch`, all queues of the repository."""

    repo: Annotated[Repository, describe("The repository.")]
    target_branch: request_schemas.TargetBranch | UnsetType = UNSET


Topics = Annotated[
    list[WebhookTopic], Meta(max_length=100, description="Queues to send events of; an empty list means all.")
]


class CreateWebhook(Request, frozen=True, kw_only=True):
    url: Url
    kind: Annotated[WebhookKind, describe("`slack` for an incoming webhook of Slack, else `webhook`.")] = (
        WebhookKind.WEBHOOK
    )
    events: Events | UnsetType = UNSET
    queues: Topics | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    enabled: Annotated[bool, describe("Whether it sends events; default `true`.")] | UnsetType = UNSET


class UpdateWebhook(Request, frozen=True, kw_only=True):
    """Only the given members change."""

    id: WebhookId
    url: Url | UnsetType = UNSET
    events: Events | UnsetType = UNSET
    queues: Topics | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    enabled: Annotated[bool, describe("`true` continues with the first event that was not delivered.")] | UnsetType = (
        UNSET
    )


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
    event_id: Annotated[str, Meta(min_length=1, max_length=100, description="The `eventId` of a delivery.")]


class WebhookDisabled(ResponseBody, frozen=True, kw_only=True):
    at: Annotated[Timestamp, describe("When it was disabled.")]
    reason: Annotated[
        DisabledReason,
        describe(
            "`asked`: a user disabled it. `failing`: deliveries failed for too long. `gone`: its address answered 410."
        ),
    ]
    message: Annotated[str, describe("The last response of the address.")]


class Webhook(ResponseBody, frozen=True, kw_only=True):
    id: WebhookId
    kind: Annotated[WebhookKind, describe("The form of the messages: JSON events, or Slack messages.")]
    url: Annotated[str, describe("Without the parts that may be secret.")]
    events: Annotated[tuple[EventType, ...], describe("The event types that it sends; empty means all.")]
    queues: Annotated[tuple[WebhookTopic, ...], describe("The queues whose events it sends; empty means all.")]
    description: Annotated[str, describe("What it is for; can be empty.")]
    enabled: Annotated[bool, describe("Whether it sends events.")]
    disabled: Annotated[WebhookDisabled | None, describe("Why it is disabled; null when it is enabled.")]
    created_at: Annotated[Timestamp, describe("When it was created.")]
    secret: (
        Annotated[str, describe("Key that verifies the signatures; only in the response of `createWebhook`.")]
        | UnsetType
    ) = UNSET


class Webhooks(ResponseBody, frozen=True, kw_only=True):
    webhooks: Annotated[tuple[Webhook, ...], describe("Oldest first.")]


class WebhookDeleted(ResponseBody, frozen=True, kw_only=True):
    deleted: Annotated[Literal[True], describe("Always `true`.")] = True
    id: WebhookId


class WebhookDelivery(ResponseBody, frozen=True, kw_only=True):
    event_id: Annotated[str, describe("Sent as `webhook-id`, the same in every attempt.")]
    type: Annotated[str, describe("The type of event.")]
    at: Annotated[Timestamp, describe("When it was sent.")]
    attempt: Annotated[int, describe("From 1.")]
    delivered: Annotated[bool, describe("Whether the receiver accepted it.")]
    status: Annotated[int | None, describe("HTTP status of the response; null without a response.")]
    message: Annotated[str, describe("The beginning of the response, or the error.")]


class WebhookDeliveries(ResponseBody, frozen=True, kw_only=True):
    deliveries: Annotated[tuple[WebhookDelivery, ...], describe("Newest first.")]


class WebhookEndpoints(Endpoints):
    async def create(self, call: Call) -> bytes:
        request: CreateWebhook = call.request
        settings = self._settings(call, request)
        if call.token.repos and not settings.topics:
            raise _topics_required()
        webhook, secret = await self._service.webhooks.create(
            _requester(call), request.kind, request.url, settings, encode_webhook
        )
        self._refresh_subscriptions()
        return encode(replace(present_webhook(webhook), secret=secret or UNSET))

    async def update(self, call: Call) -> bytes:
        request: UpdateWebhook = call.request
        settings = self._settings(call, request)
        if call.token.repos and settings.topics == ():
            raise _topics_required()
        response = await self._service.webhooks.update(_requester(call), request.id, settings, encode_webhook)
        self._refresh_subscriptions()
        return response

    async def delete(self, call: Call) -> bytes:
        request: DeleteWebhook = call.request
        response = encode(WebhookDeleted(id=request.id))
        await self._service.webhooks.delete(_requester(call), request.id, response)
        self._refresh_subscriptions()
        return response

    async def list(self, call: Call) -> bytes:
        webhooks = await self._service.webhooks.list_visible(_requester(call))
        return encode(Webhooks(webhooks=tuple(map(present_webhook, webhooks))))

    async def test(self, call: Call) -> bytes:
        request: TestWebhook = call.request
        return await self._service.webhooks.send_test(_requester(call), request.id, encode_delivery)

    async def resend(self, call: Call) -> bytes:
        request: ResendWebhookEvent = call.request
        return await self._service.webhooks.resend_event(
            _requester(call), request.id, request.event_id, encode_delivery
        )

    async def deliveries(self, call: Call) -> bytes:
        request: ListWebhookDeliveries = call.request
        found = await self._service.webhooks.list_deliveries(_requester(call), request.id, request.take)
        return encode(WebhookDeliveries(deliveries=tuple(map(present_delivery, found))))

    def _refresh_subscriptions(self) -> None:
        """Applies the change in this replica now; other replicas refresh periodically."""
        self._service.background.start(self._service.webhook_subscriptions.refresh())

    def _settings(self, call: Call, request: CreateWebhook | UpdateWebhook) -> WebhookChanges:
        return WebhookChanges(
            url=request.url,
            events=UNSET if isinstance(request.events, UnsetType) else tuple(dict.fromkeys(request.events)),
            topics=UNSET if isinstance(request.queues, UnsetType) else self._resolve_topics(call, request.queues),
            description=request.description,
            enabled=request.enabled,
        )

    def _resolve_topics(self, call: Call, requested: Iterable[WebhookTopic]) -> tuple[Topic, ...]:
        topics = (Topic(self._resolve_repo(call, topic.repo.repo), topic.target_branch or None) for topic in requested)
        return tuple(dict.fromkeys(topics))


def _topics_required() -> RequestRefused:
    detail = "Your token is limited to some repositories: limit the webhook to queues of the same repositories."
    return RequestRefused(Code.INVALID_REQUEST, detail)


def _requester(call: Call) -> WebhookClient:
    return WebhookClient(call.token, call.idempotent_request)


def encode_webhook(webhook: StoredWebhook) -> bytes:
    return encode(present_webhook(webhook))


def encode_delivery(delivery: Delivery) -> bytes:
    return encode(present_delivery(delivery))


def present_webhook(webhook: StoredWebhook) -> Webhook:
    return Webhook(
        id=webhook.id,
        kind=webhook.kind,
        url=webhook.redacted_url,
        events=webhook.events,
        queues=tuple(
            WebhookTopic(repo=Repository.from_repo(topic.repo), target_branch=topic.branch or UNSET)
            for topic in webhook.topics
        ),
        description=webhook.description,
        enabled=webhook.disabled is None,
        disabled=None
        if (disabled := webhook.disabled) is None
        else WebhookDisabled(at=format_time(disabled.at), reason=disabled.reason, message=disabled.detail),
        created_at=format_time(webhook.created_at),
    )


def present_delivery(delivery: Delivery) -> WebhookDelivery:
    return WebhookDelivery(
        event_id=delivery.event,
        type=delivery.type,
        at=format_time(delivery.at),
        attempt=delivery.attempt,
        delivered=delivery.delivered,
        status=delivery.status,
        message=delivery.detail,
    )
