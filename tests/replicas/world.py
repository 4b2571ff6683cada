"""A world in which people work with queues of every kind while trouble comes over them, and its judgement."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from msgspec import Struct

from tests.replicas.innocence import wronged
from tests.replicas.installation import Installation
from tests.replicas.people import People
from tests.support.surroundings import Surroundings

QUEUES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("app", "main", {"concurrency": 3}),
    ("app", "release", {"canOptimisticallyMerge": True, "pendingFailureDepth": 1}),
    ("library", "main", {"batch": True, "batchingMinSize": 3, "batchingMaxWaitTimeMinutes": 0}),
    ("website", "main", {"mode": "parallel"}),
)
METHODS = ("merge_commit", "squash", "rebase")
SECONDS_TO_DECIDE = 120.0


class Outcome(Struct):
    decided: int = 0
    merged: int = 0
    landings: int = 0
    answers: int = 0

    def __str__(self) -> str:
        submissions = f"{self.decided} submissions decided ({self.merged} merged)"
        return f"{submissions}, {self.landings} landings checked, {self.answers} answers kept: every promise held"


class World:
    def __init__(self, folder: Path, database_url: str, seed: int, replicas: int = 3) -> None:
        self.installation = Installation.running(folder, database_url, *["all"] * replicas)
        try:
            self._people = [self._settle(at, seed) for at in range(len(QUEUES))]
        except BaseException:
            self.close()
            raise

    def _settle(self, at: int, seed: int) -> People:
        repository, branch, settings = QUEUES[at]
        method = METHODS[(seed + at) % len(METHODS)]
        queue = self.installation.queue(repository, branch, mergeMethod=method, **settings)
        return People(queue, Random(f"{seed} people {at}"))

    def run(self, trouble: Callable[[], None]) -> Outcome:
        """People work until the trouble is over."""
        over = Event()
        with ThreadPoolExecutor(len(self._people)) as threads:
            working = [threads.submit(people.act_until, over) for people in self._people]
            try:
                trouble()
            finally:
                over.set()
        for work in working:
            work.result()
        return self._judged()

    def _judged(self) -> Outcome:
        queues = self.installation.queues
        for queue in queues:
            queue.update_queue(state="RUNNING")
        for queue in queues:
            give_up_whoever_cannot_become_ready(queue)
        self.installation.sweep()
        self.installation.hold_to_promises()
        innocent = [words for queue in queues for words in wronged(queue.evidence)]
        assert not innocent, "\n".join(innocent)
        stays = [stay for queue in queues for stay in queue.evidence.stays.values()]
        return Outcome(
            decided=len(stays),
            merged=sum(stay["state"] == "merged" for stay in stays),
            landings=sum(len(queue.evidence.landings) for queue in queues),
            answers=sum(len(queue.api.answers) for queue in queues),
        )

    def close(self) -> None:
        self.installation.close()


def give_up_whoever_cannot_become_ready(queue: Surroundings) -> None:
    """Such as those that conflict with the target, or were pushed to and have no targets any more."""
    queue.eventually(lambda: {pull["state"] for pull in queue.enqueued()} <= {"not_ready"}, SECONDS_TO_DECIDE)
    for pull in queue.enqueued():
        queue.cancel(pull["prNumber"])
