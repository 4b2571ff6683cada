"""Tells one webhook of what happens, event by event, and gives up when nobody has listened for days."""

import asyncio
from collections.abc import Sequence

from mergeyard.domain.ids import QueueId
from mergeyard.domain.instants import DAY, HOUR
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.webhooks import Delivery, Place, Webhook, WhyDisabled
from mergeyard.ports.store import Relieved, StoredEntry
from mergeyard.ports.writes import NoteStuck
from mergeyard.service.shelving import decode_record
from mergeyard.service.telling.courier import event_id
from mergeyard.service.telling.events import type_of
from mergeyard.service.telling.following import Halfway, Pace
from mergeyard.service.telling.office import Office

PATIENCE = 3 * DAY
PACE = Pace(at_a_time=10, longest_wait=HOUR)
GONE = 410
AT_ONCE = 4
"""A receiver of many queues is not overrun, and one that is slow holds up nobody else's."""


class Reporter:
    def __init__(self, webhook: Webhook, office: Office) -> None:
        self._webhook = webhook
        self._office = office
        self._store = office.store
        self._at_once = asyncio.Semaphore(AT_ONCE)

    @property
    def name(self) -> str:
        return self._webhook.teller

    async def tell(self, key: QueueKey, queue: QueueId, entries: Sequence[StoredEntry]) -> None:
        """A webhook that was changed meanwhile, or deleted with all that is known of it, is somebody else's."""
        if not await self._office.webhooks.is_current(self._webhook):
            raise Relieved(f"Webhook {self._webhook.id} was changed.")
        told: int | None = None
        for entry in entries:
            delivery = await self._tell_of(key, queue, entry)
            if delivery is not None and not delivery.delivered:
                await self._lose_patience(queue, delivery)
                raise Halfway(told, f"{delivery.status or ''} {delivery.words}".strip())
            told = entry.seq

    async def _tell_of(self, key: QueueKey, queue: QueueId, entry: StoredEntry) -> Delivery | None:
        """None when it is not wanted there."""
        record, courier = decode_record(entry.body), self._office.courier
        if not self._webhook.wants(key, type_of(record)):
            return None
        place, story = Place(key, queue, entry.seq), await self._office.stories.of(key, queue, record)
        async with self._at_once:
            delivery = await courier.deliver(self._webhook, event_id(self._webhook, place), story, place)
        await self._store.commit(courier.kept(self._webhook, delivery))
        return delivery

    async def _lose_patience(self, queue: QueueId, delivery: Delivery) -> None:
        if delivery.status == GONE:
            await self._office.webhooks.disable(self._webhook, WhyDisabled.GONE, delivery.words)
            return
        await self._store.commit(NoteStuck(self.name, queue, delivery.at))
        since = await self._store.stuck_since(self.name, queue)
        if since is not None and delivery.at - since >= PATIENCE:
            await self._office.webhooks.disable(self._webhook, WhyDisabled.FAILING, delivery.words)
