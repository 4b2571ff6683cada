"""When each pull request of a queue merges, or why that is not known: what every page, command and response shows.

The times come from the last forecast, and from the ETA model where the forecast says nothing. Both estimate each pull
request for itself, so the raw times can contradict each other. The timetable puts them in order:

- All of a batch merge at once, so they have one time.
- Nothing merges before what it is tested on top of.
- A pull request whose tests have not passed does not merge now, and nothing merges in the past.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import islice

from msgspec import Struct

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import BatchId, SubmissionId
from mergeyard.domain.pull_requests import ImpactedTargets, Submission
from mergeyard.domain.queue import Batch, Queue
from mergeyard.domain.states import PullRequestState, QueueState, Reason
from mergeyard.domain.timestamps import SECOND, Instant, MergeEstimate, later
from mergeyard.engine import batching, estimates, lanes, run_validity
from mergeyard.engine.estimates import MAX_FORECAST_SUBMISSIONS, EtaModel

MIN_TEST_MS = 6 * SECOND
"""A pull request whose tests have not passed merges no sooner. Readers show less than 5 s as "now", and a terminal
shows a time that is some seconds old."""


class NoEstimate(StrEnum):
    """Why it is not known when a pull request merges."""

    NOT_QUEUED = "not_queued"
    QUEUE_PAUSED = "queue_paused"
    SWITCHING_MODES = "switching_modes"
    HOST_UNREACHABLE = "host_unreachable"
    HOST_LIMITS = "host_limits"
    HOST_REFUSES = "host_refuses"
    SERVER_FAILING = "server_failing"
    TARGET_BRANCH_MISSING = "target_branch_missing"
    CHECKS_UNKNOWN = "checks_unknown"
    NO_RUN_PASSED = "no_run_passed"
    HELD = "held"
    CAUSE_NOT_CONFIRMED = "cause_not_confirmed"
    UNCERTAIN = "uncertain"
    FIRST_UNKNOWN = "first_unknown"
    NOTHING_QUEUED = "nothing_queued"
    """Only of the next merge."""


OBSTACLES = {
    Reason.PROVIDER_UNAVAILABLE: NoEstimate.HOST_UNREACHABLE,
    Reason.RATE_LIMITED: NoEstimate.HOST_LIMITS,
    Reason.PROVIDER_REFUSED: NoEstimate.HOST_REFUSES,
    Reason.SERVER_FAILURE: NoEstimate.SERVER_FAILING,
}

Outlook = MergeEstimate | NoEstimate


class NextMerge(Struct, frozen=True):
    outlook: Outlook
    is_late: bool = False
    """Every batch that could merge next is tested for longer than usual."""


class Timetable:
    def __init__(self, queue: Queue, now: Instant, forecast: Mapping[SubmissionId, MergeEstimate | None]) -> None:
        self._queue = queue
        self._now = now
        # A forecast for a shorter queue says too little about this one, and to order all its times would take too long.
        self._forecast = dict[SubmissionId, MergeEstimate | None]()
        if _count_admitted(queue) <= MAX_FORECAST_SUBMISSIONS:
            self._forecast.update(forecast)
        self._outlooks = dict[SubmissionId, Outlook]()
        """Of the submissions in active batches and bisections, and with a forecast also of the waiting ones."""
        self._floors: list[tuple[ImpactedTargets, MergeEstimate]] = []
        """Nothing that impacts these targets, and comes later, merges sooner."""
        self._model = estimates.build_eta_model(queue, now)
        self._obstacle = _find_obstacle(queue)
        if self._model is not None and self._obstacle is None:
            self._add_active(self._model)
            self._outlooks.update(dict.fromkeys(queue.bisected_submission_ids, NoEstimate.CAUSE_NOT_CONFIRMED))
            self._add_waiting(self._model)

    def look_up(self, submission: Submission, position: int | None) -> Outlook:
        if self._queue.landing is not None and submission.id in self._queue.landing.submission_ids:
            return MergeEstimate(self._now, self._now)
        if position is None:
            return NoEstimate.NOT_QUEUED
        if self._obstacle is not None:
            return self._obstacle
        if self._model is None:
            return NoEstimate.NO_RUN_PASSED
        if self._is_refused(submission):
            return NoEstimate.HOST_REFUSES
        if submission.hold is not None:
            return NoEstimate.HELD
        if submission.id in self._outlooks:
            return self._outlooks[submission.id]
        if self._is_first_unknown:
            return NoEstimate.FIRST_UNKNOWN
        estimate = self._estimate(self._model, submission, position)
        return self._raise_to_floor(estimate, self._targets_of(submission))

    def find_next_merge(self) -> NextMerge:
        """The earliest time that `look_up` has for any pull request: no page shows an earlier one than the next."""
        outlooks = [self.look_up(submission, position) for position, submission in self._first_in_line()]
        times = [outlook for outlook in outlooks if isinstance(outlook, MergeEstimate)]
        if times:
            return NextMerge(min(times, key=lambda estimate: estimate.median), self._are_fronts_late())
        if outlooks:
            return NextMerge(outlooks[0])
        return NextMerge(self._obstacle or NoEstimate.NOTHING_QUEUED)

    def _first_in_line(self) -> Iterator[tuple[int, Submission]]:
        """Behind these, nothing is expected to merge next."""
        queue = self._queue
        under_test = [queue.submissions[submission_id] for submission_id in queue.submission_ids_under_test]
        waiting = islice(batching.waiting_in_order(queue, self._now), MAX_FORECAST_SUBMISSIONS)
        held = (queue.submissions[submission_id] for submission_id in islice(queue.held, 1))
        yield from enumerate((*under_test, *waiting, *held), start=1)

    def _are_fronts_late(self) -> bool:
        queue = self._queue
        usual = estimates.median_run_duration_ms(queue)
        runs = [run_validity.current_run(queue, batch) for batch in list_fronts(queue)]
        if usual is None or not runs:
            return False
        return all(
            run is not None and run.is_active and run.started_at is not None and self._now - run.started_at > usual
            for run in runs
        )

    @property
    def _is_first_unknown(self) -> bool:
        """In single mode all others merge after the first batch: without a time for it they have none either."""
        if self._queue.mode is Mode.PARALLEL or not self._queue.active.batches:
            return False
        first = self._queue.active.batches[0].submission_ids[0]
        return isinstance(self._outlooks[first], NoEstimate)

    def _add_active(self, model: EtaModel) -> None:
        """In order, so that all batches ahead have their time."""
        position = 1
        times = dict[BatchId, MergeEstimate]()
        for batch in self._queue.active.batches:
            outlook = self._estimate_batch(model, batch, position)
            if isinstance(outlook, MergeEstimate):
                ahead = (times[other] for other in self._queue.active.ahead[batch.id] if other in times)
                outlook = self._raise_to_floor(_latest(outlook, ahead), batch.impacted_targets)
                times[batch.id] = outlook
                self._add_floor(batch.impacted_targets, outlook)
            self._outlooks.update(dict.fromkeys(batch.submission_ids, outlook))
            position += len(batch.submission_ids)

    def _estimate_batch(self, model: EtaModel, batch: Batch, position: int) -> Outlook:
        members = [self._queue.submissions[submission_id] for submission_id in batch.submission_ids]
        if members[0].state is PullRequestState.PENDING_FAILURE:
            return NoEstimate.CAUSE_NOT_CONFIRMED
        if any(map(self._is_refused, members)):
            return NoEstimate.HOST_REFUSES
        if self._outlooks and self._is_first_unknown:
            return NoEstimate.FIRST_UNKNOWN
        likely = [member for member in members if not self._is_unlikely(member)]
        if not likely:
            return NoEstimate.UNCERTAIN
        times = [self._estimate(model, member, position) for member in likely]
        return _latest(times[0], times)

    def _add_waiting(self, model: EtaModel) -> None:
        """Without a forecast `look_up` computes the time of the one that is asked for: thousands can wait."""
        if not self._forecast:
            return
        position = len(self._queue.submission_ids_under_test)
        for submission in batching.waiting_in_order(self._queue, self._now):
            position += 1
            if self._is_first_unknown:
                self._outlooks[submission.id] = NoEstimate.FIRST_UNKNOWN
            elif self._is_unlikely(submission):
                self._outlooks[submission.id] = NoEstimate.UNCERTAIN
            else:
                targets = self._targets_of(submission)
                estimate = self._estimate(model, submission, position)
                raised = self._raise_to_floor(estimate, targets)
                self._outlooks[submission.id] = raised
                self._add_floor(targets, raised)

    def _is_refused(self, submission: Submission) -> bool:
        """Whether it is the only one that the Git host refuses; an obstacle for all is found before."""
        obstacle = self._queue.obstacle
        return obstacle is not None and obstacle.number == submission.number

    def _is_unlikely(self, submission: Submission) -> bool:
        return submission.id in self._forecast and self._forecast[submission.id] is None

    def _estimate(self, model: EtaModel, submission: Submission, position: int) -> MergeEstimate:
        """The forecast, or the ETA model if there is none or its time is over without a merge."""
        expected = model.estimate(submission, position)
        forecast = self._forecast.get(submission.id)
        if forecast is not None and forecast.median > self._now:
            expected = forecast
        soonest = self._now
        if submission.state is not PullRequestState.TESTS_PASSED:
            soonest = later(self._now, MIN_TEST_MS)
        return _latest(expected, [MergeEstimate(soonest, soonest)])

    def _targets_of(self, submission: Submission) -> ImpactedTargets:
        return lanes.impacted_targets_of(self._queue, submission)

    def _raise_to_floor(self, estimate: MergeEstimate, targets: ImpactedTargets) -> MergeEstimate:
        return _latest(estimate, (floor for other, floor in self._floors if other.overlaps(targets)))

    def _add_floor(self, targets: ImpactedTargets, estimate: MergeEstimate) -> None:
        """A floor for all targets is the latest of all, so it replaces the others: in single mode there is only one."""
        if targets.everything:
            self._floors = []
        self._floors.append((targets, estimate))


def list_fronts(queue: Queue) -> list[Batch]:
    """The batches of which one merges next: the first one, in parallel mode the first of each lane."""
    if queue.mode is Mode.SINGLE:
        return list(queue.active.batches[:1])
    return [batch for batch in queue.active.batches if not queue.active.ahead[batch.id]]


def _count_admitted(queue: Queue) -> int:
    waiting = sum(len(bucket) for bucket in queue.waiting.values())
    return len(queue.submission_ids_under_test) + waiting + len(queue.held)


def _find_obstacle(queue: Queue) -> NoEstimate | None:
    """What keeps the whole queue from merging anything."""
    if queue.state is QueueState.PAUSED:
        return NoEstimate.QUEUE_PAUSED
    if queue.target_branch.tip is None:
        return NoEstimate.TARGET_BRANCH_MISSING
    if queue.obstacle is not None and queue.is_obstructed:
        return OBSTACLES[queue.obstacle.reason]
    if run_validity.untestable_reason(queue) is not None:
        return NoEstimate.CHECKS_UNKNOWN
    if queue.state is QueueState.SWITCHING_MODES:
        return NoEstimate.SWITCHING_MODES
    return None


def _latest(estimate: MergeEstimate, others: Iterable[MergeEstimate]) -> MergeEstimate:
    """The later of both times, each for itself."""
    median = estimate.median
    p90 = estimate.p90
    for other in others:
        median = max(median, other.median)
        p90 = max(p90, other.p90)
    return MergeEstimate(median, max(median, p90))
