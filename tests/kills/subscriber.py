"""A program that is told everything by a webhook, and now and then refuses to listen."""

from collections.abc import Iterator
from typing import Any

from tests.support.api import Api
from tests.support.patience import eventually
from tests.support.receiver import Receiver

DEAF_EVERY = 12
"""So many come, and one is not listened to."""
COMPARED = ("type", "timestamp", "pr_number", "state", "reason")

Told = tuple[Any, ...]


class Subscriber:
    def __init__(self) -> None:
        self.receiver = Receiver()
        self.receiver.on_arrival = be_deaf_now_and_then

    def check(self, api: Api) -> int:
        """All that happened in a queue was told, in order; gives how much that was."""
        happened = [compared(event) for event in all_events(api)]
        eventually(lambda: self._heard(api) == happened, but=lambda: first_difference(self._heard(api), happened))
        return len(happened)

    def _heard(self, api: Api) -> list[Told]:
        repo = api.queue["repo"]
        queue = f"{repo['host']}/{repo['owner']}/{repo['name']}", api.queue["targetBranch"]
        data = [event["data"] for event in self.receiver.once_each()]
        return [compared(event) for event in data if (event["repository"], event["target_branch"]) == queue]


def be_deaf_now_and_then(arrived: int) -> None:
    if arrived % DEAF_EVERY == 0:
        raise ConnectionError


def all_events(api: Api) -> Iterator[dict[str, Any]]:
    page = api.post("listEvents", take=100)
    while page["events"]:
        yield from page["events"]
        page = api.post("listEvents", take=100, after=page["next"])


def compared(event: dict[str, Any]) -> Told:
    return tuple(event.get(name) for name in COMPARED)


def first_difference(heard: list[Told], happened: list[Told]) -> str:
    at = next((at for at, pair in enumerate(zip(heard, happened, strict=False)) if pair[0] != pair[1]), len(heard))
    lengths = f"{len(heard)} events were told and {len(happened)} happened"
    return f"{lengths}; from {at} on: {heard[at : at + 3]}, but {happened[at : at + 3]}"
