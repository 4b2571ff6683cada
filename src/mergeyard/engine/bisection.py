"""Finds the culprit of a failed batch: the last member of its shortest failing prefix."""

from typing import assert_never

from msgspec.structs import replace

from mergeyard.domain.config import OptimizationMode
from mergeyard.domain.ids import RunId, SubmissionId
from mergeyard.domain.pull_requests import Hold
from mergeyard.domain.queue import Batch, Bisection, Queue
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import PullRequestState, Reason, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import blame, entries, lanes, run_lifecycle, run_validity
from mergeyard.engine.blame import BaseHealth
from mergeyard.engine.entries import abort_bisection, conclude_submission, remove_bisection, update_bisection
from mergeyard.engine.run_lifecycle import Stack


def resolve_suspect(queue: Queue, bisection: Bisection, now: Instant) -> Queue:
    unmerged = tuple(
        submission_id for submission_id in bisection.prefix if submission_id not in bisection.merged_submission_ids
    )
    if bisection.suspect in lanes.contained_submission_ids(
        queue, unmerged
    ):  # so the passed prefix contained its commits
        return _clear_suspect(queue, bisection, now)
    if unmerged:
        return queue
    if not bisection.prefix:
        return _resolve_failed_suspect(queue, bisection, bisection.failed_run, now)
    if queue.config.optimization_mode is OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS:
        return _fail_suspect(queue, bisection, Reason.FAILED_BY_OPTIMIZATION, now)
    if not bisection.is_confirming:
        return _confirm(queue, bisection)
    return _resolve_confirmation(queue, bisection, queue.runs[bisection.runs[-1]], now)


def _confirm(queue: Queue, bisection: Bisection) -> Queue:
    """One more run on top of the other members as they merged."""
    if queue.target_branch.tip is None or not run_lifecycle.free_bisection_slots(queue):
        return queue
    stack = Stack(queue.target_branch.tip, run_lifecycle.stack_members(queue, (bisection.suspect,)))
    queue, run = run_lifecycle.start_run(queue, RunKind.BISECTION, stack, 1)
    return update_bisection(queue, replace(bisection, is_confirming=True, runs=(run,)))


def _resolve_confirmation(queue: Queue, bisection: Bisection, run: Run, now: Instant) -> Queue:
    if run.is_active:
        return queue
    if run.status is RunStatus.SUCCEEDED:
        return _clear_suspect(queue, bisection, now)
    if run.invalidated is not None or run_validity.must_be_repeated(queue, run):
        return _confirm_again(queue, bisection, run)
    return _resolve_failed_suspect(queue, bisection, run, now)


def _resolve_failed_suspect(queue: Queue, bisection: Bisection, run: Run, now: Instant) -> Queue:
    match health := blame.base_health(queue, run):
        case BaseHealth.PASSING:
            return _fail_suspect(queue, bisection, run.failure_reason, now)
        case BaseHealth.BROKEN:
            queue = remove_bisection(queue, bisection)
            return entries.return_to_held(queue, (bisection.suspect,), Hold(Reason.BASE_BROKEN, tip=run.base), now)
        case BaseHealth.UNKNOWN:
            return queue
        case _:
            assert_never(health)


def _confirm_again(queue: Queue, bisection: Bisection, run: Run) -> Queue:
    if not run_lifecycle.free_bisection_slots(queue):
        return queue
    queue, new_run_id = run_lifecycle.repeat_run(queue, run)
    return update_bisection(queue, replace(bisection, runs=(new_run_id,)))


def _clear_suspect(queue: Queue, bisection: Bisection, now: Instant) -> Queue:
    return entries.return_from_bisection(
        remove_bisection(queue, bisection), (bisection.suspect,), Reason.BISECTION_PASSED, now
    )


def _fail_suspect(queue: Queue, bisection: Bisection, reason: Reason, now: Instant) -> Queue:
    stacked_on = tuple(
        member.number for member in bisection.batch_run.tested_members if member.submission_id in bisection.prefix
    )
    return conclude_submission(queue, bisection.suspect, PullRequestState.FAILED, reason, now, stacked_on=stacked_on)


def start_bisection(queue: Queue, batch: Batch, run: Run) -> Queue:
    """The batch leaves the active batches, which go on without it. The whole batch is known to fail and is not run
    again."""
    size = len(batch.submission_ids)
    bisection = Bisection(
        id=batch.id,
        submission_ids=batch.submission_ids,
        impacted_targets=batch.impacted_targets,
        batch_run=run,
        failed_prefix=size,
        failed_run=run,
    )
    queue = entries.remove_batch(queue, batch)
    return replace(queue, bisections=(*queue.bisections, bisection))


def advance_bisections(queue: Queue, now: Instant) -> Queue:
    if queue.is_paused:
        return queue
    untestable = run_validity.untestable_reason(queue)
    if untestable is not None:
        return _abort_all(queue, untestable, now)
    for bisection in queue.bisections:
        step = _search if bisection.is_searching else resolve_suspect
        changed = step(queue, bisection, now)
        if changed is not queue:
            return changed
    return queue


def _abort_all(queue: Queue, reason: Reason, now: Instant) -> Queue:
    """No checks are required any longer, or it is not known which, so no run could prove anything."""
    for bisection in queue.bisections:
        queue = abort_bisection(queue, bisection, bisection.members, reason, now)
    return queue


def _search(queue: Queue, before: Bisection, now: Instant) -> Queue:
    runs = queue.runs_of(before)
    after = _read_results(queue, before, runs)
    queue = update_bisection(queue, after)
    queue = _return_passed_members(queue, before, after, runs, now)
    left_out = after.submission_ids[after.failed_prefix : before.failed_prefix]
    queue = entries.return_from_bisection(queue, left_out, Reason.BISECTION_LEFT_OUT, now)
    return _start_prefix_runs(queue, after) if after.is_searching else queue


def _read_results(queue: Queue, bisection: Bisection, runs: tuple[Run, ...]) -> Bisection:
    passed_prefix, failed_prefix, failed_run = bisection.passed_prefix, bisection.failed_prefix, bisection.failed_run
    for run in runs:
        if run.invalidated is not None or not passed_prefix < run.tested_count < failed_prefix:
            continue
        if run.status is RunStatus.SUCCEEDED:
            passed_prefix = run.tested_count
        elif run_validity.has_failed_finally(queue, run):
            failed_prefix, failed_run = run.tested_count, run
    open_runs = tuple(
        run.id for run in runs if passed_prefix < run.tested_count < failed_prefix and run.invalidated is None
    )
    return replace(
        bisection, passed_prefix=passed_prefix, failed_prefix=failed_prefix, failed_run=failed_run, runs=open_runs
    )


def _return_passed_members(
    queue: Queue, before: Bisection, after: Bisection, runs: tuple[Run, ...], now: Instant
) -> Queue:
    passed = after.submission_ids[before.passed_prefix : after.passed_prefix]
    if passed and _can_land_as_tested(queue, before):
        run_id = next(run.id for run in runs if run.tested_count == after.passed_prefix)
        return _activate_passed_prefix(queue, passed, run_id)
    return entries.return_from_bisection(entries.keep_together(queue, passed), passed, Reason.BISECTION_PASSED, now)


def _can_land_as_tested(queue: Queue, bisection: Bisection) -> bool:
    """Only if nothing else is under test, the target branch is still the base of the bisection, and nothing was removed
    from it."""
    alone = not queue.active.batches and len(queue.bisections) == 1
    same_base = queue.target_branch.tip == bisection.base and not queue.target_branch.removed_commits
    return alone and same_base and queue.can_start_runs and bisection.passed_prefix == 0


def _activate_passed_prefix(queue: Queue, submission_ids: tuple[SubmissionId, ...], run_id: RunId) -> Queue:
    queue, batch = entries.create_batch(queue, submission_ids)
    queue = entries.append_batch(queue, replace(batch, runs=(run_id,)))
    return run_lifecycle.put_run(queue, replace(queue.runs[run_id], batch=batch.id))


def _start_prefix_runs(queue: Queue, bisection: Bisection) -> Queue:
    """Tests prefixes evenly spaced over the unknown part, as many at once as the budget allows."""
    run_ids = dict[int, RunId]()
    for run in queue.runs_of(bisection):
        run_ids[run.tested_count] = run.id
        if not run.is_active and run_lifecycle.free_bisection_slots(queue):
            queue, run_ids[run.tested_count] = run_lifecycle.repeat_run(queue, run)
    for length in _spaced_lengths(bisection, len(run_ids) + run_lifecycle.free_bisection_slots(queue)):
        if length not in run_ids and run_lifecycle.free_bisection_slots(queue):
            stack = _prefix_stack(queue, bisection, length)
            queue, run_ids[length] = run_lifecycle.start_run(queue, RunKind.BISECTION, stack, length)
    return update_bisection(queue, replace(bisection, runs=tuple(run_ids.values())))


def _spaced_lengths(bisection: Bisection, count: int) -> tuple[int, ...]:
    gap = bisection.failed_prefix - bisection.passed_prefix
    parts = min(count, gap - 1) + 1
    return tuple(bisection.passed_prefix - (-part * gap // parts) for part in range(1, parts))


def _prefix_stack(queue: Queue, bisection: Bisection, length: int) -> Stack:
    """Reuses the commits of the failed run. Only the tip must be new, so that the checks belong to this run."""
    same_method = bisection.batch_run.merge_method is queue.config.merge_method
    reused = bisection.steps[: length - 1] if same_method else ()
    return Stack(bisection.base, bisection.batch_run.tested_members[:length], reused_steps=reused)
