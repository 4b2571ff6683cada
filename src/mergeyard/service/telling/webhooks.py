"""What operators do with webhooks: create, list, change, delete, test, and send an event again."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import OURSELVES, WebhookChanged, WebhookCreated, WebhookDeleted
from mergeyard.domain.tokens import Token
from mergeyard.domain.webhooks import Delivery, Disabled, EventType, Topic, Webhook, WebhookKind, WhyDisabled
from mergeyard.ports.clock import Clock
from mergeyard.ports.sealing import SealTrouble
from mergeyard.ports.sending import AddressRefused, Sender
from mergeyard.ports.store import DELIVERIES_KEPT, Outrun, Store
from mergeyard.ports.writes import (
    BeginTelling,
    DropWebhook,
    ForgetTeller,
    SaveWebhook,
    TakeHeart,
    WebhookRow,
    Write,
)
from mergeyard.service.errors import Code, Refused
from mergeyard.service.journaling import actor_of, noted
from mergeyard.service.repeating import Repeat, kept
from mergeyard.service.telling.courier import Courier, Letterbox, decode_delivery
from mergeyard.service.telling.signing import new_secret

MAX_SHOWN_PATH_CHARS = 20
"""A longer first part of a path may be a secret by itself."""

Present = Callable[[Webhook], bytes]
decode = msgspec.json.Decoder(Webhook).decode


class Wishes(Struct, frozen=True, kw_only=True):
    """What somebody wants a webhook to be; what is not given stays as it is."""

    url: str | UnsetType = UNSET
    events: tuple[EventType, ...] | UnsetType = UNSET
    topics: tuple[Topic, ...] | UnsetType = UNSET
    description: str | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class Asker(Struct, frozen=True):
    """Who asks, and whether it may ask again. Without a token it is the operator, who sees everything."""

    token: Token | None = None
    repeat: Repeat | None = None

    @property
    def actor(self) -> str:
        return actor_of(self.token)

    def sees(self, webhook: Webhook) -> bool:
        """Whoever is limited to some repositories sees webhooks that tell of nothing else."""
        if self.token is None or not self.token.repos:
            return True
        return bool(webhook.topics) and all(self.token.sees(topic.repo) for topic in webhook.topics)

    def sees_delivery(self, delivery: Delivery) -> bool:
        return self.token is None or delivery.place is None or self.token.sees(delivery.place.key.repo)

    def kept(self, answer: bytes, now: Instant) -> tuple[Write, ...]:
        return kept(self.repeat, answer, now)


OPERATOR = Asker()


class Stored(Struct, frozen=True):
    version: int
    webhook: Webhook


class Webhooks:
    def __init__(self, store: Store, clock: Clock, sender: Sender, courier: Courier) -> None:
        self._store = store
        self._clock = clock
        self._sender = sender
        self._courier = courier

    async def all(self) -> Sequence[Stored]:
        rows = await self._store.webhooks()
        return sorted(
            (Stored(row.version, decode(row.body)) for row in rows),
            key=lambda stored: (stored.webhook.created_at, stored.webhook.id),
        )

    async def seen_by(self, asker: Asker) -> list[Webhook]:
        return [stored.webhook for stored in await self.all() if asker.sees(stored.webhook)]

    async def create(
        self, asker: Asker, kind: WebhookKind, url: str, wishes: Wishes, present: Present
    ) -> tuple[Webhook, str | None]:
        """The secret is shown once: the answer that is kept to be repeated does not hold it."""
        await self._check(url)
        name, now = uuid.uuid4().hex[:12], self._clock.now()
        secret = new_secret() if kind is WebhookKind.WEBHOOK else ""
        blank = Webhook(
            id=name,
            kind=kind,
            shown_url=shown(kind, url),
            sealed=self._sealed(name, Letterbox(url, secret)),
            created_at=now,
        )
        webhook = self._changed(blank, replace(wishes, url=UNSET))
        kept = asker.kept(present(webhook), now)
        created = WebhookCreated(at=now, actor=asker.actor, id=name, name=webhook.shown_url)
        await self._store.commit(_saved(webhook, 1), BeginTelling(webhook.teller), noted(created), *kept)
        return webhook, secret or None

    async def update(self, asker: Asker, name: str, wishes: Wishes, present: Present) -> bytes:
        if not isinstance(wishes.url, UnsetType):
            await self._check(wishes.url)
        while True:
            stored = await self.find(asker, name)
            changed = self._changed(stored.webhook, wishes)
            answer, now = present(changed), self._clock.now()
            heart = (TakeHeart(changed.teller),) if changed.disabled is None else ()
            note = _noted_change(stored.webhook, changed, asker.actor, now)
            try:
                await self._store.commit(_saved(changed, stored.version + 1), *heart, note, *asker.kept(answer, now))
            except Outrun:
                continue
            return answer

    async def delete(self, asker: Asker, name: str, answer: bytes) -> None:
        webhook = (await self.find(asker, name)).webhook
        now = self._clock.now()
        deleted = WebhookDeleted(at=now, actor=asker.actor, id=name, name=webhook.shown_url)
        await self._store.commit(
            DropWebhook(name), ForgetTeller(webhook.teller), noted(deleted), *asker.kept(answer, now)
        )

    async def find(self, asker: Asker, name: str) -> Stored:
        for stored in await self.all():
            if stored.webhook.id == name and asker.sees(stored.webhook):
                return stored
        words = f"There is no webhook {name[:100]}: listWebhooks shows those there are."
        raise Refused(Code.WEBHOOK_NOT_FOUND, words)

    async def deliveries(self, asker: Asker, name: str, take: int) -> list[Delivery]:
        """Those that the asker may see: the webhook may have told of other repositories before it was changed."""
        await self.find(asker, name)
        found = map(decode_delivery, await self._store.deliveries(name, DELIVERIES_KEPT))
        return [delivery for delivery in found if asker.sees_delivery(delivery)][:take]

    async def reseal(self) -> int:
        """Seals every webhook again, with the newest key, and returns how many there are."""
        found = await self.all()
        for stored in found:
            webhook = stored.webhook
            try:
                letterbox = self._courier.opened(webhook)
            except SealTrouble as trouble:
                raise Refused(Code.INVALID_REQUEST, f"Webhook {webhook.id}: {trouble}") from trouble
            resealed = replace(webhook, sealed=self._sealed(webhook.id, letterbox))
            try:
                await self._store.commit(_saved(resealed, stored.version + 1))
            except Outrun:
                raise Refused(Code.INVALID_REQUEST, f"Webhook {webhook.id} was changed meanwhile: try again.") from None
        return len(found)

    async def is_current(self, webhook: Webhook) -> bool:
        return any(stored.webhook == webhook for stored in await self.all())

    async def disable(self, webhook: Webhook, why: WhyDisabled, words: str) -> None:
        """Unless somebody has changed it meanwhile: then it gets another chance."""
        for stored in await self.all():
            if stored.webhook == webhook:
                now = self._clock.now()
                disabled = replace(webhook, disabled=Disabled(now, why, words))
                note = _noted_change(webhook, disabled, OURSELVES, now)
                with suppress(Outrun):
                    await self._store.commit(_saved(disabled, stored.version + 1), note)

    def _changed(self, webhook: Webhook, wishes: Wishes) -> Webhook:
        if not isinstance(wishes.url, UnsetType):
            webhook = self._moved(webhook, wishes.url)
        if not isinstance(wishes.events, UnsetType):
            webhook = replace(webhook, events=wishes.events)
        if not isinstance(wishes.topics, UnsetType):
            webhook = replace(webhook, topics=wishes.topics)
        if not isinstance(wishes.description, UnsetType):
            webhook = replace(webhook, description=wishes.description)
        if wishes.enabled is True:
            webhook = replace(webhook, disabled=None)
        elif wishes.enabled is False and webhook.disabled is None:
            webhook = replace(webhook, disabled=Disabled(self._clock.now(), WhyDisabled.ASKED))
        return webhook

    def _moved(self, webhook: Webhook, url: str) -> Webhook:
        """Its secret stays."""
        try:
            letterbox = replace(self._courier.opened(webhook), url=url)
        except SealTrouble as trouble:
            raise Refused(Code.INVALID_REQUEST, str(trouble)) from trouble
        return replace(webhook, shown_url=shown(webhook.kind, url), sealed=self._sealed(webhook.id, letterbox))

    def _sealed(self, name: str, letterbox: Letterbox) -> bytes:
        try:
            return self._courier.sealed(name, letterbox)
        except SealTrouble as trouble:
            raise Refused(Code.INVALID_REQUEST, str(trouble)) from trouble

    async def _check(self, url: str) -> None:
        try:
            await self._sender.check(url)
        except AddressRefused as refused:
            raise Refused(Code.ADDRESS_NOT_ALLOWED, str(refused)) from None


def shown(kind: WebhookKind, url: str) -> str:
    """The host and at most the first part of the path: many receivers keep a secret in the rest.

    https://discord.com/api/webhooks/1234/secret is shown as https://discord.com/api/…
    """
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc}"
    first, _, rest = parts.path.removeprefix("/").partition("/")
    if kind is WebhookKind.SLACK or len(first) > MAX_SHOWN_PATH_CHARS:
        return f"{place}/…"
    return place + (f"/{first}" if first else "") + ("/…" if rest else "?…" if parts.query else "")


def _saved(webhook: Webhook, version: int) -> SaveWebhook:
    return SaveWebhook(WebhookRow(webhook.id, version, msgspec.json.encode(webhook)))


def _noted_change(before: Webhook, after: Webhook, actor: str, now: Instant) -> Write:
    words = ", ".join(_differences(before, after)) or "nothing"
    return noted(WebhookChanged(at=now, actor=actor, id=after.id, name=after.shown_url, words=words))


def _differences(before: Webhook, after: Webhook) -> Iterator[str]:
    if before.sealed != after.sealed:
        yield "address"
    if before.events != after.events:
        yield "events"
    if before.topics != after.topics:
        yield "queues"
    if before.description != after.description:
        yield "description"
    if before.disabled != after.disabled:
        yield "enabled" if after.disabled is None else f"disabled ({after.disabled.why})"
