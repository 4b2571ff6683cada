"""Sends the webhooks of a forge over HTTP, in order and once, unless a test says otherwise."""

from collections.abc import Mapping
from contextlib import suppress
from queue import Queue
from threading import Thread

import httpx2
from msgspec import Struct

TIMEOUT_S = 10


class Delivery(Struct, frozen=True):
    url: str
    headers: Mapping[str, str]
    body: bytes


class DeliveryRecord(Struct, frozen=True):
    delivery: Delivery
    status: int | None
    """Status of the response; None if there was none or the delivery was dropped."""


class Deliveries:
    def __init__(self) -> None:
        self.drop_all = False
        self.send_twice = False
        self.hold_back = False
        """Deliveries wait for `release`, which sends the last one first."""
        self.log: list[DeliveryRecord] = []
        self._held: list[Delivery] = []
        self._outbox = Queue[Delivery | None]()
        self._thread = Thread(target=self._run, name="deliveries", daemon=True)
        self._thread.start()

    def enqueue(self, delivery: Delivery) -> None:
        if self.drop_all:
            self.log.append(DeliveryRecord(delivery, None))
        elif self.hold_back:
            self._held.append(delivery)
        else:
            self._send(delivery)

    def release(self) -> None:
        held, self._held = self._held, []
        for delivery in reversed(held):
            self._send(delivery)

    def wait_until_sent(self) -> None:
        """Returns when all queued deliveries are sent."""
        self._outbox.join()

    def close(self) -> None:
        self._outbox.put(None)
        self._thread.join()

    def _send(self, delivery: Delivery) -> None:
        for _ in range(2 if self.send_twice else 1):
            self._outbox.put(delivery)

    def _run(self) -> None:
        with httpx2.Client(timeout=TIMEOUT_S, trust_env=False, verify=False) as client:
            while (delivery := self._outbox.get()) is not None:
                self.log.append(DeliveryRecord(delivery, send_delivery(client, delivery)))
                self._outbox.task_done()
        self._outbox.task_done()


def send_delivery(client: httpx2.Client, delivery: Delivery) -> int | None:
    with suppress(httpx2.HTTPError):
        return client.post(delivery.url, content=delivery.body, headers=delivery.headers).status_code
    return None
