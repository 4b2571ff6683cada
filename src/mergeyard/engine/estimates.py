"""Estimates when a pull request will merge, from the durations of the last passed runs and the batches ahead."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import BatchId, SubmissionId
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Batch, Bisection, Queue
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import PullRequestState, RunStatus
from mergeyard.domain.timestamps import Duration, Instant, LongerThan, MergeEstimate, completed_durations, later
from mergeyard.engine import run_validity

MAX_PASSED_DURATIONS = 32
"""Passed runs: enough to tell slow from usual ones, few enough to follow when CI gets faster."""
MAX_DURATIONS = 3 * MAX_PASSED_DURATIONS
"""Including stopped runs."""
MAX_FORECAST_SUBMISSIONS = 100
"""With more pull requests, a forecast takes longer than it stays valid."""
OVERDUE_FACTOR = 0.1
"""A run that takes longer than expected is assumed to go on for this share of the time it took already."""


class Schedule(Struct, frozen=True):
    """When each submission merges if every run takes `duration` milliseconds."""

    duration: int
    merges_at: Mapping[SubmissionId, Instant]
    """Submissions in active batches and bisections."""
    slots: tuple[Instant, ...]
    """When each slot becomes free, the earliest first."""
    after: Instant
    """In single mode waiting submissions merge no earlier: this is when the last one ahead merges."""


class EtaModel(Struct, frozen=True):
    median: Schedule
    p90: Schedule
    batch_size: int

    def estimate(self, submission: Submission, position: int) -> MergeEstimate:
        """Of a submission that is not held: the end of a hold cannot be estimated."""
        median = self._merges_at(self.median, submission, position)
        return MergeEstimate(median, self._merges_at(self.p90, submission, position))

    def _merges_at(self, schedule: Schedule, submission: Submission, position: int) -> Instant:
        known = schedule.merges_at.get(submission.id)
        if known is not None:
            return known
        batch_index = (position - 1 - len(schedule.merges_at)) // self.batch_size
        rounds, slot = divmod(batch_index, len(schedule.slots))
        passes = later(schedule.slots[slot], (rounds + 1) * schedule.duration)
        if rounds:
            # The slot that becomes free last can end its run later than others end their next one.
            passes = max(passes, later(schedule.slots[-1], rounds * schedule.duration))
        return max(passes, schedule.after)


def build_eta_model(queue: Queue, now: Instant) -> EtaModel | None:
    """None until a run passed, and while the queue starts no runs."""
    if not queue.durations or not queue.can_start_runs:
        return None
    median, p90 = (_build_schedule(queue, _quantile(queue, share), now) for share in (0.5, 0.9))
    return EtaModel(median, p90, queue.config.batch_size)


def median_run_duration_ms(queue: Queue) -> int | None:
    """The median duration of a run, in milliseconds."""
    return _quantile(queue, 0.5) if queue.durations else None


def record_run_duration(queue: Queue, run: Run) -> Queue:
    """Records a passed or stopped run. Slow runs are stopped more often: without them the estimates
    would be too early."""
    if run.started_at is None or run.decided_at is None:
        return queue
    duration = max(0, run.decided_at - run.started_at - run.outage_ms)
    if run.status is RunStatus.SUCCEEDED:
        return replace(queue, durations=_keep_latest((*queue.durations, duration)))
    if queue.durations:
        return replace(queue, durations=_keep_latest((*queue.durations, LongerThan(duration))))
    return queue


def _keep_latest(durations: tuple[Duration, ...]) -> tuple[Duration, ...]:
    """Keeps the last passed runs, however many stopped runs came after them."""
    passed_indexes = [index for index, duration in enumerate(durations) if isinstance(duration, int)]
    durations = durations[passed_indexes[-MAX_PASSED_DURATIONS:][0] :]
    return (*completed_durations(durations[:-MAX_DURATIONS]), *durations[-MAX_DURATIONS:])


def _quantile(queue: Queue, share: float) -> int:
    durations = sorted(completed_durations(queue.durations))
    return durations[int(len(durations) * share)]


def _build_schedule(queue: Queue, duration: int, now: Instant) -> Schedule:
    slots = _slots(queue, duration, now)
    merges_at, times, last = dict[SubmissionId, Instant](), dict[BatchId, Instant](), now
    for batch in queue.active.batches:
        passes = _passes_at(queue, batch, duration, slots[0], now)
        ahead = (last,) if queue.mode is Mode.SINGLE else (times[other] for other in queue.active.ahead[batch.id])
        times[batch.id] = max((passes, *ahead))
        merges_at.update(dict.fromkeys(batch.submission_ids, times[batch.id]))
        last = max(last, times[batch.id])
    for bisection in queue.bisections:
        merges_at.update(dict.fromkeys(bisection.members, _bisection_merges_at(bisection, duration, now)))
    return Schedule(duration, merges_at, slots, last if queue.mode is Mode.SINGLE else now)


def _slots(queue: Queue, duration: int, now: Instant) -> tuple[Instant, ...]:
    busy = [
        ends_at(run, duration, now)
        for run in queue.runs.values()
        if run.is_active and run.kind is not RunKind.BISECTION
    ]
    free = [now] * max(0, queue.config.concurrency - len(busy))
    return tuple(sorted((*busy, *free)))


def _passes_at(queue: Queue, batch: Batch, duration: int, slot: Instant, now: Instant) -> Instant:
    if queue.submissions[batch.submission_ids[0]].state is PullRequestState.TESTS_PASSED:
        return now
    run = run_validity.current_run(queue, batch)
    return ends_at(run, duration, now) if run is not None and run.is_active else later(slot, duration)


def ends_at(run: Run, duration: int, now: Instant) -> Instant:
    """When an active run ends if it takes `duration` milliseconds."""
    elapsed = 0 if run.started_at is None else now - run.started_at
    return later(now, max(duration - elapsed, round(OVERDUE_FACTOR * elapsed)))


def _bisection_merges_at(bisection: Bisection, duration: int, now: Instant) -> Instant:
    """The rounds until the culprit is found, plus one for the other members."""
    rounds = (bisection.failed_prefix - bisection.passed_prefix).bit_length()
    return later(now, (rounds + 1) * duration)
