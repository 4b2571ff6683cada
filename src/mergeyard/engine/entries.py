"""Moves submissions between the parts of the queue, derives their states, and concludes them."""

from collections.abc import Iterable

from msgspec.structs import replace

from mergeyard.domain.ids import BatchId, PullRequestNumber, RunId, SubmissionId
from mergeyard.domain.journal import SYSTEM_ACTOR, Cause, DecisionEntry, PullRequestChanged, PullRequestUpdated
from mergeyard.domain.pull_requests import Hold, Submission
from mergeyard.domain.queue import Batch, Bisection, Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.states import PullRequestState, Reason, RunStatus, check_pull_request_transition
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import lanes, run_validity
from mergeyard.engine.pass_rate_model import update_pass_rate_model


def append_to_journal(queue: Queue, entry: DecisionEntry) -> Queue:
    journal = queue.output.journal
    return replace(queue, output=replace(queue.output, journal=journal.put(len(journal), entry)))


def set_state(
    queue: Queue,
    submission_id: SubmissionId,
    to: PullRequestState,
    reason: Reason,
    now: Instant,
    *,
    actor: str = SYSTEM_ACTOR,
    stacked_on: tuple[PullRequestNumber, ...] = (),
    causes: tuple[Cause, ...] = (),
    detail: str = "",
) -> Queue:
    submission = queue.submissions[submission_id]
    check_pull_request_transition(submission.state, to, reason)
    updated = replace(
        submission,
        state=to,
        reason=reason,
        state_changed_at=now,
        changed_by=actor,
        stacked_on=stacked_on,
        causes=causes,
        detail=detail,
    )
    entry = PullRequestChanged(
        at=now,
        submission_id=submission_id,
        number=submission.number,
        source=submission.state,
        to=to,
        reason=reason,
        actor=actor,
        run=submission.run,
        stacked_on=stacked_on,
        causes=causes,
        detail=detail,
    )
    return append_to_journal(replace(queue, submissions=queue.submissions.put(submission_id, updated)), entry)


def add_submission(queue: Queue, submission: Submission, now: Instant, actor: str, detail: str = "") -> Queue:
    entry = PullRequestChanged(
        at=now,
        submission_id=submission.id,
        number=submission.number,
        source=None,
        to=submission.state,
        reason=submission.reason,
        actor=actor,
        detail=detail,
    )
    return append_to_journal(
        replace(
            queue,
            submissions=queue.submissions.put(submission.id, submission),
            submission_by_number=queue.submission_by_number.put(submission.number, submission.id),
        ),
        entry,
    )


def requeue(
    queue: Queue,
    submission_id: SubmissionId,
    reason: Reason,
    now: Instant,
    *,
    actor: str = SYSTEM_ACTOR,
    causes: tuple[Cause, ...] = (),
) -> Queue:
    """The submission has to be tested again. Does nothing if it was not tested yet."""
    if queue.submissions[submission_id].state in (PullRequestState.NOT_READY, PullRequestState.PENDING):
        return queue
    return set_state(queue, submission_id, PullRequestState.PENDING, reason, now, actor=actor, causes=causes)


def record_update(
    queue: Queue, submission: Submission, reason: Reason, now: Instant, actor: str, detail: str = ""
) -> Queue:
    """A person changed how the queue treats this pull request, and its state stays the same."""
    entry = PullRequestUpdated(
        at=now,
        submission_id=submission.id,
        number=submission.number,
        state=submission.state,
        reason=reason,
        actor=actor,
        detail=detail,
    )
    return append_to_journal(queue, entry)


def derive_states(queue: Queue, now: Instant) -> Queue:
    for batch in run_validity.unlocked_batches(queue):
        queue = _derive_batch_states(queue, batch, now)
    for bisection in queue.bisections:
        queue = _derive_bisection_states(queue, bisection, now)
    return queue


def _derive_batch_states(queue: Queue, batch: Batch, now: Instant) -> Queue:
    run = run_validity.current_run(queue, batch)
    if run_validity.has_passed(queue, batch):
        return _set_states(queue, batch.submission_ids, PullRequestState.TESTS_PASSED, Reason.TEST_RUN_PASSED, run, now)
    if run_validity.is_cleared(queue, batch):
        return _set_states(
            queue, batch.submission_ids, PullRequestState.TESTS_PASSED, Reason.SUCCESSOR_PASSED, run, now
        )
    if run is None or run.restart_requested or run.status is RunStatus.PREPARING:
        return queue
    if run_validity.has_failed_finally(queue, run):
        reason = Reason.BATCH_FAILED if len(batch.submission_ids) > 1 else Reason.CAUSE_UNKNOWN
        return _set_states(queue, batch.submission_ids, PullRequestState.PENDING_FAILURE, reason, run, now)
    if run.status is RunStatus.FAILED:
        return queue
    return _set_states(queue, batch.submission_ids, PullRequestState.TESTING, Reason.TEST_RUN_STARTED, run, now)


def _derive_bisection_states(queue: Queue, bisection: Bisection, now: Instant) -> Queue:
    run_by_submission = dict[SubmissionId, Run]()
    for run in run_validity.active_runs(queue, bisection.runs):
        if run.status is RunStatus.IN_PROGRESS:
            run_by_submission.update((member.submission_id, run) for member in run.tested_members)
    for submission_id in bisection.members:
        run = run_by_submission.get(submission_id)
        if run is not None:
            queue = _set_states(queue, (submission_id,), PullRequestState.TESTING, Reason.TEST_RUN_STARTED, run, now)
        elif queue.submissions[submission_id].state is PullRequestState.TESTING:
            queue = set_state(queue, submission_id, PullRequestState.PENDING_FAILURE, Reason.BATCH_FAILED, now)
    return queue


def _set_states(
    queue: Queue,
    submission_ids: tuple[SubmissionId, ...],
    to: PullRequestState,
    reason: Reason,
    run: Run | None,
    now: Instant,
) -> Queue:
    for submission_id in submission_ids:
        if run is not None and run.pushed:
            queue = _set_run(queue, submission_id, run.id)
        queue = _advance_state(queue, submission_id, to, reason, now)
    return queue


def _advance_state(
    queue: Queue, submission_id: SubmissionId, to: PullRequestState, reason: Reason, now: Instant
) -> Queue:
    """Follows the transition table: several changes can happen between two decisions, and the timeline skips none."""
    state = queue.submissions[submission_id].state
    if state is to:
        return queue
    if to is PullRequestState.TESTING and state is PullRequestState.PENDING_FAILURE:
        requeue_reason = Reason.BISECTION if submission_id in queue.bisected_submission_ids else Reason.RUN_REPLACED
        queue = set_state(queue, submission_id, PullRequestState.PENDING, requeue_reason, now)
    if to is PullRequestState.PENDING_FAILURE and state is PullRequestState.PENDING:
        queue = set_state(queue, submission_id, PullRequestState.TESTING, Reason.TEST_RUN_STARTED, now)
    return set_state(queue, submission_id, to, reason, now)


def _set_run(queue: Queue, submission_id: SubmissionId, run: RunId) -> Queue:
    submission = queue.submissions[submission_id]
    if submission.run == run:
        return queue
    return replace(
        queue, submissions=queue.submissions.put(submission_id, replace(submission, run=run, was_in_run=True))
    )


def update_submission(queue: Queue, submission: Submission) -> Queue:
    if queue.submissions.get(submission.id) == submission:
        return queue
    return replace(queue, submissions=queue.submissions.put(submission.id, submission))


def move_to_waiting(queue: Queue, submission_id: SubmissionId) -> Queue:
    submission = queue.submissions[submission_id]
    bucket: SortedMap[SubmissionId, None] = queue.waiting.get(submission.waiting_priority, SortedMap())
    waiting = {**queue.waiting, submission.waiting_priority: bucket.put(submission_id, None)}
    return replace(update_submission(queue, replace(submission, hold=None)), waiting=waiting)


def move_to_held(queue: Queue, submission_id: SubmissionId, hold: Hold) -> Queue:
    queue = update_submission(queue, replace(queue.submissions[submission_id], hold=hold))
    return replace(queue, held=queue.held.put(submission_id, None))


def move_to_not_ready(queue: Queue, submission_id: SubmissionId, running_ms: int) -> Queue:
    queue = update_submission(
        queue,
        replace(queue.submissions[submission_id], not_ready_at_running_ms=running_ms, admitted_at=None, hold=None),
    )
    return replace(queue, not_ready=queue.not_ready.put((running_ms, submission_id), None))


def return_to_waiting(
    queue: Queue,
    submission_ids: Iterable[SubmissionId],
    reason: Reason,
    now: Instant,
    *,
    actor: str = SYSTEM_ACTOR,
    causes: tuple[Cause, ...] = (),
) -> Queue:
    """From an active batch or a bisection back to waiting, to be tested again."""
    for submission_id in submission_ids:
        queue = requeue(queue, submission_id, reason, now, actor=actor, causes=causes)
        queue = move_to_waiting(queue, submission_id)
    return queue


def return_from_bisection(
    queue: Queue,
    submission_ids: Iterable[SubmissionId],
    reason: Reason,
    now: Instant,
    *,
    causes: tuple[Cause, ...] = (),
) -> Queue:
    """They wait ahead of all submissions that were not started yet, except urgent ones."""
    for submission_id in submission_ids:
        submission = replace(queue.submissions[submission_id], returned_from_bisection=True)
        queue = update_submission(queue, submission)
        queue = return_to_waiting(queue, (submission_id,), reason, now, causes=causes)
    return queue


def return_to_held(queue: Queue, submission_ids: Iterable[SubmissionId], hold: Hold, now: Instant) -> Queue:
    """From an active batch or a bisection to held, out of every stack for now."""
    for submission_id in submission_ids:
        queue = move_to_held(requeue(queue, submission_id, hold.reason, now), submission_id, hold)
    return queue


def keep_together(queue: Queue, submission_ids: tuple[SubmissionId, ...]) -> Queue:
    for submission_id in submission_ids:
        queue = update_submission(queue, replace(queue.submissions[submission_id], keep_together=submission_ids))
    return queue


def remove_entry(queue: Queue, submission_id: SubmissionId) -> Queue:
    """Removes the submission from where it is, except from a bisection (see `on_member_left`)."""
    submission = queue.submissions[submission_id]
    bucket = queue.waiting.get(submission.waiting_priority)
    if bucket is not None and submission_id in bucket:
        return replace(queue, waiting=_with_bucket(queue, submission.waiting_priority, bucket.drop(submission_id)))
    batch = batch_of(queue, submission_id)
    if batch is not None:
        return _remove_from_batch(queue, batch, submission_id)
    return replace(
        queue,
        not_ready=queue.not_ready.drop((submission.not_ready_at_running_ms, submission_id)),
        held=queue.held.drop(submission_id),
    )


def create_batch(queue: Queue, submission_ids: tuple[SubmissionId, ...]) -> tuple[Queue, Batch]:
    count = queue.counters.batches + 1
    batch = Batch(
        id=BatchId(count),
        submission_ids=submission_ids,
        impacted_targets=lanes.union_of_impacted_targets(queue, submission_ids),
        prerequisites=lanes.contained_submission_ids(queue, submission_ids),
    )
    return replace(queue, counters=replace(queue.counters, batches=count)), batch


def append_batch(queue: Queue, batch: Batch) -> Queue:
    return replace(queue, active=lanes.append_to_active(queue.active, batch))


def batch_of(queue: Queue, submission_id: SubmissionId) -> Batch | None:
    return next((batch for batch in queue.active.batches if submission_id in batch.submission_ids), None)


def replace_batch(queue: Queue, batch: Batch) -> Queue:
    """Replaces the batch with the same id in the same position. Its lane stays the same."""
    batches = tuple(batch if other.id == batch.id else other for other in queue.active.batches)
    return replace(queue, active=replace(queue.active, batches=batches))


def recompute_lane(queue: Queue, batch: Batch) -> Queue:
    """The same batch in the same position, with its current members and impacted targets."""
    impacted_targets, prerequisites = (
        lanes.union_of_impacted_targets(queue, batch.submission_ids),
        lanes.contained_submission_ids(queue, batch.submission_ids),
    )
    updated = replace(batch, impacted_targets=impacted_targets, prerequisites=prerequisites)
    active = lanes.build_active(updated if other.id == batch.id else other for other in queue.active.batches)
    return replace(queue, active=active)


def remove_batch(queue: Queue, batch: Batch) -> Queue:
    return replace(queue, active=lanes.build_active(other for other in queue.active.batches if other.id != batch.id))


def _with_bucket(
    queue: Queue, priority: int, bucket: SortedMap[SubmissionId, None]
) -> dict[int, SortedMap[SubmissionId, None]]:
    waiting = {**queue.waiting, priority: bucket}
    if not bucket:
        del waiting[priority]
    return waiting


def _remove_from_batch(queue: Queue, batch: Batch, submission_id: SubmissionId) -> Queue:
    rest = tuple(other for other in batch.submission_ids if other != submission_id)
    return recompute_lane(queue, replace(batch, submission_ids=rest)) if rest else remove_batch(queue, batch)


def running_time_ms(queue: Queue, now: Instant) -> int:
    since = 0 if queue.running_since is None else now - queue.running_since
    return queue.running_ms + since


def bisection_of(queue: Queue, submission_id: SubmissionId) -> Bisection | None:
    return next((each for each in queue.bisections if submission_id in each.members), None)


def update_bisection(queue: Queue, bisection: Bisection) -> Queue:
    if bisection in queue.bisections:
        return queue
    updated = tuple(bisection if each.id == bisection.id else each for each in queue.bisections)
    return replace(queue, bisections=updated)


def remove_bisection(queue: Queue, bisection: Bisection) -> Queue:
    return replace(queue, bisections=tuple(each for each in queue.bisections if each.id != bisection.id))


def abort_bisection(
    queue: Queue,
    bisection: Bisection,
    rest: tuple[SubmissionId, ...],
    reason: Reason,
    now: Instant,
    *,
    causes: tuple[Cause, ...] = (),
) -> Queue:
    """The remaining members are tested again, together."""
    queue = remove_bisection(queue, bisection)
    return return_from_bisection(keep_together(queue, rest), rest, reason, now, causes=causes)


def on_member_left(
    queue: Queue, submission_id: SubmissionId, merged: bool, now: Instant, causes: tuple[Cause, ...] = ()
) -> Queue:
    """A submission leaves: results of prefixes that contain it no longer count, unless it was in the passed prefix and
    merged."""
    for bisection in queue.bisections:
        if merged and submission_id in bisection.submission_ids[: bisection.passed_prefix]:
            queue = update_bisection(
                queue, replace(bisection, merged_submission_ids=bisection.merged_submission_ids | {submission_id})
            )
        elif submission_id in bisection.submission_ids[: bisection.failed_prefix]:
            rest = tuple(other for other in bisection.members if other != submission_id)
            queue = abort_bisection(queue, bisection, rest, Reason.BATCHMATE_REMOVED, now, causes=causes)
    return queue


def conclude_submission(
    queue: Queue,
    submission_id: SubmissionId,
    state: PullRequestState,
    reason: Reason,
    now: Instant,
    *,
    actor: str = SYSTEM_ACTOR,
    stacked_on: tuple[PullRequestNumber, ...] = (),
    causes: tuple[Cause, ...] = (),
    detail: str = "",
) -> Queue:
    queue = remove_entry(queue, submission_id)
    cause = Cause(queue.submissions[submission_id].number, None if actor == SYSTEM_ACTOR else reason, actor)
    queue = on_member_left(queue, submission_id, state is PullRequestState.MERGED, now, (cause,))
    queue = set_state(
        queue, submission_id, state, reason, now, actor=actor, stacked_on=stacked_on, causes=causes, detail=detail
    )
    submission = queue.submissions[submission_id]
    return replace(
        update_pass_rate_model(queue, submission),
        submissions=queue.submissions.drop(submission_id),
        submission_by_number=queue.submission_by_number.drop(submission.number),
        refresh_requested=queue.refresh_requested.drop(submission_id),
        output=replace(
            queue.output, concluded_submissions=queue.output.concluded_submissions.put(submission_id, submission)
        ),
    )
