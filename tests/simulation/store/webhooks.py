"""Webhooks, and the last attempts to send something to each of them."""

from collections import deque
from itertools import islice

from mergeyard.ports.store import DELIVERIES_KEPT
from mergeyard.ports.writes import KeepDelivery, WebhookRow


class Webhooks:
    def __init__(self) -> None:
        self.rows: dict[str, WebhookRow] = {}
        self._attempts: dict[str, deque[KeepDelivery]] = {}

    def save(self, webhook: WebhookRow) -> None:
        self.rows[webhook.id] = webhook

    def drop(self, webhook: str) -> None:
        self.rows.pop(webhook, None)
        self._attempts.pop(webhook, None)

    def keep(self, attempt: KeepDelivery) -> None:
        if attempt.webhook in self.rows:
            self._attempts.setdefault(attempt.webhook, deque(maxlen=DELIVERIES_KEPT)).append(attempt)

    def in_order(self) -> tuple[WebhookRow, ...]:
        return tuple(webhook for _, webhook in sorted(self.rows.items()))

    def attempts(self, webhook: str, take: int) -> tuple[bytes, ...]:
        newest = reversed(self._attempts.get(webhook, ()))
        return tuple(attempt.body for attempt in islice(newest, take))

    def last_attempt(self, webhook: str, event: str) -> bytes | None:
        newest = reversed(self._attempts.get(webhook, ()))
        return next((attempt.body for attempt in newest if attempt.event == event), None)
