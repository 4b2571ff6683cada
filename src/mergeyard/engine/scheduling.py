"""Gives free slots to what should be tested next."""

from itertools import islice

from msgspec.structs import replace

from mergeyard.domain.ids import Sha, SubmissionId
from mergeyard.domain.queue import Batch, Queue
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PullRequestState, QueueState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import admission, batching, blame, entries, lanes, run_lifecycle, run_validity, speculation
from mergeyard.engine.entries import conclude_submission
from mergeyard.engine.run_lifecycle import Stack


def start_runs(queue: Queue, now: Instant) -> Queue:
    """First base runs that others wait for, then runs to be repeated, then the stacks that `speculation` proposes."""
    tip = queue.target_branch.tip
    if tip is None or not run_lifecycle.free_slots(queue):
        return queue
    match run_validity.untestable_reason(queue):
        case None:
            pass
        case Reason.NO_REQUIRED_STATUSES:
            return queue
        case reason:
            return _fail_misconfigured(queue, reason, now)
    queue = _recompute_lanes(_start_base_runs(queue))
    queue = _activate_waiting(_repeat_active_batches(queue), now)
    for candidate in islice(speculation.propose(queue), run_lifecycle.free_slots(queue)):
        queue = _start_run(queue, queue.active.by_id[candidate.batch.id], tip, candidate.excluded_submission_ids)
    return queue


def start_clearing_runs(queue: Queue, now: Instant) -> Queue:
    """A run behind a failed batch can clear it, so such runs start before the failure is resolved."""
    can_clear = queue.config.can_optimistically_merge and queue.config.pending_failure_depth
    return start_runs(queue, now) if can_clear else queue


def demote_untestable(queue: Queue, now: Instant) -> Queue:
    """Without required checks, what is not under test waits as not ready until a check is configured."""
    if queue.state is not QueueState.RUNNING or not run_validity.lacks_required_statuses(queue):
        return queue
    for submission_id in (*_list_untested(queue), *queue.held):
        queue = admission.demote_to_not_ready(queue, submission_id, Reason.NO_REQUIRED_STATUSES, now)
    return queue


def _fail_misconfigured(queue: Queue, reason: Reason, now: Instant) -> Queue:
    detail = run_validity.required_statuses(queue).config_error or ""
    for submission_id in _list_untested(queue):
        # If it is not pending, its run was to be repeated, or it waits for its base.
        queue = entries.requeue(queue, submission_id, reason, now)
        queue = conclude_submission(queue, submission_id, PullRequestState.FAILED, reason, now, detail=detail)
    return queue


def _list_untested(queue: Queue) -> list[SubmissionId]:
    idle = [
        submission_id
        for batch in queue.active.batches
        if _needs_test(queue, batch)
        for submission_id in batch.submission_ids
    ]
    waiting = [submission_id for bucket in queue.waiting.values() for submission_id in bucket]
    return [each for each in (*idle, *waiting) if not run_validity.is_locked_by_landing(queue, each)]


def _needs_test(queue: Queue, batch: Batch) -> bool:
    return not run_validity.active_runs(queue, batch.runs) and not run_validity.has_passed_or_is_cleared(queue, batch)


def _start_base_runs(queue: Queue) -> Queue:
    for base in sorted(blame.untested_bases(queue)):
        if run_lifecycle.free_slots(queue):
            queue = _start_base_run(queue, base)
    return queue


def _start_base_run(queue: Queue, base: Sha) -> Queue:
    run = blame.base_runs(queue).get(base)
    if run is not None and run.is_active:
        return queue
    if run is None or not run_validity.must_be_repeated(queue, run):
        return run_lifecycle.start_run(queue, RunKind.BASE, Stack(base, ()), 0)[0]
    return run_lifecycle.repeat_run(queue, run)[0]


def _recompute_lanes(queue: Queue) -> Queue:
    """For batches without a run, before any of them starts: their impacted targets may have changed since."""
    for batch in run_validity.unlocked_batches(queue):
        if not batch.runs and batch.impacted_targets != lanes.union_of_impacted_targets(queue, batch.submission_ids):
            queue = entries.recompute_lane(queue, batch)
    return queue


def _repeat_active_batches(queue: Queue) -> Queue:
    for batch in run_validity.unlocked_batches(queue):
        queue = _repeat_runs(queue, batch)
    return queue


def _repeat_runs(queue: Queue, batch: Batch) -> Queue:
    to_repeat = [run for run in queue.runs_of(batch) if run_validity.must_be_repeated(queue, run)]
    if not to_repeat or run_validity.has_passed_or_is_cleared(queue, batch):
        return queue
    for run in to_repeat[: run_lifecycle.free_slots(queue)]:
        queue, new_run_id = run_lifecycle.repeat_run(queue, run)
        runs = tuple(new_run_id if other == run.id else other for other in batch.runs)
        batch = replace(batch, runs=runs)
    return entries.replace_batch(queue, batch)


def _activate_waiting(queue: Queue, now: Instant) -> Queue:
    """Becoming active costs nothing, but an active batch is no longer reordered. No batch joins a deferred lane; other
    lanes go on."""
    while (free := _free_batch_slots(queue)) > 0:
        ready = batching.form_batches(queue, now, speculation.deferred_batches(queue)).ready
        if not ready:
            return queue
        for submission_ids in ready[:free]:
            queue = _activate_batch(queue, submission_ids)
    return queue


def _free_batch_slots(queue: Queue) -> int:
    idle = sum(not batch.runs for batch in queue.active.batches)
    return run_lifecycle.free_slots(queue) - idle + len(speculation.deferred_batches(queue))


def _activate_batch(queue: Queue, submission_ids: tuple[SubmissionId, ...]) -> Queue:
    held = admission.hold_until_prerequisite_queued(queue, submission_ids)
    if held is not queue:
        return held
    for submission_id in submission_ids:
        queue = entries.remove_entry(queue, submission_id)
        started = replace(queue.submissions[submission_id], keep_together=(), returned_from_bisection=False)
        queue = entries.update_submission(queue, started)
    queue, batch = entries.create_batch(queue, submission_ids)
    return entries.append_batch(queue, batch)


def _start_run(queue: Queue, batch: Batch, tip: Sha, excluded: frozenset[SubmissionId] = frozenset()) -> Queue:
    stack = run_lifecycle.plan_stack(queue, batch, tip, excluded)
    queue, run = run_lifecycle.start_run(queue, RunKind.BATCH, stack, len(batch.submission_ids), batch.id)
    return entries.replace_batch(queue, replace(batch, runs=(*batch.runs, run)))
