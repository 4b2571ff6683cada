"""Manages webhooks: create, list, change, delete, test them, resend events, and list deliveries."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from mergeyard.domain import journal
from mergeyard.domain import webhooks as domain_webhooks
from mergeyard.domain.access import Token
from mergeyard.domain.timestamps import Instant
from mergeyard.ports import writes
from mergeyard.ports.external import AddressRefused, Clock, EncryptionError, SecretBox, Sender
from mergeyard.ports.store import MAX_DELIVERIES_PER_WEBHOOK, Store, VersionConflict
from mergeyard.service.audit_log import audit_entry, encode_actor
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.idempotency import IdempotentRequest, to_response_writes
from mergeyard.service.persistence import decode_record
from mergeyard.service.webhooks.delivery import (
    EndpointSecret,
    WebhookSender,
    create_signing_secret,
    decode_delivery,
    encode_payload,
)
from mergeyard.service.webhooks.events import EventPayload, EventPayloadBuilder

MAX_SHOWN_PATH_CHARS = 20
"""A longer first path segment may itself be a secret."""

PresentWebhook = Callable[[domain_webhooks.Webhook], bytes]
_decode_webhook = msgspec.json.Decoder(domain_webhooks.Webhook).decode


class WebhookChanges(Struct, frozen=True, kw_only=True):
    """The fields of a webhook to set; unset fields keep their value."""

    url: str | UnsetType = UNSET
    events: tuple[domain_webhooks.EventType, ...] | UnsetType = UNSET
    topics: tuple[domain_webhooks.Topic, ...] | UnsetType = UNSET
    description: str | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class WebhookClient(Struct, frozen=True):
    """The client of a request. Without a token it is the operator on the command line, who has access to everything."""

    token: Token | None = None
    idempotent_request: IdempotentRequest | None = None

    @property
    def actor(self) -> str:
        return encode_actor(self.token)

    def can_see(self, webhook: domain_webhooks.Webhook) -> bool:
        """A token limited to some repositories sees only webhooks whose topics are all in those repositories."""
        if self.token is None or not self.token.repos:
            return True
        return bool(webhook.topics) and all(self.token.can_access(topic.repo) for topic in webhook.topics)

    def can_see_delivery(self, delivery: domain_webhooks.Delivery) -> bool:
        return (
            self.token is None
            or delivery.journal_position is None
            or self.token.can_access(delivery.journal_position.key.repo)
        )

    def to_response_writes(self, response: bytes, now: Instant) -> tuple[writes.Write, ...]:
        return to_response_writes(self.idempotent_request, response, now)


OPERATOR = WebhookClient()


class StoredWebhook(Struct, frozen=True):
    version: int
    webhook: domain_webhooks.Webhook


class Webhooks:
    def __init__(self, store: Store, clock: Clock, sender: Sender, webhook_sender: WebhookSender) -> None:
        self._store = store
        self._clock = clock
        self._sender = sender
        self._webhook_sender = webhook_sender

    async def list_all(self) -> Sequence[StoredWebhook]:
        rows = await self._store.webhooks()
        return sorted(
            (StoredWebhook(row.version, _decode_webhook(row.body)) for row in rows),
            key=lambda stored: (stored.webhook.created_at, stored.webhook.id),
        )

    async def list_visible(self, requester: WebhookClient) -> list[domain_webhooks.Webhook]:
        return [stored.webhook for stored in await self.list_all() if requester.can_see(stored.webhook)]

    async def create(
        self,
        requester: WebhookClient,
        kind: domain_webhooks.WebhookKind,
        url: str,
        changes: WebhookChanges,
        present: PresentWebhook,
    ) -> tuple[domain_webhooks.Webhook, str | None]:
        """Returns the secret once: the stored response of an idempotent request does not contain it."""
        await self._check_address(url)
        webhook_id, now = uuid.uuid4().hex[:12], self._clock.now()
        secret = create_signing_secret() if kind is domain_webhooks.WebhookKind.WEBHOOK else ""
        blank = domain_webhooks.Webhook(
            id=webhook_id,
            kind=kind,
            redacted_url=redact_url(kind, url),
            encrypted_endpoint=self._encrypt(webhook_id, EndpointSecret(url, secret)),
            created_at=now,
        )
        webhook = self._apply_changes(blank, replace(changes, url=UNSET))
        response_writes = requester.to_response_writes(present(webhook), now)
        created = journal.WebhookCreated(at=now, actor=requester.actor, id=webhook_id, name=webhook.redacted_url)
        await self._store.commit(
            _build_save(webhook, 1), writes.StartConsumer(webhook.consumer), audit_entry(created), *response_writes
        )
        return webhook, secret or None

    async def update(
        self, requester: WebhookClient, webhook_id: str, changes: WebhookChanges, present: PresentWebhook
    ) -> bytes:
        if not isinstance(changes.url, UnsetType):
            await self._check_address(changes.url)
        while True:
            stored = await self.find(requester, webhook_id)
            changed = self._apply_changes(stored.webhook, changes)
            response, now = present(changed), self._clock.now()
            clear_stalled = (writes.ClearStalled(changed.consumer),) if changed.disabled is None else ()
            audit_write = _audit_change(stored.webhook, changed, requester.actor, now)
            try:
                await self._store.commit(
                    _build_save(changed, stored.version + 1),
                    *clear_stalled,
                    audit_write,
                    *requester.to_response_writes(response, now),
                )
            except VersionConflict:
                continue
            return response

    async def delete(self, requester: WebhookClient, webhook_id: str, response: bytes) -> None:
        webhook = (await self.find(requester, webhook_id)).webhook
        now = self._clock.now()
        deleted = journal.WebhookDeleted(at=now, actor=requester.actor, id=webhook_id, name=webhook.redacted_url)
        await self._store.commit(
            writes.DeleteWebhook(webhook_id),
            writes.DeleteConsumer(webhook.consumer),
            audit_entry(deleted),
            *requester.to_response_writes(response, now),
        )

    async def find(self, requester: WebhookClient, webhook_id: str) -> StoredWebhook:
        for stored in await self.list_all():
            if stored.webhook.id == webhook_id and requester.can_see(stored.webhook):
                return stored
        message = f"Webhook {webhook_id[:100]} does not exist. Call listWebhooks to see the existing ones."
        raise RequestRefused(Code.WEBHOOK_NOT_FOUND, message)

    async def list_deliveries(
        self, requester: WebhookClient, webhook_id: str, take: int
    ) -> list[domain_webhooks.Delivery]:
        """The deliveries that the requester can see: the webhook may have had topics of other repositories before."""
        await self.find(requester, webhook_id)
        found = map(decode_delivery, await self._store.deliveries(webhook_id, MAX_DELIVERIES_PER_WEBHOOK))
        return [delivery for delivery in found if requester.can_see_delivery(delivery)][:take]

    async def reencrypt_all(self) -> int:
        """Encrypts every webhook again with the newest key, and returns how many there are."""
        found = await self.list_all()
        for stored in found:
            webhook = stored.webhook
            try:
                endpoint = self._webhook_sender.decrypt(webhook)
            except EncryptionError as error:
                raise RequestRefused(Code.INVALID_REQUEST, f"Webhook {webhook.id}: {error}") from error
            reencrypted = replace(webhook, encrypted_endpoint=self._encrypt(webhook.id, endpoint))
            try:
                await self._store.commit(_build_save(reencrypted, stored.version + 1))
            except VersionConflict:
                raise RequestRefused(
                    Code.INVALID_REQUEST, f"Webhook {webhook.id} was changed at the same time. Try again."
                ) from None
        return len(found)

    async def is_current(self, webhook: domain_webhooks.Webhook) -> bool:
        return any(stored.webhook == webhook for stored in await self.list_all())

    async def disable(
        self, webhook: domain_webhooks.Webhook, reason: domain_webhooks.DisabledReason, message: str
    ) -> None:
        """Disables the webhook, unless it was changed at the same time: then the changed one gets another chance."""
        for stored in await self.list_all():
            if stored.webhook == webhook:
                now = self._clock.now()
                disabled = replace(webhook, disabled=domain_webhooks.Disabled(now, reason, message))
                audit_write = _audit_change(webhook, disabled, journal.SYSTEM_ACTOR, now)
                with suppress(VersionConflict):
                    await self._store.commit(_build_save(disabled, stored.version + 1), audit_write)

    def _apply_changes(self, webhook: domain_webhooks.Webhook, changes: WebhookChanges) -> domain_webhooks.Webhook:
        if not isinstance(changes.url, UnsetType):
            webhook = self._change_url(webhook, changes.url)
        if not isinstance(changes.events, UnsetType):
            webhook = replace(webhook, events=changes.events)
        if not isinstance(changes.topics, UnsetType):
            webhook = replace(webhook, topics=changes.topics)
        if not isinstance(changes.description, UnsetType):
            webhook = replace(webhook, description=changes.description)
        if changes.enabled is True:
            webhook = replace(webhook, disabled=None)
        elif changes.enabled is False and webhook.disabled is None:
            webhook = replace(
                webhook, disabled=domain_webhooks.Disabled(self._clock.now(), domain_webhooks.DisabledReason.ASKED)
            )
        return webhook

    def _change_url(self, webhook: domain_webhooks.Webhook, url: str) -> domain_webhooks.Webhook:
        """Changes the address and keeps the secret."""
        try:
            endpoint = replace(self._webhook_sender.decrypt(webhook), url=url)
        except EncryptionError as error:
            raise RequestRefused(Code.INVALID_REQUEST, str(error)) from error
        return replace(
            webhook, redacted_url=redact_url(webhook.kind, url), encrypted_endpoint=self._encrypt(webhook.id, endpoint)
        )

    def _encrypt(self, webhook_id: str, endpoint: EndpointSecret) -> bytes:
        try:
            return self._webhook_sender.encrypt(webhook_id, endpoint)
        except EncryptionError as error:
            raise RequestRefused(Code.INVALID_REQUEST, str(error)) from error

    async def _check_address(self, url: str) -> None:
        try:
            await self._sender.check(url)
        except AddressRefused as refused:
            raise RequestRefused(Code.ADDRESS_NOT_ALLOWED, str(refused)) from None


def redact_url(kind: domain_webhooks.WebhookKind, url: str) -> str:
    """The host and at most the first path segment: many receivers have a secret in the rest.

    https://discord.com/api/webhooks/1234/secret is shown as https://discord.com/api/…
    """
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    first, _, rest = parts.path.removeprefix("/").partition("/")
    if kind is domain_webhooks.WebhookKind.SLACK or len(first) > MAX_SHOWN_PATH_CHARS:
        return f"{origin}/…"
    return origin + (f"/{first}" if first else "") + ("/…" if rest else "?…" if parts.query else "")


def _build_save(webhook: domain_webhooks.Webhook, version: int) -> writes.SaveWebhook:
    return writes.SaveWebhook(writes.WebhookRow(webhook.id, version, msgspec.json.encode(webhook)))


def _audit_change(
    before: domain_webhooks.Webhook, after: domain_webhooks.Webhook, actor: str, now: Instant
) -> writes.Write:
    message = ", ".join(_list_changes(before, after)) or "nothing"
    return audit_entry(
        journal.WebhookChanged(at=now, actor=actor, id=after.id, name=after.redacted_url, detail=message)
    )


def _list_changes(before: domain_webhooks.Webhook, after: domain_webhooks.Webhook) -> Iterator[str]:
    if before.encrypted_endpoint != after.encrypted_endpoint:
        yield "address"
    if before.events != after.events:
        yield "events"
    if before.topics != after.topics:
        yield "queues"
    if before.description != after.description:
        yield "description"
    if before.disabled != after.disabled:
        yield "enabled" if after.disabled is None else f"disabled ({after.disabled.reason})"


PresentDelivery = Callable[[domain_webhooks.Delivery], bytes]


class WebhookTester:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        webhooks: Webhooks,
        payload_builder: EventPayloadBuilder,
        sender: WebhookSender,
    ) -> None:
        self._store = store
        self._clock = clock
        self._webhooks = webhooks
        self._payload_builder = payload_builder
        self._sender = sender

    async def send_test(self, requester: WebhookClient, webhook_id: str, present: PresentDelivery) -> bytes:
        webhook = (await self._webhooks.find(requester, webhook_id)).webhook
        event = f"msg_{uuid.uuid4().hex}"
        delivery = await self._sender.deliver(webhook, event, self._payload_builder.build_test(self._clock.now()))
        return await self._record(requester, webhook, delivery, present, journal.WebhookTested)

    async def resend_event(
        self, requester: WebhookClient, webhook_id: str, event: str, present: PresentDelivery
    ) -> bytes:
        """Resends under the same event id, so that a receiver can ignore a duplicate."""
        webhook = (await self._webhooks.find(requester, webhook_id)).webhook
        position = await self._find_position(requester, webhook, event)
        payload = None if position is None else await self._build_payload(position)
        if payload is None:
            message = f"Event {event[:100]} is not among the last ones of this webhook. Call listWebhookDeliveries."
            raise RequestRefused(Code.EVENT_NOT_FOUND, message)
        delivery = await self._sender.deliver(webhook, event, payload, position)
        return await self._record(requester, webhook, delivery, present, journal.EventResent)

    async def read_payload(self, requester: WebhookClient, webhook_id: str, event: str) -> bytes | None:
        """The payload, built again from the journal; None for a test, or if the entry or the delivery is deleted."""
        webhook = (await self._webhooks.find(requester, webhook_id)).webhook
        position = await self._find_position(requester, webhook, event)
        payload = None if position is None else await self._build_payload(position)
        return None if payload is None else encode_payload(webhook, payload)

    async def _record(
        self,
        requester: WebhookClient,
        webhook: domain_webhooks.Webhook,
        delivery: domain_webhooks.Delivery,
        present: PresentDelivery,
        action_type: type[journal.WebhookTested | journal.EventResent],
    ) -> bytes:
        response, now = present(delivery), self._clock.now()
        message = f"{delivery.event} {'was delivered' if delivery.delivered else 'was not delivered'}"
        action = action_type(at=now, actor=requester.actor, id=webhook.id, name=webhook.redacted_url, detail=message)
        await self._store.commit(
            self._sender.to_save_delivery(webhook, delivery),
            audit_entry(action),
            *requester.to_response_writes(response, now),
        )
        return response

    async def _find_position(
        self, requester: WebhookClient, webhook: domain_webhooks.Webhook, event: str
    ) -> domain_webhooks.JournalPosition | None:
        body = await self._store.delivery(webhook.id, event)
        delivery = None if body is None else decode_delivery(body)
        return None if delivery is None or not requester.can_see_delivery(delivery) else delivery.journal_position

    async def _build_payload(self, position: domain_webhooks.JournalPosition) -> EventPayload | None:
        entries = await self._store.entries(position.queue, position.seq - 1, 1)
        if not entries or entries[0].seq != position.seq:
            return None
        return await self._payload_builder.build(position.key, position.queue, decode_record(entries[0].body))


class WebhookServices:
    def __init__(self, store: Store, clock: Clock, sender: Sender, secret_box: SecretBox, public_url: str) -> None:
        self.store = store
        self.clock = clock
        self.payload_builder = EventPayloadBuilder(store, public_url)
        self.sender = WebhookSender(store, clock, sender, secret_box)
        self.webhooks = Webhooks(store, clock, sender, self.sender)
        self.tester = WebhookTester(store, clock, self.webhooks, self.payload_builder, self.sender)
