"""A world in which people use queues of every kind while faults happen; every promise is checked at the end."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from msgspec import Struct

from tests.replicas.installation import Installation
from tests.replicas.people import People
from tests.support.environment import QueueEnvironment
from tests.support.evidence import Evidence, SubmissionJson

REQUESTED = frozenset({"cancelled_by_user", "pr_pushed"})
TESTS_FAILED = frozenset({"test_run_failed", "failed_by_optimization"})
CAN_FAIL = ("bad", "left", "right")
"""Path prefixes for which the CI can fail."""
CAN_CONFLICT = ("README", "left", "right")


def find_wrongly_removed(evidence: Evidence) -> Iterator[str]:
    for submission in evidence.submissions.values():
        if submission["state"] in {"failed", "cancelled"} and not _has_cause(evidence, submission):
            yield f"{evidence.name(submission['id'])} left the queue without a cause"


def _has_cause(evidence: Evidence, submission: SubmissionJson) -> bool:
    reason = submission["reason"]["code"]
    if reason in REQUESTED:
        return True
    prefixes = CAN_FAIL if reason in TESTS_FAILED else CAN_CONFLICT if reason == "merge_conflict" else ()
    return any(path.startswith(prefixes) for path in evidence.paths_changed_by(submission, onto=evidence.tip))


QUEUES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("app", "main", {"concurrency": 3}),
    ("app", "release", {"canOptimisticallyMerge": True, "pendingFailureDepth": 1}),
    ("library", "main", {"batch": True, "batchingMinSize": 3, "batchingMaxWaitTimeMinutes": 0}),
    ("website", "main", {"mode": "parallel"}),
)
METHODS = ("merge_commit", "squash", "rebase")
SECONDS_TO_DECIDE = 300.0


class Outcome(Struct):
    decided: int = 0
    merged: int = 0
    landings: int = 0
    answers: int = 0

    def __str__(self) -> str:
        decided = f"{self.decided} submissions decided ({self.merged} merged)"
        return f"{decided}, {self.landings} landings checked, {self.answers} responses checked: every promise kept"


class World:
    def __init__(self, folder: Path, database_url: str, seed: int, replicas: int = 3) -> None:
        self.installation = Installation.start(folder, database_url, *["all"] * replicas)
        try:
            self._people = [self._create_queue(at, seed) for at in range(len(QUEUES))]
        except BaseException:
            self.close()
            raise

    def _create_queue(self, at: int, seed: int) -> People:
        repository, branch, settings = QUEUES[at]
        method = METHODS[(seed + at) % len(METHODS)]
        queue = self.installation.queue(repository, branch, mergeMethod=method, **settings)
        return People(queue, Random(f"{seed} people {at}"))

    def run(self, inject_faults: Callable[[], None]) -> Outcome:
        """People work until the faults are over."""
        over = Event()
        with ThreadPoolExecutor(len(self._people)) as threads:
            working = [threads.submit(people.act_until, over) for people in self._people]
            try:
                inject_faults()
            finally:
                over.set()
        for work in working:
            work.result()
        return self._check()

    def _check(self) -> Outcome:
        queues = self.installation.queues
        for queue in queues:
            queue.update_queue(state="RUNNING")
        for queue in queues:
            cancel_unready_pull_requests(queue)
        self.installation.restart_and_clean_up()
        self.installation.check_promises()
        removed = [message for queue in queues for message in find_wrongly_removed(queue.evidence)]
        assert not removed, "\n".join(removed)
        submissions = [each for queue in queues for each in queue.evidence.submissions.values()]
        return Outcome(
            decided=len(submissions),
            merged=sum(each["state"] == "merged" for each in submissions),
            landings=sum(len(queue.evidence.landings) for queue in queues),
            answers=sum(len(queue.api.responses) for queue in queues),
        )

    def close(self) -> None:
        self.installation.close()


def cancel_unready_pull_requests(queue: QueueEnvironment) -> None:
    """Such as pull requests that conflict with the target branch, or were pushed to and lack impacted targets."""
    queue.eventually(
        lambda: {pull_request["state"] for pull_request in queue.enqueued()} <= {"not_ready"}, SECONDS_TO_DECIDE
    )
    for pull_request in queue.enqueued():
        queue.cancel(pull_request["prNumber"])
