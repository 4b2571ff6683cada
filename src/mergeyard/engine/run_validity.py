"""Decides whether a run is still valid: its base, stack and required statuses are what would be merged now.

It applies to any stack, however speculation chose it.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import chain
from operator import attrgetter, is_
from typing import TypeVar

from mergeyard.domain.config import URGENT, LandingMethod, Mode
from mergeyard.domain.ids import BatchId, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import ImpactedTargets, RequiredSource, RequiredStatuses
from mergeyard.domain.queue import Batch, LandedCommit, Queue, TargetBranch
from mergeyard.domain.runs import Member, Run, Step
from mergeyard.domain.states import SATISFIED_CHECK_STATES, CheckState, Reason, RunStatus


def required_statuses(queue: Queue) -> RequiredStatuses:
    if queue.config.required_statuses is not None:
        return RequiredStatuses(queue.config.required_statuses, RequiredSource.MERGE_INSTANCE)
    return queue.target_branch.required_statuses


def untestable_reason(queue: Queue) -> Reason | None:
    """Why nothing can be tested: without required statuses nothing merges."""
    configured = required_statuses(queue)
    if configured.config_error is not None:
        return Reason.CONFIG_INVALID
    return None if configured.statuses else Reason.NO_REQUIRED_STATUSES


def lacks_required_statuses(queue: Queue) -> bool:
    """Of a target branch that does not exist, nothing is known."""
    return queue.target_branch.tip is not None and untestable_reason(queue) is Reason.NO_REQUIRED_STATUSES


def outgrown_reason(queue: Queue, run: Run) -> Reason | None:
    """A run keeps the statuses that it started with, unless more are required now."""
    if set(required_statuses(queue).statuses) <= set(run.required_statuses):
        return None
    return Reason.REQUIRED_STATUSES_CHANGED


T = TypeVar("T")


def memoize_on(*parts: str) -> Callable[[Callable[[Queue], T]], Callable[[Queue], T]]:
    """For a function that depends on these parts of a queue only, and is called often within a decision."""
    read_parts = attrgetter(*parts)

    def decorate(compute: Callable[[Queue], T]) -> Callable[[Queue], T]:
        last: list[tuple[tuple[object, ...], T]] = []

        @wraps(compute)
        def cached(queue: Queue) -> T:
            current = read_parts(queue)
            if not last or not all(map(is_, last[0][0], current)):
                last[:] = [(current, compute(queue))]
            return last[0][1]

        return cached

    return decorate


def invalidation_reason(queue: Queue, batch: Batch, run: Run) -> Reason | None:
    """Why this run can no longer count for its batch; None while it can.

    A stack can exclude pull requests ahead that are expected to leave. That alone does not invalidate the run: it
    becomes valid once all of them have left, and is invalid as soon as one of them lands, because that one is not part
    of its stack.
    """
    if run.invalidated is not None:
        return run.invalidated
    if queue.target_branch.tip is None:
        return Reason.TARGET_BRANCH_MISSING
    landed = landed_since(queue.target_branch, run.base)
    if landed is None or not run.excluded_submission_ids.isdisjoint(queue.target_branch.landed_submission_ids):
        return Reason.TARGET_BRANCH_MOVED
    if (
        tuple(
            member.submission_id
            for member in run.tested_members
            if member.submission_id not in queue.target_branch.landed_submission_ids
        )
        != batch.submission_ids
    ):
        return Reason.BATCHMATE_REMOVED
    if landed and not _can_still_land(queue, batch, run):
        return Reason.TARGET_BRANCH_MOVED
    reason = _stack_mismatch_reason(queue, batch, run) or outgrown_reason(queue, run)
    if reason is None and _is_extended_run_gone(queue, run):
        return Reason.RUN_AHEAD_STOPPED
    return reason


def _is_extended_run_gone(queue: Queue, run: Run) -> bool:
    """The run it extends was stopped before it was built, so this one can never be built."""
    if run.extends is None:
        return False
    extended = queue.runs.get(run.extends)
    return extended is None or not extended.is_active


def landed_since(target_branch: TargetBranch, base: Sha) -> tuple[LandedCommit, ...] | None:
    """What this queue landed on the base; None if anyone else's commit is between the base and the tip."""
    index = target_branch.history_index.get(base)
    return None if index is None else target_branch.history[index + 1 :]


def unlanded_members(queue: Queue, members: Iterable[Member]) -> tuple[Member, ...]:
    return tuple(member for member in members if member.submission_id in queue.submissions)


def is_on_tip(target_branch: TargetBranch, run: Run) -> bool:
    """Whether the target branch is at the commit that the first member that has not landed was tested on."""
    step = _last_landed_step(target_branch, run)
    return run.base == target_branch.tip if step is None else step.commit == target_branch.tip


def can_land_unchanged(target_branch: TargetBranch, run: Run) -> bool:
    """With `provider_merge` the host creates other commits, so the contents must be equal instead."""
    step = _last_landed_step(target_branch, run)
    if step is not None and run.landing_method is LandingMethod.PROVIDER_MERGE:
        return step.tree == target_branch.history[-1].tree
    return is_on_tip(target_branch, run)


def _last_landed_step(target_branch: TargetBranch, run: Run) -> Step | None:
    """The step that the target branch is at, if what landed is the beginning of this stack."""
    landed = landed_since(target_branch, run.base) or ()
    stack = tuple(member.submission_id for member in run.stack[: len(landed)])
    if not landed or len(landed) > len(run.chain) or stack != tuple(commit.submission_id for commit in landed):
        return None
    return run.chain[len(landed) - 1]


def _can_still_land(queue: Queue, batch: Batch, run: Run) -> bool:
    """In single mode only this exact chain can land. In parallel mode it can be rebased onto commits of other lanes,
    but of none that shares a target with the batch or with a batch ahead that would land with it."""
    if queue.mode is Mode.SINGLE:
        return can_land_unchanged(queue.target_branch, run)
    if any(member.submission_id in queue.target_branch.landed_submission_ids for member in run.stack[len(run.chain) :]):
        return False
    built = {member.submission_id for member in run.stack[: len(run.chain)]}
    return all(
        commit.submission_id in built
        for lane_batch in (batch, *batches_ahead(queue, batch))
        for commit in _landed_in_lane(queue.target_branch, run.base, lane_batch.impacted_targets)
    )


def _landed_in_lane(
    target_branch: TargetBranch, base: Sha, impacted_targets: ImpactedTargets
) -> Iterator[LandedCommit]:
    """What landed on the base and overlaps with the targets. The cost is that of the smaller of both sets."""
    since = target_branch.history_index[base]
    if impacted_targets.everything or len(impacted_targets.names) > len(target_branch.history):
        return (
            commit
            for commit in target_branch.history[since + 1 :]
            if commit.impacted_targets.overlaps(impacted_targets)
        )
    indexes = chain(
        target_branch.history_impacting_all,
        *(target_branch.history_by_impacted_target.get(name, ()) for name in impacted_targets.names),
    )
    return (target_branch.history[index] for index in indexes if index > since)


def _stack_mismatch_reason(queue: Queue, batch: Batch, run: Run) -> Reason | None:
    landed = queue.target_branch.landed_submission_ids
    tested_ahead = tuple(member.submission_id for member in run.prs_ahead if member.submission_id not in landed)
    expected = tuple(
        submission_id
        for submission_id in submission_ids_ahead(queue, batch)
        if submission_id not in run.excluded_submission_ids
    )
    if tested_ahead == expected:
        return None
    gone = [each for each in tested_ahead if each not in expected]
    new = [each for each in expected if each not in tested_ahead]
    active = queue.active.submission_ids
    if any(each not in active and not is_about_to_overtake(queue, each) for each in gone):
        return Reason.PREREQUISITE_REMOVED
    if any(queue.submissions[each].is_urgent for each in new):
        return Reason.SKIP_THE_LINE_INTERRUPTED
    if all(each in active for each in gone) and (gone or new):
        return Reason.DEPENDENCIES_CHANGED
    return Reason.ORDER_CHANGED


def is_about_to_overtake(queue: Queue, submission_id: SubmissionId) -> bool:
    """It became urgent and left its batch, to be placed ahead later in the same decision."""
    return submission_id in queue.waiting.get(URGENT, ())


def submission_ids_ahead(queue: Queue, batch: Batch) -> tuple[SubmissionId, ...]:
    return tuple(submission_id for other in batches_ahead(queue, batch) for submission_id in other.submission_ids)


def batches_ahead(queue: Queue, batch: Batch) -> tuple[Batch, ...]:
    return tuple(map(queue.active.by_id.__getitem__, queue.active.ahead[batch.id]))


def batches_behind(queue: Queue, batch: Batch) -> Iterator[Batch]:
    return (other for other in queue.active.batches if batch.id in queue.active.ahead[other.id])


def is_locked_by_landing(queue: Queue, submission_id: SubmissionId) -> bool:
    """From the saved intent to the outcome, nothing else changes the pull requests of a landing."""
    landing = queue.landing
    return landing is not None and landing.is_intended and submission_id in landing.submission_ids


def unlocked_batches(queue: Queue) -> tuple[Batch, ...]:
    """The active batches that are not part of an intended landing."""
    if queue.landing is None or not queue.landing.is_intended:
        return queue.active.batches
    return tuple(batch for batch in queue.active.batches if not is_locked_by_landing(queue, batch.submission_ids[0]))


# Invalid runs are discarded before anything else is decided, so below every run of a batch has a stack that can still
# land.


def is_valid(queue: Queue, batch: Batch, run: Run) -> bool:
    return (
        run.excluded_submission_ids.isdisjoint(submission_ids_ahead(queue, batch))
        if run.excluded_submission_ids
        else True
    )


def current_run(queue: Queue, batch: Batch) -> Run | None:
    """The run that decides the batch's state: the latest valid one, otherwise the latest that can become valid."""
    runs = queue.runs_of(batch)
    valid = [run for run in runs if is_valid(queue, batch, run)] if len(runs) > 1 else ()
    return (valid or runs or (None,))[-1]


def passed_run(queue: Queue, batch: Batch) -> Run | None:
    for run in queue.runs_of(batch):
        if run.status is RunStatus.SUCCEEDED and not run.restart_requested and is_valid(queue, batch, run):
            return run
    return None


def has_passed(queue: Queue, batch: Batch) -> bool:
    return passed_run(queue, batch) is not None


def is_cleared(queue: Queue, batch: Batch) -> bool:
    """Whether a run behind it, which includes its changes, passed and clears it by optimistic merging."""
    return (
        queue.config.can_optimistically_merge
        and batch.id in _cleared_batches(queue)
        and not any(run.restart_requested or run.is_restarted for run in queue.runs_of(batch))
    )


def has_passed_or_is_cleared(queue: Queue, batch: Batch) -> bool:
    """By its own run, or by a run behind that clears it."""
    return has_passed(queue, batch) or is_cleared(queue, batch)


@memoize_on("active", "runs")
def _cleared_batches(queue: Queue) -> frozenset[BatchId]:
    return frozenset(
        other
        for batch in queue.active.batches
        if (run := passed_run(queue, batch)) is not None
        for other in queue.active.ahead[batch.id]
        if _can_clear(queue, run, other)
    )


def _can_clear(queue: Queue, run: Run, ahead: BatchId) -> bool:
    """A check that was skipped in the run behind says nothing about the changes ahead: it must be satisfied there.

    Example: A fails `unit`, and B behind it changes only documentation, so its `unit` is skipped. B passed, but `unit`
    never ran on the changes of A: B does not clear A.
    """
    skipped = [name for name in run.required_statuses if run.checks.get(name) is CheckState.NEUTRAL]
    if not skipped:
        return True
    run_ahead = current_run(queue, queue.active.by_id[ahead])
    return run_ahead is not None and all(run_ahead.checks.get(name) in SATISFIED_CHECK_STATES for name in skipped)


def failed_run(queue: Queue, batch: Batch) -> Run | None:
    """The failed run that decides the batch, once no run of the batch is active or must be repeated."""
    run = current_run(queue, batch)
    return run if run is not None and has_failed_finally(queue, run) else None


def has_failed_finally(queue: Queue, run: Run) -> bool:
    return run.status is RunStatus.FAILED and not must_be_repeated(queue, run)


def must_be_repeated(queue: Queue, run: Run) -> bool:
    return run.restart_requested or (run.status is RunStatus.FAILED and run.attempt < queue.config.test_retries)


def active_runs(queue: Queue, runs: Iterable[RunId]) -> tuple[Run, ...]:
    return tuple(run for run in (queue.runs[run_id] for run_id in runs) if run.is_active)
