"""Resolves failed batches: fails a single culprit, bisects a batch of several, and fails no pull request on a broken
base."""

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from mergeyard.domain.ids import PullRequestNumber, RunId, SubmissionId
from mergeyard.domain.journal import Cause, PullRequestChanged
from mergeyard.domain.pull_requests import Hold, Submission
from mergeyard.domain.queue import Batch, Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import PullRequestState, Reason, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import bisection, blame, entries, run_validity
from mergeyard.engine.blame import BaseHealth, Blame
from mergeyard.engine.entries import conclude_submission


def discard_stale_runs(queue: Queue, now: Instant) -> Queue:
    """Discards runs that no longer test what would merge now. Their batches are tested again."""
    stale = [
        (batch, run, reason)
        for batch in run_validity.unlocked_batches(queue)
        for run in queue.runs_of(batch)
        if (reason := run_validity.invalidation_reason(queue, batch, run)) is not None
    ]
    shown = {batch.id: (run, reason) for batch, run, reason in stale if run.id == _shown_run(queue, batch)}
    for batch, run, reason in stale:
        # Several runs of a batch can become stale at once, each for its own reason. People know of the one shown.
        told = shown.get(batch.id, (run, reason))
        queue = _discard_run(queue, batch, run, told, now)
    return queue


def _shown_run(queue: Queue, batch: Batch) -> RunId | None:
    return queue.submissions[batch.submission_ids[0]].run


def revoke_clearances(queue: Queue, now: Instant) -> Queue:
    """Batches that passed only because a run behind cleared them are tested again when that run no longer does."""
    for batch in run_validity.unlocked_batches(queue):
        if not _has_lost_its_pass(queue, batch):
            continue
        returned = _list_returned(queue, batch)
        run = run_validity.current_run(queue, batch)
        if run is not None and not run.is_active:
            queue = entries.replace_batch(queue, replace(batch, runs=()))
        reason, causes = _explain_lost_pass(queue, returned)
        for submission_id in batch.submission_ids:
            queue = entries.requeue(queue, submission_id, reason, now, causes=causes)
    return queue


def _explain_lost_pass(queue: Queue, returned: Sequence[Submission]) -> tuple[Reason, tuple[Cause, ...]]:
    """`returned`: those ahead again that a passed run had left out. They are urgent: all others go behind what is under
    test. Otherwise the batch had not passed by a run of its own: discarding that run would have changed its state."""
    if returned:
        causes = tuple(_cause_of(queue, each.id, each.number) for each in returned)
        return Reason.SKIP_THE_LINE_INTERRUPTED, causes
    if queue.config.can_optimistically_merge:
        return Reason.CLEARANCE_WITHDRAWN, ()
    return Reason.OPTIMISTIC_MERGING_OFF, ()


def _list_returned(queue: Queue, batch: Batch) -> list[Submission]:
    passed = [run for run in queue.runs_of(batch) if run.status is RunStatus.SUCCEEDED]
    excluded = frozenset[SubmissionId]().union(*(run.excluded_submission_ids for run in passed))
    ahead = run_validity.submission_ids_ahead(queue, batch)
    return [queue.submissions[each] for each in ahead if each in excluded]


def resolve_failures(queue: Queue, now: Instant) -> Queue:
    if queue.is_paused:
        return queue
    for batch in run_validity.unlocked_batches(queue):
        blamed = blame.blame_for(queue, batch)
        resolved = queue if blamed is None else _resolve_failed_batch(queue, batch, blamed, now)
        if resolved is not queue:
            return resolved
    return queue


def _discard_run(queue: Queue, batch: Batch, run: Run, told: tuple[Run, Reason], now: Instant) -> Queue:
    """`told`: what the pull requests are told if they have to be tested again, and the run that it is about."""
    current = queue.active.by_id[batch.id]
    deciding_run = run_validity.current_run(queue, current)
    rest = tuple(other for other in current.runs if other != run.id)
    queue = entries.replace_batch(queue, replace(current, runs=rest))
    is_deciding = deciding_run is not None and deciding_run.id == run.id
    if not is_deciding and not _has_lost_its_pass(queue, queue.active.by_id[batch.id]):
        return queue
    told_run, reason = told
    causes = _causes_of(queue, current, told_run, reason)
    for submission_id in batch.submission_ids:
        queue = entries.requeue(queue, submission_id, reason, now, causes=causes)
    return queue


def _has_lost_its_pass(queue: Queue, batch: Batch) -> bool:
    """Another run of the batch can have become valid by the same change, but only the discarded one had passed."""
    is_shown_as_passed = queue.submissions[batch.submission_ids[0]].state is PullRequestState.TESTS_PASSED
    return is_shown_as_passed and not run_validity.has_passed_or_is_cleared(queue, batch)


def _causes_of(queue: Queue, batch: Batch, run: Run, reason: Reason) -> tuple[Cause, ...]:
    """The pull requests because of which the run no longer counts."""
    ahead = run_validity.submission_ids_ahead(queue, batch)
    landed = queue.target_branch.landed_submission_ids
    unlanded = [member for member in run.stack if member.submission_id not in landed]
    match reason:
        case Reason.SKIP_THE_LINE_INTERRUPTED:
            # One that the run left out, because it is expected to leave, was ahead before.
            known = run.excluded_submission_ids.union(member.submission_id for member in unlanded)
            new = [queue.submissions[each] for each in ahead if each not in known]
            return tuple(_cause_of(queue, each.id, each.number) for each in new if each.is_urgent)
        case Reason.PREREQUISITE_REMOVED | Reason.ORDER_CHANGED | Reason.BATCHMATE_REMOVED:
            # One that is still active was not the cause: this batch only no longer depends on it.
            remaining = frozenset(queue.active.submission_ids)
            gone = [member for member in unlanded if member.submission_id not in remaining]
            if reason is Reason.BATCHMATE_REMOVED:
                gone = [member for member in gone if member in run.tested_members]
            return tuple(_cause_of(queue, member.submission_id, member.number) for member in gone)
        case _:
            return ()


def _cause_of(queue: Queue, submission_id: SubmissionId, number: PullRequestNumber) -> Cause:
    submission = queue.submissions.get(submission_id)
    if submission is not None:
        is_active = submission_id in queue.active.submission_ids
        if submission.is_urgent and (is_active or run_validity.is_about_to_overtake(queue, submission_id)):
            return Cause(number, Reason.MADE_URGENT, submission.priority_set_by)
        return Cause(number)
    # It left in this decision, otherwise the run would have been discarded before.
    for entry in queue.output.journal.values():
        if not isinstance(entry, PullRequestChanged) or entry.submission_id != submission_id:
            continue
        if entry.reason is Reason.CANCELLED_BY_USER:
            return Cause(number, entry.reason, entry.actor)
    return Cause(number)


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
