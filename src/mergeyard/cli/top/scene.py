"""One look at a queue, and how its pull requests stand there: in the line, beside it, waiting, not ready, concluded."""

from collections.abc import Mapping
from itertools import groupby

from msgspec import Struct

from mergeyard.client import EnqueuedPullRequest, Queue, Run, SubmittedPullRequest

IN_THE_LINE = {"testing", "tests_passed", "pending_failure"}

Pulls = tuple[EnqueuedPullRequest, ...]


class Batch(Struct, frozen=True):
    """Pull requests that are tested together, and their run, if it is known."""

    pulls: Pulls
    run: Run | None

    @property
    def state(self) -> str:
        return self.pulls[0].state


class Scene(Struct, frozen=True, kw_only=True):
    queue: Queue
    runs: Mapping[str, Run]
    concluded: tuple[SubmittedPullRequest, ...]
    """The latest first."""

    @property
    def pulls(self) -> Pulls:
        return self.queue.enqueued_pull_requests or ()

    @property
    def line(self) -> list[Batch]:
        return [batch for batch in self._batches() if not _is_beside(batch)]

    @property
    def bisections(self) -> list[Batch]:
        return [batch for batch in self._batches() if _is_beside(batch)]

    @property
    def waiting(self) -> Pulls:
        return tuple(pull for pull in self.pulls if pull.state not in IN_THE_LINE and pull.state != "not_ready")

    @property
    def not_ready(self) -> Pulls:
        return tuple(pull for pull in self.pulls if pull.state == "not_ready")

    def _batches(self) -> list[Batch]:
        under_way = (pull for pull in self.pulls if pull.state in IN_THE_LINE)
        together = groupby(under_way, key=lambda pull: pull.test_run_id or pull.id)
        return [Batch(tuple(pulls), self.runs.get(run)) for run, pulls in together]


def _is_beside(batch: Batch) -> bool:
    return batch.run is not None and batch.run.is_bisection
