"""Keeps the queue's own time: how long it has been running, what is overdue, and when to be asked again."""

from msgspec.structs import replace

from mergeyard.domain.instants import HOUR, MINUTE, Instant, earliest, later
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import QueueState, RunStatus
from mergeyard.engine import batching, running

PATIENCE = 10 * MINUTE
"""With runs whose time ran out while we were away: enough for whoever reported to nobody to try again."""


def running_time(queue: Queue, now: Instant) -> int:
    since = 0 if queue.running_since is None else now - queue.running_since
    return queue.ran + since


def start_or_stop(queue: Queue, now: Instant) -> Queue:
    """It runs only while the queue is RUNNING."""
    runs = queue.state is QueueState.RUNNING
    if runs == (queue.running_since is not None):
        return queue
    if runs:
        return replace(queue, running_since=now)
    return replace(queue, ran=running_time(queue, now), running_since=None)


def deadline(run: Run) -> Instant | None:
    if run.status is not RunStatus.IN_PROGRESS or run.started_at is None:
        return None
    return later(run.started_at, run.timeout + run.outages)


def is_overdue(run: Run, now: Instant) -> bool:
    due = deadline(run)
    return due is not None and due <= now


def note_overdue_runs(queue: Queue, now: Instant) -> Queue:
    """Time ran out, which is a reason to look once more, not a verdict. While the host is silent no time passes."""
    if queue.host_lost_at is not None:
        return queue
    for run in queue.runs.values():
        if is_overdue(run, now) and run.overdue_since is None:
            queue = running.put(queue, replace(run, overdue_since=queue.counters.turns))
    return queue


def note_outage(queue: Queue, now: Instant) -> Queue:
    """The host answers again: give every run in progress the time back."""
    lost_at = queue.host_lost_at
    if lost_at is None:
        return queue
    for run in queue.runs.values():
        if run.status is RunStatus.IN_PROGRESS and run.started_at is not None:
            outage = now - max(lost_at, run.started_at)
            queue = running.put(queue, replace(run, outages=run.outages + outage))
    return replace(queue, host_lost_at=None)


def note_absence(queue: Queue, now: Instant) -> Queue:
    """Nobody knows how long we were away, or what was said to nobody meanwhile: no run is overdue before long."""
    for run in queue.runs.values():
        due = deadline(run)
        ends_early = 0 if due is None else later(now, min(run.timeout, PATIENCE)) - due
        if ends_early > 0:
            queue = running.put(queue, replace(run, outages=run.outages + ends_early, overdue_since=None))
    return queue


def wake_at(queue: Queue, now: Instant) -> Instant | None:
    ripe_at = batching.form(queue, now).ripe_at if running.free_slots(queue) else None
    return earliest(ripe_at, next_timeout(queue, now), _next_deadline(queue))


def next_timeout(queue: Queue, now: Instant) -> Instant | None:
    """When the first of those that are not ready will have been so for too long."""
    first = queue.not_ready.first()
    if first is None or queue.running_since is None or not queue.config.not_ready_timeout_hours:
        return None
    mark, _ = first
    waited = running_time(queue, now) - mark
    return later(now, queue.config.not_ready_timeout_hours * HOUR - waited)


def _next_deadline(queue: Queue) -> Instant | None:
    if queue.host_lost_at is not None:
        return None
    pending = (run for run in queue.runs.values() if run.overdue_since is None)
    return earliest(*(deadline(run) for run in pending))
