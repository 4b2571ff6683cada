"""Carries out what operators order: pause, drain, resume, other settings, another mode."""

from msgspec.structs import replace

from mergeyard.domain.config import Config, differences
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import OURSELVES, QueueChanged
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason, Refusal
from mergeyard.domain.states import QueueState, RunStatus
from mergeyard.domain.transitions import check_queue
from mergeyard.engine import holding, naming, reconsidering, running, urgency


def set_state(
    queue: Queue, state: QueueState, reason: Reason, now: Instant, *, actor: str = OURSELVES, words: str = ""
) -> Queue:
    if queue.ordered_state is state:
        return queue if reason is Reason.STATE_REQUESTED else _warn(queue, reason, now, words)
    if queue.paused:
        queue = _forget_what_went_red(queue)
    paused_at = now if state is QueueState.PAUSED else None
    after = replace(queue, ordered_state=state, paused_at=paused_at, words=words)
    if queue.paused:
        after = urgency.raise_all(after, now)
    return announce(queue.state, after, reason, now, actor=actor, words=words)


def _warn(queue: Queue, reason: Reason, now: Instant, words: str) -> Queue:
    """It was paused already; whoever resumes it must know of this too."""
    entry = QueueChanged(at=now, source=queue.state, to=queue.state, reason=reason, words=words)
    return naming.tell(replace(queue, words=words), entry)


def save_settings(queue: Queue, config: Config, now: Instant, actor: str) -> Queue | Refusal:
    if config == queue.config:
        return queue
    if queue.switching and config.mode is not queue.config.mode:
        return Refusal.MODE_SWITCH_IN_PROGRESS
    after = reconsidering.reconsider(queue, replace(queue, config=config))
    entry = QueueChanged(
        at=now,
        source=queue.state,
        to=queue.state,
        reason=Reason.SETTINGS_CHANGED,
        actor=actor,
        words=differences(queue.config, config),
    )
    after = naming.tell(after, entry)
    if not queue.switching and not under_test(queue):
        after = replace(after, mode=config.mode)
    return announce(queue.state, after, Reason.MODE_CHANGED, now, actor=actor)


def under_test(queue: Queue) -> bool:
    return bool(queue.line.batches or queue.bisections)


def announce(
    before: QueueState, queue: Queue, reason: Reason, now: Instant, *, actor: str = OURSELVES, words: str = ""
) -> Queue:
    if queue.state is before:
        return queue
    check_queue(before, queue.state, reason)
    entry = QueueChanged(at=now, source=before, to=queue.state, reason=reason, actor=actor, words=words)
    return naming.tell(queue, entry)


def _forget_what_went_red(queue: Queue) -> Queue:
    """In a paused queue nobody fails for a test: what went red meanwhile is tested again."""
    for run in queue.runs.values():
        since_pause = run.decided_at is not None and run.decided_at >= (queue.paused_at or 0)
        if run.status is RunStatus.FAILED and since_pause and not holding.to_be_repeated(queue, run):
            queue = running.put(queue, replace(run, void=Reason.QUEUE_RESUMED))
    return queue
