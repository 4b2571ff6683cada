"""Talks with the server, without a socket and without a clock of its own: both clients only send and sleep."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Generic, TypeVar
from uuid import uuid4

import msgspec
from msgspec import Struct

from mergeyard.client import requests
from mergeyard.client.events import Event, Events
from mergeyard.client.naming import QueueName
from mergeyard.client.pulls import SubmittedPullRequest
from mergeyard.client.request import Request
from mergeyard.client.retrying import Patience, pause_after
from mergeyard.client.steps import Pause, Reply, Sending, Talk
from mergeyard.client.understanding import Trouble, understood

Answer = TypeVar("Answer")
Page = TypeVar("Page")
Item = TypeVar("Item")

FIRST_LOOK_AGAIN = 0.5
LAST_LOOK_AGAIN = 5.0
LONG_POLL = 25


class Series(Struct, Generic[Page, Item], frozen=True):
    """Page behind page, as long as there is a next one to ask for."""

    first: Request[Page]
    items: Callable[[Page], Sequence[Item]]
    then: Callable[[Page], Request[Page] | None]


def ask(patience: Patience, request: Request[Answer], now: Callable[[], float] = monotonic) -> Talk[Answer]:
    """Asks again while that may help. The server knows a repeated write by its key, and does it once.

    What somebody in between breaks off, because it takes long, may take long: that costs no patience.
    """
    sending, until, attempt, leave = written(request, patience), now() + patience.altogether, 0, request.waits
    while True:
        asked = now()
        heard = yield sending
        assert heard is not None
        outcome = understood(request.answer, heard)
        if not isinstance(outcome, Trouble):
            return outcome
        if isinstance(heard, Reply):
            worked = min(now() - asked, leave)
            until, leave = until + worked, leave - worked
        pause = pause_after(attempt, outcome.retry_after)
        if not outcome.may_pass or now() + pause > until:
            raise outcome.error
        yield Pause(pause)
        attempt += 1


def wait(patience: Patience, queue: QueueName, number: int) -> Talk[SubmittedPullRequest]:
    """Until the pull request is merged, failed or cancelled."""
    pause = FIRST_LOOK_AGAIN
    while True:
        pull = yield from ask(patience, requests.get_pull_request(queue, number))
        if pull.over:
            return pull
        yield Pause(pause)
        pause = min(LAST_LOOK_AGAIN, 2 * pause)


def events(queue: QueueName, *, after: str | None = None) -> Series[Events, Event]:
    """Everything that happened behind this cursor, and then, for ever, whatever happens."""

    def read_on(cursor: str | None) -> Request[Events]:
        return requests.list_events(queue, after=cursor, take=100, wait_seconds=LONG_POLL)

    return Series(read_on(after), lambda page: page.events, lambda page: read_on(page.next))


def written(request: Request[Any], patience: Patience) -> Sending:
    by_query = request.answer is str
    key = {"idempotency-key": uuid4().hex} if request.writes else {}
    return Sending(
        method="GET" if by_query else "POST",
        path=f"/v1/{request.endpoint}",
        query=request.members if by_query else {},
        content=None if by_query else msgspec.json.encode(request.members),
        headers=key if by_query else {"content-type": "application/json", **key},
        seconds=patience.one_answer + request.waits,
    )
