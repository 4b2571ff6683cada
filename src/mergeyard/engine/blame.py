"""Which failed runs blame which pull requests, and which bases are known to pass or to be broken."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.ids import Sha, SubmissionId
from mergeyard.domain.queue import Batch, Queue
from mergeyard.domain.runs import Run, RunKind
from mergeyard.engine import run_validity


class BaseHealth(StrEnum):
    PASSING = "passing"
    BROKEN = "broken"
    UNKNOWN = "unknown"


def base_health(queue: Queue, run: Run) -> BaseHealth:
    """Only a test of the base alone says something about it: a base run, or the run of what landed as its last commit.

    Example: A fails on a broken base, and A together with B, which repairs the base, passes. That pass must not count
    for the base, or A would fail for a fault of the base.
    """
    if not queue.target_branch.passed_bases.isdisjoint((run.base, run.tested_on)):
        return BaseHealth.PASSING
    return BaseHealth.BROKEN if run.base in queue.target_branch.broken_bases else BaseHealth.UNKNOWN


def record_passed_base_run(queue: Queue, run: Run) -> Queue:
    """Counts only if the run passed all statuses that are required now."""
    return queue if run_validity.outgrown_reason(queue, run) is not None else record_passed_base(queue, run.base)


def record_passed_base(queue: Queue, base: Sha) -> Queue:
    passed_bases = queue.target_branch.passed_bases | {base}
    return replace(queue, target_branch=replace(queue.target_branch, passed_bases=passed_bases))


def record_broken_base(queue: Queue, base: Sha) -> Queue:
    return replace(
        queue, target_branch=replace(queue.target_branch, broken_bases=queue.target_branch.broken_bases | {base})
    )


def base_runs(queue: Queue) -> dict[Sha, Run]:
    """The latest base run of each base."""
    return {run.base: run for run in queue.runs.values() if run.kind is RunKind.BASE}


class Blame(Struct, frozen=True):
    run: Run
    submission_ids: tuple[SubmissionId, ...]


def blame_for(queue: Queue, batch: Batch) -> Blame | None:
    """The blame for a batch; None while a pull request ahead could be the cause, or a run behind could
    still clear it."""
    run = None if queue.active.ahead[batch.id] else run_validity.failed_run(queue, batch)
    if run is None:
        return None
    if run_validity.is_cleared(queue, batch) or awaited_successors(queue, batch):
        return None
    return Blame(run, batch.submission_ids)


def awaited_successors(queue: Queue, batch: Batch) -> tuple[Batch, ...]:
    """The next batches behind it with an active run that includes it: a pass of one of them clears the batch."""
    if not queue.config.can_optimistically_merge:
        return ()
    near = islice(run_validity.batches_behind(queue, batch), queue.config.pending_failure_depth)
    return tuple(
        other for other in near if any(_includes(run, batch) for run in run_validity.active_runs(queue, other.runs))
    )


def _includes(run: Run, batch: Batch) -> bool:
    return run.excluded_submission_ids.isdisjoint(batch.submission_ids)


def untested_bases(queue: Queue) -> frozenset[Sha]:
    """Bases whose own health is unknown and must be tested before a pull request fails."""
    return frozenset(
        blamed.run.base for blamed in all_blames(queue) if base_health(queue, blamed.run) is BaseHealth.UNKNOWN
    )


def all_blames(queue: Queue) -> Iterator[Blame]:
    for batch in run_validity.unlocked_batches(queue):
        blamed = blame_for(queue, batch)
        if blamed is not None:
            yield blamed
    for bisection in queue.bisections:
        if bisection.failed_prefix == 1:
            yield Blame(bisection.failed_run, (bisection.suspect,))
        for run in queue.runs_of(bisection) if bisection.is_confirming else ():
            if run_validity.has_failed_finally(queue, run):
                yield Blame(run, (bisection.suspect,))
