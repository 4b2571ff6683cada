"""A client that asks again with the same key until it has an answer, and wants the same one after every death."""

from collections import deque
from typing import Any
from uuid import uuid4

import httpx
from msgspec import Struct

from mergeyard.api.routes import TABLE
from tests.kills.mortal_server import MortalServer
from tests.support.api import Api, Refused
from tests.support.host_log import HostLog

REMEMBERED = 3
MOST_REFUSALS = 3
"""In a row, while a git that an earlier server left behind is in the way."""
SHOWN_ONCE = frozenset({"secret"})
"""What is never told again."""


class Asked(Struct, frozen=True):
    path: str
    key: str
    members: dict[str, Any]
    told: dict[str, Any]


class InsistingApi(Api):
    def __init__(self, server: MortalServer, token: str, host_log: HostLog, queue: dict[str, Any]) -> None:
        super().__init__(server, token, host_log, queue)
        self.repeated = 0
        self._mortal = server
        self._deaths = 0
        self._last = deque[Asked](maxlen=REMEMBERED)

    def post(self, path: str, *, key: str | None = None, **members: Any) -> dict[str, Any]:
        key, refusals = key or uuid4().hex, 0
        while True:
            try:
                told = super().post(path, key=key, **members)
                break
            except httpx.TransportError:
                self._mortal.rise()
            except Refused as refused:
                refusals += 1
                if refused.code != "provider_unavailable" or refusals > MOST_REFUSALS:
                    raise
        self._repeat_what_was_asked_before_a_death()
        if TABLE[path].get("writes"):
            self._last.append(Asked(path, key, members, told))
        return told

    def _repeat_what_was_asked_before_a_death(self) -> None:
        """These answers count for nothing but this: what they tell may be true no more."""
        if self._deaths == self._mortal.deaths:
            return
        self._deaths = self._mortal.deaths
        for asked in self._last:
            again = self._repeat(asked)
            assert without_secrets(again) == without_secrets(asked.told), f"{asked} is answered by {again} now"
            self.repeated += 1

    def _repeat(self, asked: Asked) -> dict[str, Any]:
        while True:
            try:
                address = f"{self._server.url}/v1/{asked.path}"
                body, headers = self.queue | asked.members, {"idempotency-key": asked.key}
                return self._client.post(address, json=body, headers=headers).json()
            except httpx.TransportError:
                self._mortal.rise()


def without_secrets(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name not in SHOWN_ONCE}
