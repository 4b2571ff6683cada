"""The endpoints about webhooks."""

from collections.abc import Iterable

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from mergeyard.api import webhook_wire as w
from mergeyard.api.addressing import Addressing
from mergeyard.api.endpoint import Call
from mergeyard.api.presenting import encode
from mergeyard.api.times import written
from mergeyard.api.wire import RepoReference
from mergeyard.domain.webhooks import Delivery, Disabled, Topic, Webhook
from mergeyard.service.errors import Code, Refused
from mergeyard.service.service import Service
from mergeyard.service.telling.webhooks import Asker, Wishes


class WebhookEndpoints:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._webhooks = service.office.webhooks
        self._trying = service.office.trying
        self._addressing = Addressing(service.sites)

    async def create(self, call: Call) -> bytes:
        asked: w.CreateWebhook = call.request
        wishes = self._wishes(call, asked)
        if call.token.repos and not wishes.topics:
            raise _everything_is_too_much()
        webhook, secret = await self._webhooks.create(_asker(call), asked.kind, asked.url, wishes, _shown)
        self._spread()
        return encode(replace(webhook_shown(webhook), secret=secret or UNSET))

    async def update(self, call: Call) -> bytes:
        asked: w.UpdateWebhook = call.request
        wishes = self._wishes(call, asked)
        if call.token.repos and wishes.topics == ():
            raise _everything_is_too_much()
        answer = await self._webhooks.update(_asker(call), asked.id, wishes, _shown)
        self._spread()
        return answer

    async def delete(self, call: Call) -> bytes:
        asked: w.DeleteWebhook = call.request
        answer = encode(w.WebhookDeleted(id=asked.id))
        await self._webhooks.delete(_asker(call), asked.id, answer)
        self._spread()
        return answer

    async def list(self, call: Call) -> bytes:
        webhooks = await self._webhooks.seen_by(_asker(call))
        return encode(w.Webhooks(webhooks=tuple(map(webhook_shown, webhooks))))

    async def test(self, call: Call) -> bytes:
        asked: w.TestWebhook = call.request
        return await self._trying.test(_asker(call), asked.id, _delivery)

    async def resend(self, call: Call) -> bytes:
        asked: w.ResendWebhookEvent = call.request
        return await self._trying.resend(_asker(call), asked.id, asked.event_id, _delivery)

    async def deliveries(self, call: Call) -> bytes:
        asked: w.ListWebhookDeliveries = call.request
        found = await self._webhooks.deliveries(_asker(call), asked.id, asked.take)
        return encode(w.WebhookDeliveries(deliveries=tuple(map(delivery_shown, found))))

    def _spread(self) -> None:
        """Others find out by themselves, a little later."""
        self._service.background.start(self._service.subscriptions.refresh())

    def _wishes(self, call: Call, asked: w.CreateWebhook | w.UpdateWebhook) -> Wishes:
        return Wishes(
            url=asked.url,
            events=UNSET if isinstance(asked.events, UnsetType) else tuple(dict.fromkeys(asked.events)),
            topics=UNSET if isinstance(asked.queues, UnsetType) else self._topics(call, asked.queues),
            description=asked.description,
            enabled=asked.enabled,
        )

    def _topics(self, call: Call, asked: Iterable[w.WebhookTopic]) -> tuple[Topic, ...]:
        named = (
            Topic(self._addressing.visible_repo(call, each.repo.repo), each.target_branch or None) for each in asked
        )
        return tuple(dict.fromkeys(named))


def _everything_is_too_much() -> Refused:
    words = "This token is limited to some repositories: name those of which to tell in `queues`."
    return Refused(Code.INVALID_REQUEST, words)


def _asker(call: Call) -> Asker:
    return Asker(call.token, call.repeat)


def _shown(webhook: Webhook) -> bytes:
    return encode(webhook_shown(webhook))


def _delivery(delivery: Delivery) -> bytes:
    return encode(delivery_shown(delivery))


def webhook_shown(webhook: Webhook) -> w.Webhook:
    return w.Webhook(
        id=webhook.id,
        kind=webhook.kind,
        url=webhook.shown_url,
        events=webhook.events,
        queues=tuple(map(_topic, webhook.topics)),
        description=webhook.description,
        enabled=webhook.disabled is None,
        disabled=None if webhook.disabled is None else _disabled(webhook.disabled),
        created_at=written(webhook.created_at),
    )


def delivery_shown(delivery: Delivery) -> w.WebhookDelivery:
    return w.WebhookDelivery(
        event_id=delivery.event,
        type=delivery.type,
        at=written(delivery.at),
        attempt=delivery.attempt,
        delivered=delivery.delivered,
        status=delivery.status,
        message=delivery.words,
    )


def _topic(topic: Topic) -> w.WebhookTopic:
    return w.WebhookTopic(repo=RepoReference.to(topic.repo), target_branch=topic.branch or UNSET)


def _disabled(disabled: Disabled) -> w.WebhookDisabled:
    return w.WebhookDisabled(at=written(disabled.at), reason=disabled.why, message=disabled.words)
