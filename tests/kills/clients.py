"""A client that repeats a request with the same idempotency key until it is answered, and compares after every kill."""

from collections import deque
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx2
from msgspec import Struct

from mergeyard.api.routes import TABLE
from tests.kills.killable_server import KillableServer
from tests.support.api_client import ApiClient, ApiRefused
from tests.support.host_log import HostLog
from tests.support.polling import eventually
from tests.support.webhooks import WebhookReceiver

REPEATED_REQUESTS = 3
MAX_REFUSALS = 3
"""In a row, while a git process of an earlier server is in the way."""
SHOWN_ONCE = frozenset({"secret"})
"""Members of a response that are shown only the first time."""


class SentRequest(Struct, frozen=True):
    path: str
    key: str
    members: dict[str, Any]
    response: dict[str, Any]


class RetryingApi(ApiClient):
    def __init__(self, server: KillableServer, token: str, host_log: HostLog, queue: dict[str, Any]) -> None:
        super().__init__(server, token, host_log, queue)
        self.repeated = 0
        self._killed_server = server
        self._known_kills = 0
        self._last = deque[SentRequest](maxlen=REPEATED_REQUESTS)

    def post(self, path: str, *, key: str | None = None, **members: Any) -> dict[str, Any]:
        key, refusals = key or uuid4().hex, 0
        while True:
            try:
                response = super().post(path, key=key, **members)
                break
            except httpx2.TransportError:
                self._killed_server.restart_after_kill()
            except ApiRefused as refused:
                refusals += 1
                if refused.code != "provider_unavailable" or refusals > MAX_REFUSALS:
                    raise
        self._repeat_after_a_kill()
        if TABLE[path].get("writes"):
            self._last.append(SentRequest(path, key, members, response))
        return response

    def _repeat_after_a_kill(self) -> None:
        """Repeats the last requests and compares the responses, whose contents may be outdated by now."""
        if self._known_kills == self._killed_server.kills:
            return
        self._known_kills = self._killed_server.kills
        for request in self._last:
            again = self._repeat(request)
            assert without_secrets(again) == without_secrets(request.response), f"{request} now returns {again}"
            self.repeated += 1

    def _repeat(self, request: SentRequest) -> dict[str, Any]:
        while True:
            try:
                address = f"{self._server.url}/v1/{request.path}"
                body, headers = self.queue | request.members, {"idempotency-key": request.key}
                return self._client.post(address, json=body, headers=headers).json()
            except httpx2.TransportError:
                self._killed_server.restart_after_kill()


def without_secrets(response: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in response.items() if name not in SHOWN_ONCE}


REFUSED_EVERY = 12
"""One of this many deliveries is refused."""
COMPARED_FIELDS = ("type", "timestamp", "pr_number", "state", "reason")

Event = tuple[Any, ...]


class Subscriber:
    def __init__(self) -> None:
        self.receiver = WebhookReceiver()
        self.receiver.on_arrival = refuse_some

    def check(self, api: ApiClient) -> int:
        """All events of the queue were delivered, in order. Returns their number."""
        happened = [comparable(event) for event in all_events(api)]
        eventually(
            lambda: self._delivered(api) == happened, describe=lambda: first_difference(self._delivered(api), happened)
        )
        return len(happened)

    def _delivered(self, api: ApiClient) -> list[Event]:
        repo = api.queue["repo"]
        queue = f"{repo['host']}/{repo['owner']}/{repo['name']}", api.queue["targetBranch"]
        data = [event["data"] for event in self.receiver.unique_payloads()]
        return [comparable(event) for event in data if (event["repository"], event["target_branch"]) == queue]


def refuse_some(arrived: int) -> None:
    if arrived % REFUSED_EVERY == 0:
        raise ConnectionError


def all_events(api: ApiClient) -> Iterator[dict[str, Any]]:
    page = api.post("listEvents", take=100)
    while page["events"]:
        yield from page["events"]
        page = api.post("listEvents", take=100, after=page["next"])


def comparable(event: dict[str, Any]) -> Event:
    return tuple(event.get(name) for name in COMPARED_FIELDS)


def first_difference(delivered: list[Event], happened: list[Event]) -> str:
    pairs = enumerate(zip(delivered, happened, strict=False))
    at = next((at for at, pair in pairs if pair[0] != pair[1]), len(delivered))
    lengths = f"{len(delivered)} events were delivered and {len(happened)} happened"
    return f"{lengths}; from {at} on: {delivered[at : at + 3]} instead of {happened[at : at + 3]}"
