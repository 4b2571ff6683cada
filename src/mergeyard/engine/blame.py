"""Which failed runs blame which pull requests, and which bases are known to pass or to be broken."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.ids import Sha, SubmissionId
from mergeyard.domain.queue import Batch, PassedStack, Queue
from mergeyard.domain.runs import Run, RunKind
from mergeyard.engine import run_validity


class BaseHealth(StrEnum):
    PASSING = "passing"
    BROKEN = "broken"
    UNKNOWN = "unknown"


BASE_ALONE: PassedStack = frozenset()


def base_health(queue: Queue, run: Run, submission_ids: Iterable[SubmissionId]) -> BaseHealth:
    """A passed run shows that its base is healthy, unless the blamed pull requests were part of the run.

    Example: A fails on a broken base, and A together with B, which repairs the base, passes. That pass must not count
    for the base, or A would fail for a fault of the base.
    """
    blamed = frozenset(submission_ids)
    stacks = [
        stack for commit in (run.base, run.tested_on) for stack in queue.target_branch.passed_bases.get(commit, ())
    ]
    if BASE_ALONE in stacks:
        return BaseHealth.PASSING
    if run.base in queue.target_branch.broken_bases:
        return BaseHealth.BROKEN
    return BaseHealth.PASSING if any(map(blamed.isdisjoint, stacks)) else BaseHealth.UNKNOWN


def record_passed_run(queue: Queue, run: Run) -> Queue:
    """Counts only if the run passed all statuses that are required now."""
    if run_validity.outgrown_reason(queue, run) is not None:
        return queue
    return record_passed_base(queue, run.base, _involved_ids(run))


def record_passed_base(queue: Queue, base: Sha, stack: PassedStack) -> Queue:
    known = queue.target_branch.passed_bases.get(base, ())
    if any(other <= stack for other in known):
        return queue
    passed_bases = {
        **queue.target_branch.passed_bases,
        base: (*(other for other in known if not stack <= other), stack),
    }
    return replace(queue, target_branch=replace(queue.target_branch, passed_bases=passed_bases))


def record_broken_base(queue: Queue, base: Sha) -> Queue:
    return replace(
        queue, target_branch=replace(queue.target_branch, broken_bases=queue.target_branch.broken_bases | {base})
    )


def base_runs(queue: Queue) -> dict[Sha, Run]:
    """The latest base run of each base."""
    return {run.base: run for run in queue.runs.values() if run.kind is RunKind.BASE}


def is_base_under_test(queue: Queue, base: Sha, submission_ids: Iterable[SubmissionId]) -> bool:
    """Whether an active run would show, by passing, that the base is healthy."""
    blamed = frozenset(submission_ids)
    return any(
        run.is_active and run.base == base and blamed.isdisjoint(_involved_ids(run)) for run in queue.runs.values()
    )


def _involved_ids(run: Run) -> PassedStack:
    """The pull requests that a pass says nothing about: those in its stack, and those it excluded on the assumption
    that they leave."""
    return frozenset(member.submission_id for member in run.stack) | run.excluded_submission_ids


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


def untested_bases(queue: Queue) -> dict[Sha, Blame]:
    """Bases whose own health is unknown and must be tested before a pull request fails, each with one blame that waits
    for it."""
    untested = dict[Sha, Blame]()
    for blamed in all_blames(queue):
        if base_health(queue, blamed.run, blamed.submission_ids) is BaseHealth.UNKNOWN:
            untested.setdefault(blamed.run.base, blamed)
    return untested


def needs_base_run(queue: Queue, blamed: Blame) -> bool:
    return not is_base_under_test(queue, blamed.run.base, blamed.submission_ids)


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
