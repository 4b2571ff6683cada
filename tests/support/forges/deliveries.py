"""Sends the webhooks of a forge over HTTP, in order and once, unless a knob says otherwise."""

from collections.abc import Mapping
from contextlib import suppress
from queue import Queue
from threading import Thread

import httpx
from msgspec import Struct

SECONDS = 10


class Letter(Struct, frozen=True):
    address: str
    headers: Mapping[str, str]
    body: bytes


class Delivered(Struct, frozen=True):
    letter: Letter
    status: int | None
    """What the receiver answered; None: nobody was there, or the letter was lost."""


class Deliveries:
    def __init__(self) -> None:
        self.losing = False
        self.doubling = False
        self.holding = False
        """Letters wait for `release`, which sends the last one first."""
        self.log: list[Delivered] = []
        self._held: list[Letter] = []
        self._outbox = Queue[Letter | None]()
        self._thread = Thread(target=self._carry, name="deliveries", daemon=True)
        self._thread.start()

    def post(self, letter: Letter) -> None:
        if self.losing:
            self.log.append(Delivered(letter, None))
        elif self.holding:
            self._held.append(letter)
        else:
            self._hand_over(letter)

    def release(self) -> None:
        held, self._held = self._held, []
        for letter in reversed(held):
            self._hand_over(letter)

    def settle(self) -> None:
        """Returns when everything on its way has arrived."""
        self._outbox.join()

    def close(self) -> None:
        self._outbox.put(None)
        self._thread.join()

    def _hand_over(self, letter: Letter) -> None:
        for _ in range(2 if self.doubling else 1):
            self._outbox.put(letter)

    def _carry(self) -> None:
        with httpx.Client(timeout=SECONDS, trust_env=False, verify=False) as client:
            while (letter := self._outbox.get()) is not None:
                self.log.append(Delivered(letter, carried(client, letter)))
                self._outbox.task_done()
        self._outbox.task_done()


def carried(client: httpx.Client, letter: Letter) -> int | None:
    with suppress(httpx.HTTPError):
        return client.post(letter.address, content=letter.body, headers=letter.headers).status_code
    return None
