"""Looks at a queue again and again, beside the screen, so that keys are heard while the server takes its time."""

from collections.abc import Sequence
from heapq import nlargest
from threading import Event, Thread
from typing import Self

from msgspec import Struct

from mergeyard.cli.top.scene import IN_THE_LINE, Scene
from mergeyard.client import Client, MergeyardError, Patience, Queue, QueueName, Run, SubmittedPullRequest, Unreachable

BETWEEN_LOOKS = 1.0
MOST_RUNS = 20
"""More do not fit on a screen."""
MOST_CONCLUDED = 10
MOST_ASKED = 50
ONCE = Patience(altogether=0, one_answer=10)
"""The next look comes anyway."""


class Seen(Struct, frozen=True):
    """The last look that went well, and what is in the way of another."""

    scene: Scene
    trouble: str | None = None


def look(client: Client, name: QueueName, before: Scene | None = None) -> Scene:
    """`before`: as it was seen last."""
    queue = client.get_queue(name)
    known = [*client.list_pull_requests(name, take=MOST_ASKED).pull_requests]
    if before is not None:
        known += [*before.concluded, *who_left(client, name, before, queue)]
    over = {pull.id: pull for pull in known if pull.over}
    concluded = nlargest(MOST_CONCLUDED, over.values(), key=lambda pull: pull.state_changed_at)
    return Scene(queue=queue, runs=runs_of(client, name, queue), concluded=tuple(concluded))


def who_left(client: Client, name: QueueName, before: Scene, queue: Queue) -> Sequence[SubmittedPullRequest]:
    """Whoever stayed long is not among those that were submitted last."""
    here = {pull.pr_number for pull in queue.enqueued_pull_requests or ()}
    left = [pull.pr_number for pull in before.pulls if pull.pr_number not in here]
    return client.get_pull_requests(name, left[:MOST_ASKED]).pull_requests if left else ()


def runs_of(client: Client, name: QueueName, queue: Queue) -> dict[str, Run]:
    """A run that ended just now may be gone from the line already, but not from the server."""
    under_way = (pull for pull in queue.enqueued_pull_requests or () if pull.state in IN_THE_LINE)
    ids = dict.fromkeys(pull.test_run_id for pull in under_way if pull.test_run_id is not None)
    return {run: client.get_run(name, run) for run in tuple(ids)[:MOST_RUNS]}


class Lookout:
    """`with Lookout(client, name, first) as lookout: lookout.seen`."""

    def __init__(self, client: Client, name: QueueName, first: Scene) -> None:
        self.seen = Seen(first)
        self._client = client
        self._name = name
        self._leaving = Event()
        self._thread = Thread(target=self._look_around, daemon=True)

    def __enter__(self) -> Self:
        self._client.patience = ONCE
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """A look that is under way is left alone: nobody waits for it."""
        self._leaving.set()

    def _look_around(self) -> None:
        while not self._leaving.wait(BETWEEN_LOOKS):
            try:
                self.seen = Seen(look(self._client, self._name, self.seen.scene))
            except (Unreachable, MergeyardError) as trouble:
                self.seen = Seen(self.seen.scene, str(trouble))
            except RuntimeError:
                return  # the client was closed, because somebody left
