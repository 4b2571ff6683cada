"""Sends one event to one webhook, signed JSON or a Slack message, and records the attempt."""

import base64
import hashlib
import hmac
import re
import secrets
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from mergeyard.domain.states import Reason
from mergeyard.domain.timestamps import SECOND, Instant
from mergeyard.domain.webhooks import TEST_EVENT_TYPE, Delivery, EventType, JournalPosition, Webhook, WebhookKind
from mergeyard.ports.external import AddressRefused, Clock, EncryptionError, SecretBox, Sender, SendFailed, SendResponse
from mergeyard.ports.store import Store
from mergeyard.ports.writes import SaveDelivery, Write
from mergeyard.service.webhooks.events import EventPayload

SLACK_HEADLINES: dict[str, str] = {
    EventType.PR_SUBMITTED: "⏳ {pull_request} was submitted and is not ready",
    EventType.PR_UPDATED: "✋ {pull_request} was changed by {actor}",
    EventType.PR_QUEUED: "🕒 {pull_request} is queued",
    EventType.PR_TESTING: "🧪 {pull_request} is being tested",
    EventType.PR_TESTS_PASSED: "✅ {pull_request} passed",
    EventType.PR_PENDING_FAILURE: "🔎 {pull_request} is failing, cause not confirmed",
    EventType.PR_FAILED: "❌ {pull_request} failed",
    EventType.PR_CANCELLED: "🚫 {pull_request} was removed from the queue",
    EventType.PR_MERGED: "🎉 {pull_request} was merged",
    EventType.QUEUE_CREATED: "🚂 {queue}: created",
    EventType.QUEUE_UPDATED: "🔧 {queue}: settings changed",
    EventType.QUEUE_DELETED: "🗑️ {queue}: deleted",
    EventType.QUEUE_STATE_CHANGED: "🚦 {queue}: now {state}",
    TEST_EVENT_TYPE: "👋 Test message from Mergeyard",
}
ALERT_HEADLINES: dict[str | None, str] = {
    Reason.TREE_MISMATCH: "🚨 {queue}: a merged commit differs from the tested one",
    Reason.AUDIT_MISMATCH: "🚨 {queue}: the target branch differs from the recorded merges",
}
"""Headlines of queue events with these reasons; the state alone would not explain them."""
BROADCAST = re.compile(r"@(?=channel|here|everyone|group)", re.IGNORECASE)
"""A mention of a whole channel; a zero-width space after the @ disables it."""
MAX_TITLE_CHARS = 150
MAX_MESSAGE_CHARS = 2000
"""Slack refuses a section of more than 3000 characters."""


def encode_slack_message(payload: EventPayload) -> bytes:
    event = payload.event
    alert = None if event.pr_number else ALERT_HEADLINES.get(event.reason)
    headline = (alert or SLACK_HEADLINES[event.type]).format(
        pull_request=_describe_pull_request(payload),
        queue=_describe_queue(payload),
        state=event.state,
        actor=_escape(event.actor or ""),
    )
    footer = " · ".join(
        part for part in (_describe_queue(payload) if event.pr_number else "", event.reason or "") if part
    )
    details = f"*{headline}*\n{_escape(_truncate(payload.message, MAX_MESSAGE_CHARS))} <{event.details_url}|Details>"
    blocks: list[dict[str, Any]] = [{"type": "section", "text": _build_markup(details)}]
    if footer:
        blocks.append({"type": "context", "elements": [_build_markup(footer)]})
    return msgspec.json.encode({"text": headline, "blocks": blocks})


def _describe_pull_request(payload: EventPayload) -> str:
    event = payload.event
    author = f" by {_escape(event.author)}" if event.author else ""
    return f"#{event.pr_number} {_escape(_truncate(payload.title, MAX_TITLE_CHARS))}".strip() + author


def _describe_queue(payload: EventPayload) -> str:
    event = payload.event
    return f"{_escape(event.target_branch or '')} of {_escape(event.repository or '')}"


def _build_markup(text: str) -> dict[str, Any]:
    """Verbatim: Slack does not turn plain names and addresses into mentions and links."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _truncate(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _escape(text: str) -> str:
    """Escapes text from others, so that it has no mentions and no links."""
    plain = BROADCAST.sub("@\u200b", " ".join(text.split()))
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32


def create_signing_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def build_signature_headers(secret: str, message_id: str, now: Instant, body: bytes) -> dict[str, str]:
    """Returns the signature headers. The timestamp is that of this attempt; the message id is the same in all
    attempts."""
    timestamp, key = str(now // SECOND), base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    content = f"{message_id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return {"webhook-id": message_id, "webhook-timestamp": timestamp, "webhook-signature": f"v1,{signature}"}


BASE_HEADERS = {"content-type": "application/json", "user-agent": "Mergeyard"}


class EndpointSecret(Struct, frozen=True):
    """The encrypted part of a webhook."""

    url: str
    secret: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(***)"


class WebhookSender:
    def __init__(self, store: Store, clock: Clock, sender: Sender, secret_box: SecretBox) -> None:
        self._store = store
        self._clock = clock
        self._sender = sender
        self._secret_box = secret_box

    def encrypt(self, webhook: str, endpoint: EndpointSecret) -> bytes:
        return self._secret_box.encrypt(msgspec.json.encode(endpoint), webhook)

    def decrypt(self, webhook: Webhook) -> EndpointSecret:
        return msgspec.json.decode(
            self._secret_box.decrypt(webhook.encrypted_endpoint, webhook.id), type=EndpointSecret
        )

    async def deliver(
        self, webhook: Webhook, event: str, payload: EventPayload, position: JournalPosition | None = None
    ) -> Delivery:
        """The event id is the same in every attempt, so that a receiver can ignore duplicates."""
        previous = await self.find_last_delivery(webhook, event)
        delivery = Delivery(
            event=event,
            type=payload.event.type,
            at=self._clock.now(),
            attempt=1 if previous is None else previous.attempt + 1,
            delivered=False,
            journal_position=position,
        )
        try:
            response = await self._send(webhook, event, payload)
        except (AddressRefused, SendFailed, EncryptionError) as error:
            return msgspec.structs.replace(delivery, detail=str(error))
        delivered = 200 <= response.status < 300
        return msgspec.structs.replace(
            delivery, delivered=delivered, status=response.status, detail=response.body_excerpt
        )

    def to_save_delivery(self, webhook: Webhook, delivery: Delivery) -> Write:
        return SaveDelivery(webhook.id, delivery.event, msgspec.json.encode(delivery))

    async def find_last_delivery(self, webhook: Webhook, event: str) -> Delivery | None:
        body = await self._store.delivery(webhook.id, event)
        return None if body is None else decode_delivery(body)

    async def _send(self, webhook: Webhook, event: str, payload: EventPayload) -> SendResponse:
        endpoint, body, headers = self.decrypt(webhook), encode_payload(webhook, payload), BASE_HEADERS
        if webhook.kind is not WebhookKind.SLACK:
            headers = headers | build_signature_headers(endpoint.secret, event, self._clock.now(), body)
        return await self._sender.send(endpoint.url, headers, body)


decode_delivery = msgspec.json.Decoder(Delivery).decode


def encode_payload(webhook: Webhook, payload: EventPayload) -> bytes:
    if webhook.kind is WebhookKind.SLACK:
        return encode_slack_message(payload)
    event = payload.event
    return msgspec.json.encode({"type": event.type, "timestamp": event.timestamp, "data": event})


def derive_event_id(webhook: Webhook, position: JournalPosition) -> str:
    """Derived from webhook, queue and journal position, so that every replica sends the same id for the same entry."""
    return "msg_" + sha256(f"{webhook.id}/{position.queue}/{position.seq}".encode()).hexdigest()[:32]
