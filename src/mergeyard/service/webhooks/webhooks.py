"""Manages webhooks: create, list, change, delete, test them, resend events, and list deliveries."""

import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from mergeyard.domain import journal
from mergeyard.domain.access import Token
from mergeyard.domain.timestamps import Instant
from mergeyard.domain.webhooks import (
    Delivery,
    Disabled,
    DisabledReason,
    EventType,
    JournalPosition,
    Topic,
    Webhook,
    WebhookKind,
)
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

CHANGED_FIELD_LABELS = {
    "encrypted_endpoint": "address",
    "events": "events",
    "topics": "queues",
    "description": "description",
}

PresentWebhook = Callable[[Webhook], bytes]
PresentDelivery = Callable[[Delivery], bytes]
_decode_webhook = msgspec.json.Decoder(Webhook).decode


class WebhookChanges(Struct, frozen=True, kw_only=True):
    """The fields of a webhook to set; unset fields keep their value."""

    url: str | UnsetType = UNSET
    events: tuple[EventType, ...] | UnsetType = UNSET
    topics: tuple[Topic, ...] | UnsetType = UNSET
    description: str | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class WebhookClient(Struct, frozen=True):
    """The client of a request. Without a token it is the operator on the command line, who has access to everything."""

    token: Token | None = None
    idempotent_request: IdempotentRequest | None = None

    @property
    def actor(self) -> str:
        return encode_actor(self.token)

    def can_see(self, webhook: Webhook) -> bool:
        """A token limited to some repositories sees only webhooks whose topics are all in those repositories."""
        if self.token is None or not self.token.repos:
            return True
        return bool(webhook.topics) and all(self.token.can_access(topic.repo) for topic in webhook.topics)

    def can_see_delivery(self, delivery: Delivery) -> bool:
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
    webhook: Webhook


class Webhooks:
    def __init__(self, store: Store, clock: Clock, sender: Sender, secret_box: SecretBox, public_url: str) -> None:
        self.store = store
        self.sender = WebhookSender(store, clock, sender, secret_box)
        self.payload_builder = EventPayloadBuilder(store, public_url)
        self._clock = clock
        self._check_url = sender.check

    async def list_all(self) -> Sequence[StoredWebhook]:
        rows = await self.store.webhooks()
        return sorted(
            (StoredWebhook(row.version, _decode_webhook(row.body)) for row in rows),
            key=lambda stored: (stored.webhook.created_at, stored.webhook.id),
        )

    async def list_visible(self, requester: WebhookClient) -> list[Webhook]:
        return [stored.webhook for stored in await self.list_all() if requester.can_see(stored.webhook)]

    async def create(
        self,
        requester: WebhookClient,
        kind: WebhookKind,
        url: str,
        changes: WebhookChanges,
        present: PresentWebhook,
    ) -> tuple[Webhook, str | None]:
        """Returns the secret once: the stored response of an idempotent request does not contain it."""
        await self._check_address(url)
        webhook_id, now = uuid.uuid4().hex[:12], self._clock.now()
        secret = create_signing_secret() if kind is WebhookKind.WEBHOOK else ""
        with _encryption_errors_refused():
            encrypted_endpoint = self.sender.encrypt(webhook_id, EndpointSecret(url, secret))
        blank = Webhook(
            id=webhook_id,
            kind=kind,
            redacted_url=redact_url(kind, url),
            encrypted_endpoint=encrypted_endpoint,
            created_at=now,
        )
        webhook = self._apply_changes(blank, replace(changes, url=UNSET))
        response_writes = requester.to_response_writes(present(webhook), now)
        created = journal.WebhookCreated(at=now, actor=requester.actor, id=webhook_id, name=webhook.redacted_url)
        await self.store.commit(
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
                await self.store.commit(
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
        await self.store.commit(
            writes.DeleteWebhook(webhook_id),
            writes.DeleteConsumer(webhook.consumer),
            audit_entry(deleted),
            *requester.to_response_writes(response, now),
        )

    async def find(self, requester: WebhookClient, webhook_id: str) -> StoredWebhook:
        for stored in await self.list_all():
            if stored.webhook.id == webhook_id and requester.can_see(stored.webhook):
                return stored
        message = f"There is no webhook with the id {webhook_id[:100]}: look it up in the list of webhooks."
        raise RequestRefused(Code.WEBHOOK_NOT_FOUND, message)

    async def list_deliveries(self, requester: WebhookClient, webhook_id: str, take: int) -> list[Delivery]:
        """The deliveries that the requester can see: the webhook may have had topics of other repositories before."""
        await self.find(requester, webhook_id)
        found = map(decode_delivery, await self.store.deliveries(webhook_id, MAX_DELIVERIES_PER_WEBHOOK))
        return [delivery for delivery in found if requester.can_see_delivery(delivery)][:take]

    async def send_test(self, requester: WebhookClient, webhook_id: str, present: PresentDelivery) -> bytes:
        webhook = (await self.find(requester, webhook_id)).webhook
        event = f"msg_{uuid.uuid4().hex}"
        delivery = await self.sender.deliver(webhook, event, self.payload_builder.build_test(self._clock.now()))
        return await self._record(requester, webhook, delivery, present, journal.WebhookTested)

    async def resend_event(
        self, requester: WebhookClient, webhook_id: str, event: str, present: PresentDelivery
    ) -> bytes:
        """Resends under the same event id, so that a receiver can ignore a duplicate."""
        webhook = (await self.find(requester, webhook_id)).webhook
        found = await self._find_payload(requester, webhook, event)
        if found is None:
            message = f"Event {event[:100]} is not among the last deliveries of this webhook: look it up in their list."
            raise RequestRefused(Code.EVENT_NOT_FOUND, message)
        position, payload = found
        delivery = await self.sender.deliver(webhook, event, payload, position)
        return await self._record(requester, webhook, delivery, present, journal.EventResent)

    async def read_payload(self, requester: WebhookClient, webhook_id: str, event: str) -> bytes | None:
        """None for a test, or if the entry or the delivery is deleted."""
        webhook = (await self.find(requester, webhook_id)).webhook
        found = await self._find_payload(requester, webhook, event)
        return None if found is None else encode_payload(webhook, found[1])

    async def _record(
        self,
        requester: WebhookClient,
        webhook: Webhook,
        delivery: Delivery,
        present: PresentDelivery,
        action_type: type[journal.WebhookTested | journal.EventResent],
    ) -> bytes:
        response, now = present(delivery), self._clock.now()
        message = f"{delivery.event} {'was delivered' if delivery.delivered else 'was not delivered'}"
        action = action_type(at=now, actor=requester.actor, id=webhook.id, name=webhook.redacted_url, detail=message)
        await self.store.commit(
            self.sender.to_save_delivery(webhook, delivery),
            audit_entry(action),
            *requester.to_response_writes(response, now),
        )
        return response

    async def _find_payload(
        self, requester: WebhookClient, webhook: Webhook, event: str
    ) -> tuple[JournalPosition, EventPayload] | None:
        """The payload of a delivered event, built again from the journal."""
        delivery = await self.sender.find_last_delivery(webhook, event)
        if delivery is None or delivery.journal_position is None or not requester.can_see_delivery(delivery):
            return None
        position = delivery.journal_position
        entries = await self.store.entries(position.queue, position.seq - 1, 1)
        if not entries or entries[0].seq != position.seq:
            return None
        record = decode_record(entries[0].body)
        return position, await self.payload_builder.build(position.key, position.queue, record)

    async def reencrypt_all(self) -> int:
        """Encrypts every webhook again with the newest key, and returns how many there are."""
        found = await self.list_all()
        for stored in found:
            webhook = stored.webhook
            with _encryption_errors_refused(f"Webhook {webhook.id}: "):
                encrypted_endpoint = self.sender.encrypt(webhook.id, self.sender.decrypt(webhook))
            reencrypted = replace(webhook, encrypted_endpoint=encrypted_endpoint)
            try:
                await self.store.commit(_build_save(reencrypted, stored.version + 1))
            except VersionConflict:
                message = f"Webhook {webhook.id} was changed at the same time. Try again."
                raise RequestRefused(Code.INVALID_REQUEST, message) from None
        return len(found)

    async def is_current(self, webhook: Webhook) -> bool:
        return any(stored.webhook == webhook for stored in await self.list_all())

    async def disable(self, webhook: Webhook, reason: DisabledReason, message: str) -> None:
        """Disables the webhook, unless it was changed at the same time: then the changed one gets another chance."""
        for stored in await self.list_all():
            if stored.webhook == webhook:
                now = self._clock.now()
                disabled = replace(webhook, disabled=Disabled(now, reason, message))
                audit_write = _audit_change(webhook, disabled, journal.SYSTEM_ACTOR, now)
                with suppress(VersionConflict):
                    await self.store.commit(_build_save(disabled, stored.version + 1), audit_write)

    def _apply_changes(self, webhook: Webhook, changes: WebhookChanges) -> Webhook:
        if not isinstance(changes.url, UnsetType):
            webhook = self._change_url(webhook, changes.url)
        values = {name: getattr(changes, name) for name in ("events", "topics", "description")}
        webhook = replace(webhook, **{name: value for name, value in values.items() if value is not UNSET})
        if changes.enabled is True:
            webhook = replace(webhook, disabled=None)
        elif changes.enabled is False and webhook.disabled is None:
            webhook = replace(webhook, disabled=Disabled(self._clock.now(), DisabledReason.ASKED))
        return webhook

    def _change_url(self, webhook: Webhook, url: str) -> Webhook:
        """Changes the address and keeps the secret."""
        with _encryption_errors_refused():
            endpoint = replace(self.sender.decrypt(webhook), url=url)
            encrypted_endpoint = self.sender.encrypt(webhook.id, endpoint)
        return replace(webhook, redacted_url=redact_url(webhook.kind, url), encrypted_endpoint=encrypted_endpoint)

    async def _check_address(self, url: str) -> None:
        try:
            await self._check_url(url)
        except AddressRefused as refused:
            raise RequestRefused(Code.ADDRESS_NOT_ALLOWED, str(refused)) from None


@contextmanager
def _encryption_errors_refused(prefix: str = "") -> Generator[None]:
    try:
        yield
    except EncryptionError as error:
        raise RequestRefused(Code.INVALID_REQUEST, f"{prefix}{error}") from error


def redact_url(kind: WebhookKind, url: str) -> str:
    """The host and at most the first path segment: many receivers have a secret in the rest.

    https://discord.com/api/webhooks/1234/secret is shown as https://discord.com/api/…
    """
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    first, _, rest = parts.path.removeprefix("/").partition("/")
    if kind is WebhookKind.SLACK or len(first) > MAX_SHOWN_PATH_CHARS:
        return f"{origin}/…"
    return origin + (f"/{first}" if first else "") + ("/…" if rest else "?…" if parts.query else "")


def _build_save(webhook: Webhook, version: int) -> writes.SaveWebhook:
    return writes.SaveWebhook(writes.WebhookRow(webhook.id, version, msgspec.json.encode(webhook)))


def _audit_change(before: Webhook, after: Webhook, actor: str, now: Instant) -> writes.Write:
    message = ", ".join(_list_changes(before, after)) or "nothing"
    return audit_entry(
        journal.WebhookChanged(at=now, actor=actor, id=after.id, name=after.redacted_url, detail=message)
    )


def _list_changes(before: Webhook, after: Webhook) -> Iterator[str]:
    for name, label in CHANGED_FIELD_LABELS.items():
        if getattr(before, name) != getattr(after, name):
            yield label
    if before.disabled != after.disabled:
        yield "enabled" if after.disabled is None else f"disabled ({after.disabled.reason})"
