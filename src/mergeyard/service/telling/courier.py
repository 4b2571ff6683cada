"""Brings one event to one webhook, and writes down how that went."""

from hashlib import sha256

import msgspec
from msgspec import Struct

from mergeyard.domain.webhooks import Delivery, Place, Webhook, WebhookKind
from mergeyard.ports.clock import Clock
from mergeyard.ports.sealing import Seals, SealTrouble
from mergeyard.ports.sending import AddressRefused, NotSent, Response, Sender
from mergeyard.ports.store import Store
from mergeyard.ports.writes import KeepDelivery, Write
from mergeyard.service.telling import slack
from mergeyard.service.telling.events import Story
from mergeyard.service.telling.signing import signed

ALWAYS = {"content-type": "application/json", "user-agent": "Mergeyard"}


class Letterbox(Struct, frozen=True):
    """What is kept sealed of a webhook."""

    url: str
    secret: str = ""

    def __repr__(self) -> str:
        return "Letterbox(***)"


class Courier:
    def __init__(self, store: Store, clock: Clock, sender: Sender, seals: Seals) -> None:
        self._store = store
        self._clock = clock
        self._sender = sender
        self._seals = seals

    def sealed(self, webhook: str, letterbox: Letterbox) -> bytes:
        return self._seals.seal(msgspec.json.encode(letterbox), webhook)

    def opened(self, webhook: Webhook) -> Letterbox:
        return msgspec.json.decode(self._seals.open(webhook.sealed, webhook.id), type=Letterbox)

    async def deliver(self, webhook: Webhook, event: str, story: Story, place: Place | None = None) -> Delivery:
        """The event's name is the same in every attempt, so that a receiver knows what it has already."""
        before = await self._last(webhook, event)
        delivery = Delivery(
            event=event,
            type=story.event.type,
            at=self._clock.now(),
            attempt=1 if before is None else before.attempt + 1,
            delivered=False,
            place=place,
        )
        try:
            answer = await self._send(webhook, event, story)
        except (AddressRefused, NotSent, SealTrouble) as trouble:
            return msgspec.structs.replace(delivery, words=str(trouble))
        delivered = 200 <= answer.status < 300
        return msgspec.structs.replace(delivery, delivered=delivered, status=answer.status, words=answer.words)

    def kept(self, webhook: Webhook, delivery: Delivery) -> Write:
        return KeepDelivery(webhook.id, delivery.event, msgspec.json.encode(delivery))

    async def _last(self, webhook: Webhook, event: str) -> Delivery | None:
        body = await self._store.delivery(webhook.id, event)
        return None if body is None else decode_delivery(body)

    async def _send(self, webhook: Webhook, event: str, story: Story) -> Response:
        letterbox, body = self.opened(webhook), contents(webhook, story)
        if webhook.kind is WebhookKind.SLACK:
            return await self._sender.send(letterbox.url, ALWAYS, body)
        headers = signed(letterbox.secret, event, self._clock.now(), body)
        return await self._sender.send(letterbox.url, ALWAYS | headers, body)


decode_delivery = msgspec.json.Decoder(Delivery).decode


def contents(webhook: Webhook, story: Story) -> bytes:
    if webhook.kind is WebhookKind.SLACK:
        return slack.message(story)
    event = story.event
    return msgspec.json.encode({"type": event.type, "timestamp": event.timestamp, "data": event})


def event_id(webhook: Webhook, place: Place) -> str:
    """The same whenever the same entry is told to the same webhook, by whichever replica."""
    return "msg_" + sha256(f"{webhook.id}/{place.queue}/{place.seq}".encode()).hexdigest()[:32]
