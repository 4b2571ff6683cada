"""Sends something to a webhook because somebody asks for it: a test, or an event once more."""

import uuid
from collections.abc import Callable

from mergeyard.domain.journal import EventResent, WebhookTested
from mergeyard.domain.webhooks import Delivery, Place, Webhook
from mergeyard.ports.clock import Clock
from mergeyard.ports.store import Store
from mergeyard.service.errors import Code, Refused
from mergeyard.service.journaling import noted
from mergeyard.service.shelving import decode_record
from mergeyard.service.telling.courier import Courier, contents, decode_delivery
from mergeyard.service.telling.events import Stories, Story
from mergeyard.service.telling.webhooks import Asker, Webhooks

Present = Callable[[Delivery], bytes]


class Trying:
    def __init__(self, store: Store, clock: Clock, webhooks: Webhooks, stories: Stories, courier: Courier) -> None:
        self._store = store
        self._clock = clock
        self._webhooks = webhooks
        self._stories = stories
        self._courier = courier

    async def test(self, asker: Asker, name: str, present: Present) -> bytes:
        webhook = (await self._webhooks.find(asker, name)).webhook
        test = f"msg_{uuid.uuid4().hex}"
        delivery = await self._courier.deliver(webhook, test, self._stories.test(self._clock.now()))
        return await self._kept(asker, webhook, delivery, present, WebhookTested)

    async def resend(self, asker: Asker, name: str, event: str, present: Present) -> bytes:
        """Under the name that it had, so that a receiver that has it already can tell."""
        webhook = (await self._webhooks.find(asker, name)).webhook
        place = await self._place(asker, webhook, event)
        story = None if place is None else await self._story(place)
        if story is None:
            words = f"{event[:100]} is not among the last events of this webhook: listWebhookDeliveries shows them."
            raise Refused(Code.EVENT_NOT_FOUND, words)
        delivery = await self._courier.deliver(webhook, event, story, place)
        return await self._kept(asker, webhook, delivery, present, EventResent)

    async def payload(self, asker: Asker, name: str, event: str) -> bytes | None:
        """What was sent, as the journal still tells it; None for a test, and for what is not known any more."""
        webhook = (await self._webhooks.find(asker, name)).webhook
        place = await self._place(asker, webhook, event)
        story = None if place is None else await self._story(place)
        return None if story is None else contents(webhook, story)

    async def _kept(
        self,
        asker: Asker,
        webhook: Webhook,
        delivery: Delivery,
        present: Present,
        kind: type[WebhookTested | EventResent],
    ) -> bytes:
        answer, now = present(delivery), self._clock.now()
        words = f"{delivery.event} {'arrived' if delivery.delivered else 'did not arrive'}"
        deed = kind(at=now, actor=asker.actor, id=webhook.id, name=webhook.shown_url, words=words)
        await self._store.commit(self._courier.kept(webhook, delivery), noted(deed), *asker.kept(answer, now))
        return answer

    async def _place(self, asker: Asker, webhook: Webhook, event: str) -> Place | None:
        body = await self._store.delivery(webhook.id, event)
        delivery = None if body is None else decode_delivery(body)
        return None if delivery is None or not asker.sees_delivery(delivery) else delivery.place

    async def _story(self, place: Place) -> Story | None:
        entries = await self._store.entries(place.queue, place.seq - 1, 1)
        if not entries or entries[0].seq != place.seq:
            return None
        return await self._stories.of(place.key, place.queue, decode_record(entries[0].body))
