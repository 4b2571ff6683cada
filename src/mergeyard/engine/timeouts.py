"""The queue's running clock, the deadlines of runs, and when to decide again."""

from msgspec.structs import replace

from mergeyard.domain.queue import Obstacle, Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import QueueState, Reason, RunStatus
from mergeyard.domain.timestamps import HOUR, MINUTE, Instant, earliest, later
from mergeyard.engine import batching, blame, run_lifecycle
from mergeyard.engine.entries import running_time_ms

RESUME_GRACE_MS = 10 * MINUTE
"""The time left, after downtime, to a run whose deadline passed meanwhile: enough for a CI to repeat a lost status
report."""


def update_running_clock(queue: Queue, now: Instant) -> Queue:
    """The clock runs only while the queue is RUNNING."""
    is_running = queue.state is QueueState.RUNNING
    if is_running == (queue.running_since is not None):
        return queue
    if is_running:
        return replace(queue, running_since=now)
    return replace(queue, running_ms=running_time_ms(queue, now), running_since=None)


def run_deadline(run: Run) -> Instant | None:
    if run.status is not RunStatus.IN_PROGRESS or run.started_at is None:
        return None
    return later(run.started_at, run.timeout_ms + run.outage_ms)


def is_overdue(run: Run, now: Instant) -> bool:
    deadline_at = run_deadline(run)
    return deadline_at is not None and deadline_at <= now


def mark_overdue_runs(queue: Queue, now: Instant) -> Queue:
    """A passed deadline only requests a fresh read of the checks. While an obstacle keeps the queue from working, no
    deadline passes: also CI can be concerned."""
    if queue.is_obstructed:
        return queue
    for run in queue.runs.values():
        if is_overdue(run, now) and run.overdue_at_revision is None:
            queue = run_lifecycle.put_run(queue, replace(run, overdue_at_revision=queue.counters.revision))
    return queue


def mark_timed_out(run: Run) -> Run:
    """The run fails by timeout: a read that began after its deadline still found a required check missing."""
    return replace(run, timed_out=True)


def record_obstacle(queue: Queue, found: Obstacle) -> Queue:
    """Every retry of every task can report it again, so that the first report of a kind is kept."""
    known = queue.obstacle
    if known is None:
        return replace(queue, obstacle=found)
    if found.reason is Reason.RATE_LIMITED and found != replace(known, since=found.since):
        # Another time, or another part of the queue: what the known limit stopped until now counts as its time.
        return replace(remove_obstacle(queue, found.since), obstacle=found)
    is_same_kind = known.reason is found.reason
    if is_same_kind and known.number in (None, found.number):
        return queue
    if known.number is None and found.number is not None:
        return queue  # the whole queue waits for something else
    if is_same_kind:
        # The Git host refuses more than one pull request: the cause is not a pull request.
        found = replace(found, number=None)
    return replace(remove_obstacle(queue, found.since), obstacle=found)


def remove_obstacle(queue: Queue, now: Instant) -> Queue:
    """If the whole queue could not work, the deadline of every run in progress is extended by that time."""
    obstacle = queue.obstacle
    if obstacle is None:
        return queue
    for run in queue.runs.values() if queue.is_obstructed else ():
        if run.status is RunStatus.IN_PROGRESS and run.started_at is not None:
            outage = now - max(obstacle.since, run.started_at)
            queue = run_lifecycle.put_run(queue, replace(run, outage_ms=run.outage_ms + outage))
    return replace(queue, obstacle=None)


def extend_deadlines_after_downtime(queue: Queue, now: Instant) -> Queue:
    """Extends every running deadline to at least `min(timeout, RESUME_GRACE_MS)` from now: status reports may have been
    lost while no process worked on this queue."""
    for run in queue.runs.values():
        deadline_at = run_deadline(run)
        shortfall = 0 if deadline_at is None else later(now, min(run.timeout_ms, RESUME_GRACE_MS)) - deadline_at
        if shortfall > 0:
            queue = run_lifecycle.put_run(
                queue, replace(run, outage_ms=run.outage_ms + shortfall, overdue_at_revision=None)
            )
    return queue


def wake_at(queue: Queue, now: Instant) -> Instant | None:
    next_ready_at = batching.form_batches(queue, now).next_ready_at if run_lifecycle.free_slots(queue) else None
    return earliest(
        next_ready_at, next_not_ready_timeout(queue, now), _next_deadline(queue), blame.base_retry_due_at(queue)
    )


def next_not_ready_timeout(queue: Queue, now: Instant) -> Instant | None:
    """When the first submission reaches the not-ready timeout."""
    first = queue.not_ready.first()
    if first is None or queue.running_since is None or not queue.config.not_ready_timeout_hours:
        return None
    became_not_ready_at, _ = first
    waited_ms = running_time_ms(queue, now) - became_not_ready_at
    return later(now, queue.config.not_ready_timeout_hours * HOUR - waited_ms)


def _next_deadline(queue: Queue) -> Instant | None:
    if queue.is_obstructed:
        return None
    pending = (run for run in queue.runs.values() if run.overdue_at_revision is None)
    return earliest(*(run_deadline(run) for run in pending))
