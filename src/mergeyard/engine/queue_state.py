"""Changes the queue's state and settings: pause, drain, resume, settings, mode."""

from msgspec.structs import replace

from mergeyard.domain.config import Config, describe_changes
from mergeyard.domain.events import StateRequested
from mergeyard.domain.journal import SYSTEM_ACTOR, QueueChanged
from mergeyard.domain.queue import ActiveBatches, Queue
from mergeyard.domain.states import QueueState, Reason, Refusal, RunStatus, check_queue_transition
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import admission, entries, merging, preemption, run_lifecycle, run_validity
from mergeyard.engine.entries import abort_bisection


def request_queue_state(queue: Queue, event: StateRequested, now: Instant) -> Queue:
    """A new reason for the state that the queue has already is recorded too."""
    reason = Reason.STATE_REQUESTED
    if event.state is not queue.requested_state:
        return set_queue_state(queue, event.state, reason, now, actor=event.actor, detail=event.state_reason)
    if event.state is QueueState.RUNNING or event.state_reason in ("", queue.state_reason):
        return queue
    return _record_in_same_state(queue, reason, now, event.actor, event.state_reason)


def set_queue_state(
    queue: Queue, state: QueueState, reason: Reason, now: Instant, *, actor: str = SYSTEM_ACTOR, detail: str = ""
) -> Queue:
    if queue.requested_state is state:
        return _record_in_same_state(queue, reason, now, actor, detail)
    if queue.is_paused:
        queue = _invalidate_failures_since_pause(queue)
    paused_at = now if state is QueueState.PAUSED else None
    state_reason = "" if state is QueueState.RUNNING else detail
    after = replace(queue, requested_state=state, paused_at=paused_at, state_reason=state_reason)
    if queue.is_paused:
        after = preemption.promote_urgent_submissions(after, now)
    return record_queue_state_change(queue.state, after, reason, now, actor=actor, detail=detail)


def _record_in_same_state(queue: Queue, reason: Reason, now: Instant, actor: str, detail: str) -> Queue:
    """Such as a problem found while the queue is paused already, so that the user who resumes it knows."""
    entry = QueueChanged(at=now, source=queue.state, to=queue.state, reason=reason, actor=actor, detail=detail)
    return entries.append_to_journal(replace(queue, state_reason=detail), entry)


def save_settings(queue: Queue, config: Config, now: Instant, actor: str) -> Queue | Refusal:
    if config == queue.config:
        return queue
    if queue.is_switching_modes and config.mode is not queue.config.mode:
        return Refusal.MODE_SWITCH_IN_PROGRESS
    after = admission.apply_required_statuses(queue, replace(queue, config=config), now)
    entry = QueueChanged(
        at=now,
        source=queue.state,
        to=queue.state,
        reason=Reason.SETTINGS_CHANGED,
        actor=actor,
        detail=describe_changes(queue.config, config),
    )
    after = entries.append_to_journal(after, entry)
    if not queue.is_switching_modes and not _is_under_test(queue):
        after = replace(after, mode=config.mode)
    return record_queue_state_change(queue.state, after, Reason.MODE_CHANGED, now, actor=actor)


def _is_under_test(queue: Queue) -> bool:
    return bool(queue.active.batches or queue.bisections)


def record_queue_state_change(
    before: QueueState, queue: Queue, reason: Reason, now: Instant, *, actor: str = SYSTEM_ACTOR, detail: str = ""
) -> Queue:
    if queue.state is before:
        return queue
    check_queue_transition(before, queue.state, reason)
    entry = QueueChanged(at=now, source=before, to=queue.state, reason=reason, actor=actor, detail=detail)
    return entries.append_to_journal(queue, entry)


def _invalidate_failures_since_pause(queue: Queue) -> Queue:
    """While the queue is paused no pull request fails for a test: failed runs are repeated on resume."""
    for run in queue.runs.values():
        is_since_pause = run.decided_at is not None and run.decided_at >= (queue.paused_at or 0)
        if run.status is RunStatus.FAILED and is_since_pause and not run_validity.must_be_repeated(queue, run):
            queue = run_lifecycle.put_run(queue, replace(run, invalidated=Reason.QUEUE_RESUMED))
    return queue


def finish_mode_switch(queue: Queue, now: Instant) -> Queue:
    if not queue.is_switching_modes or _has_unfinished_work(queue):
        return queue
    submission_ids = queue.active.submission_ids
    queue = entries.return_to_waiting(replace(queue, active=ActiveBatches()), submission_ids, Reason.MODE_SWITCHED, now)
    for bisection in queue.bisections:
        queue = abort_bisection(queue, bisection, bisection.members, Reason.MODE_SWITCHED, now)
    after = replace(queue, mode=queue.config.mode)
    return record_queue_state_change(queue.state, after, Reason.MODE_SWITCHED, now)


def _has_unfinished_work(queue: Queue) -> bool:
    if queue.landing is not None or any(run.is_active for run in queue.runs.values()):
        return True
    return not queue.is_paused and any(merging.can_land(queue, batch) for batch in queue.active.batches)
