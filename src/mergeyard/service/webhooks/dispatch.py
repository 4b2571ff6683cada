"""Delivers events to each webhook in order, follows changes of webhooks, and serves the event feed."""

import asyncio
from collections.abc import Sequence
from hashlib import blake2b

from msgspec import Struct

from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.domain.timestamps import DAY, HOUR, later
from mergeyard.domain.webhooks import Delivery, DisabledReason, JournalPosition, Webhook
from mergeyard.ports.store import LeaseLost, StoredEntry
from mergeyard.ports.writes import MarkStalled
from mergeyard.service.persistence import decode_record
from mergeyard.service.registry import ChangeWaiter, QueueRegistry
from mergeyard.service.webhooks.delivery import derive_event_id
from mergeyard.service.webhooks.events import EventPayload, EventPayloadBuilder, get_event_type
from mergeyard.service.webhooks.journal_consumers import ConsumerOptions, JournalConsumers, PartiallyDelivered
from mergeyard.service.webhooks.webhooks import Webhooks

DISABLE_AFTER_MS = 3 * DAY
WEBHOOK_CONSUMER_OPTIONS = ConsumerOptions(batch_size=10, max_retry_delay_ms=HOUR)
HTTP_GONE = 410
MAX_CONCURRENT_DELIVERIES = 4
"""Per webhook, so that a receiver of many queues is not overloaded, and a slow one does not delay others."""


class WebhookConsumer:
    def __init__(self, webhook: Webhook, webhooks: Webhooks) -> None:
        self._webhook = webhook
        self._webhooks = webhooks
        self._store = webhooks.store
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_DELIVERIES)

    @property
    def name(self) -> str:
        return self._webhook.consumer

    async def consume(self, key: QueueKey, queue: QueueId, entries: Sequence[StoredEntry]) -> None:
        """Stops if the webhook was changed or deleted: a new consumer replaces this one."""
        if not await self._webhooks.is_current(self._webhook):
            raise LeaseLost(f"Webhook {self._webhook.id} was changed or deleted.")
        delivered_up_to: int | None = None
        for entry in entries:
            delivery = await self._deliver_entry(key, queue, entry)
            if delivery is not None and not delivery.delivered:
                await self._disable_if_failing(queue, delivery)
                raise PartiallyDelivered(delivered_up_to, f"{delivery.status or ''} {delivery.detail}".strip())
            delivered_up_to = entry.seq

    async def _deliver_entry(self, key: QueueKey, queue: QueueId, entry: StoredEntry) -> Delivery | None:
        """None if the webhook does not want this event."""
        record, sender = decode_record(entry.body), self._webhooks.sender
        if not self._webhook.is_subscribed_to(key, get_event_type(record)):
            return None
        position = JournalPosition(key, queue, entry.seq)
        payload = await self._webhooks.payload_builder.build(key, queue, record)
        async with self._slots:
            delivery = await sender.deliver(self._webhook, derive_event_id(self._webhook, position), payload, position)
        await self._store.commit(sender.to_save_delivery(self._webhook, delivery))
        return delivery

    async def _disable_if_failing(self, queue: QueueId, delivery: Delivery) -> None:
        if delivery.status == HTTP_GONE:
            await self._webhooks.disable(self._webhook, DisabledReason.GONE, delivery.detail)
            return
        await self._store.commit(MarkStalled(self.name, queue, delivery.at))
        stalled_since = await self._store.stalled_since(self.name, queue)
        if stalled_since is not None and delivery.at - stalled_since >= DISABLE_AFTER_MS:
            await self._webhooks.disable(self._webhook, DisabledReason.FAILING, delivery.detail)


class WebhookSubscriptions:
    def __init__(self, webhooks: Webhooks, consumers: JournalConsumers) -> None:
        self._webhooks = webhooks
        self._consumers = consumers
        self._versions: dict[str, int] = {}
        """The version of each webhook that its consumer was started with, by consumer name."""

    async def refresh(self) -> None:
        """Compares with the store, because other replicas and CLI commands change webhooks too."""
        stored = {row.webhook.consumer: row for row in await self._webhooks.list_all()}
        for deleted in self._versions.keys() - stored.keys():
            del self._versions[deleted]
            self._consumers.remove(deleted)
        for name, row in stored.items():
            if self._versions.get(name) != row.version:
                self._versions[name] = row.version
                if row.webhook.disabled is None:
                    self._consumers.add(WebhookConsumer(row.webhook, self._webhooks), WEBHOOK_CONSUMER_OPTIONS)
                else:
                    self._consumers.remove(name)


HALF_BITS = 29
"""A cursor has 58 bits, so that it fits into the 18 digits that clients can send."""
HALF_MASK = (1 << HALF_BITS) - 1
SEQ_BITS = 38
"""Enough for 270 billion entries. The other bits are zero, by which a cursor of another queue is recognized."""
FEISTEL_ROUNDS = 6


class EventFeedItem(Struct, frozen=True):
    """An event and its cursor; the next event is after it."""

    cursor: int
    payload: EventPayload


class EventFeed:
    def __init__(self, registry: QueueRegistry, payload_builder: EventPayloadBuilder, live: ChangeWaiter) -> None:
        self._registry = registry
        self._payload_builder = payload_builder
        self._live = live

    async def read_after(self, key: QueueKey, cursor: int, take: int, wait_ms: int) -> list[EventFeedItem]:
        """Reads events, oldest first, and waits up to `wait_ms` for the first one. Also returns the deletion of the
        queue."""
        queue_actor, until = await self._registry.get(key), later(self._registry.clock.now(), wait_ms)
        seq = decode_cursor(queue_actor.id, cursor)
        while True:
            queue, is_deleted = queue_actor.queue, queue_actor.is_closed
            entries = await self._registry.store.entries(queue_actor.id, seq, take)
            if entries or is_deleted or not await self._live.wait_for_change(queue_actor, queue, until):
                break
        payloads = [
            await self._payload_builder.build(key, queue_actor.id, decode_record(entry.body)) for entry in entries
        ]
        cursors = [encode_cursor(queue_actor.id, entry.seq) for entry in entries]
        return [EventFeedItem(*item) for item in zip(cursors, payloads, strict=True)]


def encode_cursor(queue: QueueId, seq: int) -> int:
    """Encodes a journal position so that a client learns nothing about other queues.

    The journal numbers the entries of all queues together. A Feistel network permutes that number under a key that only
    the database holds: the queue's id, which is random and which no response contains. 0 means the beginning, so an
    entry that would be encoded as 0 gets the encoding of 0 instead.
    """
    return _permute(queue, seq) or _permute(queue, 0)


def decode_cursor(queue: QueueId, cursor: int) -> int:
    """Returns 0, the beginning, for a cursor of another queue, for example one that existed before for the same
    branch."""
    if not 0 < cursor < 1 << 2 * HALF_BITS:
        return 0
    backwards = range(FEISTEL_ROUNDS)[::-1]
    seq = _permute(queue, cursor, backwards) or _permute(queue, 0, backwards)
    return seq if seq < 1 << SEQ_BITS else 0


def _permute(queue: QueueId, number: int, rounds: range = range(FEISTEL_ROUNDS)) -> int:
    """The same rounds in the opposite order revert it."""
    left, right = number >> HALF_BITS, number & HALF_MASK
    for step in rounds:
        left, right = right, left ^ _mix(queue, step, right)
    return right << HALF_BITS | left


def _mix(queue: QueueId, step: int, half: int) -> int:
    digest = blake2b(half.to_bytes(4), digest_size=4, key=queue.encode()[:64], salt=step.to_bytes(1))
    return int.from_bytes(digest.digest()) & HALF_MASK
