"""Carries out requests about a pull request: submit, cancel, restart, change its priority, set its impacted targets."""

from collections.abc import Iterator

from msgspec.structs import replace

from mergeyard.domain import events
from mergeyard.domain.config import DEFAULT_PRIORITY, URGENT, Mode, format_priority
from mergeyard.domain.ids import SubmissionId
from mergeyard.domain.journal import SYSTEM_ACTOR
from mergeyard.domain.pull_requests import PullRequest, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import PullRequestState, Reason, Refusal, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import admission, blame, entries, observations, preemption, run_lifecycle, run_validity
from mergeyard.engine.entries import abort_bisection, bisection_of, conclude_submission, running_time_ms


def submit(queue: Queue, event: events.PullRequestSubmitted, now: Instant) -> Queue | Refusal:
    """Applies the host's view first. It can end the existing submission; then a new one starts, if possible."""
    existing = queue.submission_of(event.pull_request.number)
    if existing is None:
        return _closed_refusal(event.pull_request) or _add_submission(queue, event, now)
    queue = observations.record_pull_request(
        queue,
        events.PullRequestObserved(
            pull_request=event.pull_request,
            observed_at_revision=event.observed_at_revision,
            impacted_targets=event.impacted_targets,
        ),
        now,
    )
    existing = queue.submission_of(event.pull_request.number)
    if existing is not None:
        return _update_submission(queue, existing, event, now)
    return queue if _closed_refusal(event.pull_request) else _add_submission(queue, event, now)


def cancel(queue: Queue, event: events.CancelRequested, now: Instant) -> Queue | Refusal:
    submission = queue.submission_of(event.number)
    if submission is None:
        return Refusal.PR_NOT_SUBMITTED
    if run_validity.is_locked_by_landing(queue, submission.id):
        return Refusal.MERGE_IN_PROGRESS
    reason = Reason.CANCELLED_BY_USER
    return conclude_submission(queue, submission.id, PullRequestState.CANCELLED, reason, now, actor=event.actor)


def restart(queue: Queue, event: events.RestartRequested, now: Instant) -> Queue | Refusal:
    """The batch gets a new run in the same position. Runs behind it continue. Before a first test nothing changes,
    unless the pull request waits because the target branch fails: then that is tested again."""
    submission = queue.submission_of(event.number)
    if submission is None:
        return Refusal.PR_NOT_SUBMITTED
    if run_validity.is_locked_by_landing(queue, submission.id):
        return Refusal.MERGE_IN_PROGRESS
    if submission.state in (PullRequestState.NOT_READY, PullRequestState.PENDING):
        return _restart_base_test(queue, submission, now, event.actor)
    bisection = bisection_of(queue, submission.id)
    if bisection is not None:
        for submission_id in bisection.members:
            queue = entries.requeue(queue, submission_id, Reason.TESTS_RESTARTED, now, actor=event.actor)
        return abort_bisection(queue, bisection, bisection.members, Reason.TESTS_RESTARTED, now)
    batch = next(batch for batch in queue.active.batches if submission.id in batch.submission_ids)
    for run in queue.runs_of(batch):
        if run.is_active:
            queue = run_lifecycle.finish_run(queue, run, RunStatus.CANCELLED, now)
        queue = run_lifecycle.put_run(queue, replace(queue.runs[run.id], restart_requested=True))
    for submission_id in batch.submission_ids:
        queue = entries.requeue(queue, submission_id, Reason.TESTS_RESTARTED, now, actor=event.actor)
    return queue


def _restart_base_test(queue: Queue, submission: Submission, now: Instant, actor: str) -> Queue:
    """For a pull request that waits because the target branch fails its own test."""
    if submission.hold is None or submission.hold.reason is not Reason.BASE_BROKEN:
        return queue
    restarted = blame.forget_broken_base(queue)
    if restarted is queue:
        return queue  # it is being tested already
    return entries.record_update(restarted, submission, Reason.BASE_TEST_RESTARTED, now, actor)


def change_priority(queue: Queue, event: events.PriorityRequested, now: Instant) -> Queue | Refusal:
    submission = queue.submission_of(event.number)
    if submission is None:
        return Refusal.PR_NOT_SUBMITTED
    if run_validity.is_locked_by_landing(queue, submission.id):
        return Refusal.MERGE_IN_PROGRESS
    return _apply_priority(queue, submission, event.priority, now, event.actor)


def set_impacted_targets(queue: Queue, event: events.ImpactedTargetsUploaded, now: Instant) -> Queue:
    """Sets `recorded_at_revision`, so that a read that began before the upload does not restore the former targets."""
    submission = queue.submission_of(event.number)
    if (
        submission is None
        or submission.pull_request.head != event.head
        or event.impacted_targets == submission.impacted_targets
    ):
        return queue
    queue = entries.update_submission(
        queue,
        replace(submission, impacted_targets=event.impacted_targets, recorded_at_revision=queue.counters.revision),
    )
    return admission.admit_if_ready(queue, submission.id, now)


def _closed_refusal(pull_request: PullRequest) -> Refusal | None:
    if pull_request.is_in_target_branch or pull_request.merged_into is not None:
        return Refusal.PR_ALREADY_MERGED
    return None if pull_request.is_open else Refusal.PR_CLOSED


def _add_submission(queue: Queue, event: events.PullRequestSubmitted, now: Instant) -> Queue:
    count, running_ms = queue.counters.submissions + 1, running_time_ms(queue, now)
    submission = Submission(
        id=SubmissionId(count),
        pull_request=event.pull_request,
        priority=DEFAULT_PRIORITY if event.priority is None else event.priority,
        priority_is_default=event.priority is None,
        priority_set_by=SYSTEM_ACTOR if event.priority is None else event.actor,
        no_batch=bool(event.no_batch),
        forced=bool(event.forced),
        forced_by=event.actor if event.forced else SYSTEM_ACTOR,
        head_pinned=event.head_pinned,
        by_maintainer=event.by_maintainer,
        impacted_targets=event.impacted_targets,
        costly_head=event.pull_request.head if event.pull_request.exceeded_limit else None,
        submitted_at=now,
        state_changed_at=now,
        not_ready_at_running_ms=running_ms,
        recorded_at_revision=queue.counters.revision,
    )
    queue = replace(queue, counters=replace(queue.counters, submissions=count))
    queue = entries.add_submission(queue, submission, now, event.actor, _describe_options(submission))
    queue = entries.move_to_not_ready(queue, submission.id, running_ms)
    return admission.admit_if_ready(_request_refresh_if_needed(queue, submission, event), submission.id, now)


def _update_submission(queue: Queue, existing: Submission, event: events.PullRequestSubmitted, now: Instant) -> Queue:
    """Changes only what was given, and nothing while the merge is being pushed."""
    if run_validity.is_locked_by_landing(queue, existing.id):
        return queue
    # Force and the approval of a maintainer are for the head that was read, and the queue can know a newer one.
    has_head = event.pull_request.head == existing.pull_request.head
    amended = replace(
        existing,
        head_pinned=existing.head_pinned or event.head_pinned,
        by_maintainer=existing.by_maintainer or (event.by_maintainer and has_head),
    )
    if event.no_batch is not None:
        amended = replace(amended, no_batch=event.no_batch)
    if event.forced is not None and has_head and event.forced is not existing.forced:
        forced_by = event.actor if event.forced else SYSTEM_ACTOR
        amended = replace(amended, forced=event.forced, forced_by=forced_by)
    if event.impacted_targets and _has_newer_targets(event, existing):
        amended = replace(amended, impacted_targets=event.impacted_targets)
    queue = entries.update_submission(queue, amended)
    for reason, detail in _list_updates(existing, amended):
        queue = entries.record_update(queue, amended, reason, now, event.actor, detail)
    queue = _restart_base_test(queue, amended, now, event.actor)
    if event.priority is not None:
        queue = _apply_priority(queue, amended, event.priority, now, event.actor)
    return admission.admit_if_ready(_request_refresh_if_needed(queue, amended, event), existing.id, now)


def _describe_options(submission: Submission) -> str:
    """What the submitter asked for in addition."""
    options = list[str]()
    if not submission.priority_is_default:
        options.append(f"Priority {format_priority(submission.priority)}.")
    if submission.forced:
        options.append("Forced.")
    if submission.no_batch:
        options.append("Tested alone.")
    if submission.by_maintainer and submission.pull_request.fork:
        options.append("Guarded paths approved.")
    return " ".join(options)


def _list_updates(before: Submission, after: Submission) -> Iterator[tuple[Reason, str]]:
    """What a user changed, with details."""
    if after.forced is not before.forced:
        yield Reason.FORCED if after.forced else Reason.FORCE_WITHDRAWN, ""
    if after.no_batch is not before.no_batch:
        yield Reason.UNBATCHED if after.no_batch else Reason.BATCHING_ALLOWED, ""
    is_approved = after.by_maintainer and not before.by_maintainer
    if is_approved and after.pull_request.fork and after.pull_request.guarded_paths != ():
        yield Reason.GUARDED_PATHS_APPROVED, f"Head: {after.pull_request.head}."


def _has_newer_targets(event: events.PullRequestSubmitted, existing: Submission) -> bool:
    """A read that began before the last upload can hold the former targets."""
    return event.pull_request.head == existing.pull_request.head and (
        existing.impacted_targets is None or event.observed_at_revision >= existing.recorded_at_revision
    )


def _request_refresh_if_needed(queue: Queue, submission: Submission, event: events.PullRequestSubmitted) -> Queue:
    """An upload can be in flight concurrently: whichever is processed first, a fresh read finds the targets."""
    awaits_targets = submission.impacted_targets is None and queue.config.mode is Mode.PARALLEL
    is_known = event.merge_checked and not submission.pull_request.exceeded_limit
    if awaits_targets or not is_known:
        return observations.request_pull_request_refresh(queue, submission.number)
    return queue


def _apply_priority(queue: Queue, submission: Submission, priority: int, now: Instant, actor: str) -> Queue:
    changed = replace(submission, priority=priority, priority_is_default=False)
    if priority != submission.priority:
        changed = replace(changed, priority_set_by=actor)
        detail = f"From {format_priority(submission.priority)} to {format_priority(priority)}."
        queue = entries.record_update(queue, submission, Reason.PRIORITY_CHANGED, now, actor, detail)
    bucket = queue.waiting.get(submission.waiting_priority, ())
    if submission.id in bucket:
        queue = entries.update_submission(entries.remove_entry(queue, submission.id), changed)
        return entries.move_to_waiting(queue, submission.id)
    queue = entries.update_submission(queue, changed)
    return preemption.promote_submission(queue, submission.id, now) if priority == URGENT else queue
