"""Resolves failed batches: fails a single culprit, bisects a batch of several, and fails no pull request on a broken
base."""

from typing import assert_never

from msgspec.structs import replace

from mergeyard.domain.ids import RunId
from mergeyard.domain.pull_requests import Hold
from mergeyard.domain.queue import Batch, Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import PullRequestState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import bisection, blame, entries, run_validity
from mergeyard.engine.blame import BaseHealth, Blame
from mergeyard.engine.entries import conclude_submission


def discard_stale_runs(queue: Queue, now: Instant) -> Queue:
    """Discards runs that no longer test what would merge now. Their batches are tested again."""
    stale = [
        (batch, run.id, reason)
        for batch in run_validity.unlocked_batches(queue)
        for run in queue.runs_of(batch)
        if (reason := run_validity.invalidation_reason(queue, batch, run)) is not None
    ]
    for batch, run_id, reason in stale:
        queue = _discard_run(queue, batch, run_id, reason, now)
    return queue


def revoke_clearances(queue: Queue, now: Instant) -> Queue:
    """Batches that passed only because a run behind cleared them are tested again when that run no longer does."""
    for batch in run_validity.unlocked_batches(queue):
        is_shown_as_passed = queue.submissions[batch.submission_ids[0]].state is PullRequestState.TESTS_PASSED
        if not is_shown_as_passed or run_validity.has_passed_or_is_cleared(queue, batch):
            continue
        run = run_validity.current_run(queue, batch)
        if run is not None and not run.is_active:
            queue = entries.replace_batch(queue, replace(batch, runs=()))
        for submission_id in batch.submission_ids:
            queue = entries.requeue(queue, submission_id, Reason.PREREQUISITE_REMOVED, now)
    return queue


def resolve_failures(queue: Queue, now: Instant) -> Queue:
    if queue.is_paused:
        return queue
    for batch in run_validity.unlocked_batches(queue):
        blamed = blame.blame_for(queue, batch)
        resolved = queue if blamed is None else _resolve_failed_batch(queue, batch, blamed, now)
        if resolved is not queue:
            return resolved
    return queue


def _discard_run(queue: Queue, batch: Batch, run: RunId, reason: Reason, now: Instant) -> Queue:
    current = queue.active.by_id[batch.id]
    deciding_run = run_validity.current_run(queue, current)
    rest = tuple(other for other in current.runs if other != run)
    queue = entries.replace_batch(queue, replace(current, runs=rest))
    for submission_id in batch.submission_ids if deciding_run is not None and deciding_run.id == run else ():
        queue = entries.requeue(queue, submission_id, reason, now)
    return queue


def _resolve_failed_batch(queue: Queue, batch: Batch, blamed: Blame, now: Instant) -> Queue:
    match health := blame.base_health(queue, blamed.run):
        case BaseHealth.UNKNOWN:
            return queue
        case BaseHealth.BROKEN:
            queue = entries.remove_batch(queue, batch)
            hold = Hold(Reason.BASE_BROKEN, tip=blamed.run.base)
            return entries.return_to_held(queue, batch.submission_ids, hold, now)
        case BaseHealth.PASSING:
            return _fail_or_bisect(queue, batch, blamed.run, now)
        case _:
            assert_never(health)


def _fail_or_bisect(queue: Queue, batch: Batch, run: Run, now: Instant) -> Queue:
    suspect, *others = batch.submission_ids
    if others:
        return bisection.start_bisection(queue, batch, run)
    stacked_on = tuple(member.number for member in run.prs_ahead)
    return conclude_submission(queue, suspect, PullRequestState.FAILED, run.failure_reason, now, stacked_on=stacked_on)
