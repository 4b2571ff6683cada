"""Which failed runs blame which pull requests, and which bases are known to pass or to be broken."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.ids import Sha, SubmissionId
from mergeyard.domain.queue import BaseRetry, Batch, Queue, TargetBranch
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import Reason
from mergeyard.domain.timestamps import HOUR, MINUTE, Instant, later
from mergeyard.engine import run_validity

FIRST_BASE_RETRY_MS = 10 * MINUTE
"""Long enough for a CI that is restarted, and short enough that people do not have to notice."""
MAX_BASE_RETRY_MS = 4 * HOUR
"""The time doubles with each failure: a branch that is broken over a weekend costs six runs a day."""


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


def record_broken_base(queue: Queue, base: Sha, now: Instant) -> Queue:
    target_branch = queue.target_branch
    broken = replace(target_branch, broken_bases=target_branch.broken_bases | {base})
    if base == target_branch.tip:
        broken = replace(broken, base_retry=_plan_base_retry(target_branch, base, now))
    return replace(queue, target_branch=broken)


def _plan_base_retry(target_branch: TargetBranch, base: Sha, now: Instant) -> BaseRetry:
    known = target_branch.base_retry
    failures = 1 if known is None or known.base != base else known.failures + 1
    delay_ms = min(FIRST_BASE_RETRY_MS * 2 ** (failures - 1), MAX_BASE_RETRY_MS)
    return BaseRetry(base=base, failures=failures, due_at=later(now, delay_ms))


def base_retry_due_at(queue: Queue) -> Instant | None:
    """When the broken tip is tested again by itself; None while it is not broken, or no pull request waits for it."""
    target_branch = queue.target_branch
    retry = target_branch.base_retry
    if retry is None or target_branch.tip not in target_branch.broken_bases:
        return None
    if not queue.can_start_runs or not has_held_for(queue, retry.base):
        return None
    return retry.due_at


def retry_broken_base(queue: Queue, now: Instant) -> Queue:
    """The test of the tip itself can have failed for a passing fault, such as a CI that was out of order."""
    due_at = base_retry_due_at(queue)
    return queue if due_at is None or now < due_at else forget_broken_base(queue)


def forget_broken_base(queue: Queue) -> Queue:
    """The health of the tip is unknown again. One base run decides for all that are held, before they are tested."""
    target_branch = queue.target_branch
    if target_branch.tip not in target_branch.broken_bases:
        return queue
    broken_bases = target_branch.broken_bases - {target_branch.tip}
    return replace(queue, target_branch=replace(target_branch, broken_bases=broken_bases))


def is_base_being_retried(queue: Queue) -> bool:
    """Whether the tip failed its own test and has no result since."""
    target_branch = queue.target_branch
    retry = target_branch.base_retry
    if retry is None or retry.base != target_branch.tip:
        return False
    return retry.base not in target_branch.broken_bases and retry.base not in target_branch.passed_bases


def has_held_for(queue: Queue, base: Sha) -> bool:
    """Whether a pull request waits until this base passes or the target branch moves."""
    holds = (queue.submissions[each].hold for each in queue.held)
    return any(hold is not None and hold.reason is Reason.BASE_BROKEN and hold.tip == base for hold in holds)


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
    """Bases whose own health is unknown: they must be tested before a pull request fails, or is tested again."""
    untested = {blamed.run.base for blamed in all_blames(queue) if base_health(queue, blamed.run) is BaseHealth.UNKNOWN}
    tip = queue.target_branch.tip
    if tip is not None and is_base_being_retried(queue) and has_held_for(queue, tip):
        untested.add(tip)
    return frozenset(untested)


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
