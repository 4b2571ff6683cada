"""Keeps forecasts of merge times fresh, and measures how often they were right."""

from collections.abc import Iterable
from weakref import WeakKeyDictionary

import structlog
from msgspec import Struct

from mergeyard.domain.ids import SubmissionId
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import PullRequestState
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant, MergeEstimate, later
from mergeyard.ports.external import EMPTY_FORECAST, Forecast, Forecaster, ForecastUnavailable
from mergeyard.ports.store import Store
from mergeyard.service import persistence
from mergeyard.service.metrics import ESTIMATES, ESTIMATES_MET
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.simulation.forecast import select_for_forecast

MAX_ESTIMATES = 1000
"""Remembered per queue; several times the size of the largest forecast."""

EstimatesById = dict[SubmissionId, MergeEstimate]


class EstimateAccuracy(Struct, frozen=True):
    """How many pull requests merged, and how many of them no later than estimated."""

    merged: int = 0
    by_median: int = 0
    by_p90: int = 0

    def __add__(self, other: "EstimateAccuracy") -> "EstimateAccuracy":
        return EstimateAccuracy(
            self.merged + other.merged, self.by_median + other.by_median, self.by_p90 + other.by_p90
        )


class Calibration:
    """Counts since the server started, for the forecasts that this process made."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._estimates = WeakKeyDictionary[QueueActor, EstimatesById]()
        self._accuracy = WeakKeyDictionary[QueueActor, EstimateAccuracy]()

    def accuracy_of(self, queue_actors: Iterable[QueueActor]) -> EstimateAccuracy:
        return sum(
            (self._accuracy.get(queue_actor, EstimateAccuracy()) for queue_actor in queue_actors), EstimateAccuracy()
        )

    def record_forecast(self, queue_actor: QueueActor, forecast: Forecast) -> None:
        """Keeps only the first estimate of each submission, because later ones are easier. A submission that left while
        the forecast was computed gets none."""
        estimates, submissions = self._estimates.setdefault(queue_actor, {}), queue_actor.queue.submissions
        for submission_id, estimate in forecast.items():
            if estimate is not None and submission_id in submissions and len(estimates) < MAX_ESTIMATES:
                estimates.setdefault(submission_id, estimate)

    async def count_ended(self, queue_actor: QueueActor) -> None:
        """Counts the submissions that have left the queue since the last call."""
        estimates = self._estimates.get(queue_actor, {})
        ended = [submission_id for submission_id in estimates if submission_id not in queue_actor.queue.submissions]
        for submission_id in ended:
            submission = await persistence.read_submission(self._store, queue_actor.id, submission_id)
            estimate = estimates.pop(submission_id)
            if submission is not None:
                self._count(queue_actor, submission, estimate)

    def _count(self, queue_actor: QueueActor, submission: Submission, estimate: MergeEstimate) -> None:
        """Skips pull requests that did not merge, or that were merged outside the queue."""
        if submission.state is not PullRequestState.MERGED or submission.verified_by is None:
            return
        by_middle = submission.state_changed_at <= estimate.median
        by_late = submission.state_changed_at <= estimate.p90
        self._accuracy[queue_actor] = self.accuracy_of([queue_actor]) + EstimateAccuracy(1, by_middle, by_late)
        ESTIMATES.inc()
        ESTIMATES_MET.labels("p50").inc(by_middle)
        ESTIMATES_MET.labels("p90").inc(by_late)


log = structlog.get_logger()

FORECAST_INTERVAL_MS = 2 * SECOND
MIN_REST_MS = 5 * SECOND
REST_FACTOR = 10
"""After a forecast its queue rests for this many times its duration, so it takes at most a tenth of a core."""
REST_AFTER_ERROR_MS = 5 * MINUTE
MAX_FORECAST_AGE_MS = MINUTE
"""A forecast is renewed after this time even without a change: a run that is still in progress is not a short one."""
IMMEDIATELY, NEVER = Instant(0), Instant(2**63)


class Forecasts:
    def __init__(self, registry: QueueRegistry, forecaster: Forecaster, calibration: Calibration) -> None:
        self._registry = registry
        self._forecaster = forecaster
        self._calibration = calibration
        self._due_at = WeakKeyDictionary[QueueActor, Instant]()
        self._rests_until = WeakKeyDictionary[QueueActor, Instant]()

    def on_change(self, queue_actor: QueueActor, before: Queue | None) -> None:
        if before is not queue_actor.queue:
            self._due_at[queue_actor] = self._rests_until.get(queue_actor, IMMEDIATELY)

    async def refresh_due(self) -> None:
        """Sequentially; each forecast starts from the queue as it is at that moment."""
        for queue_actor in self._registry:
            if self._due_at.get(queue_actor, IMMEDIATELY) <= self._registry.clock.now():
                await self._renew(queue_actor)

    async def close(self) -> None:
        await self._forecaster.close()

    async def _renew(self, queue_actor: QueueActor) -> None:
        await self._calibration.count_ended(queue_actor)
        self._due_at[queue_actor] = NEVER
        queue = select_for_forecast(queue_actor.queue)
        if queue is None:
            queue_actor.forecast = EMPTY_FORECAST
            return
        rest_ms = await self._update_forecast(queue_actor, queue)
        self._calibration.record_forecast(queue_actor, queue_actor.forecast)
        self._rests_until[queue_actor] = later(self._registry.clock.now(), rest_ms)
        changed_meanwhile = self._due_at[queue_actor] != NEVER
        self._due_at[queue_actor] = later(
            self._rests_until[queue_actor], 0 if changed_meanwhile else MAX_FORECAST_AGE_MS
        )

    async def _update_forecast(self, queue_actor: QueueActor, queue: Queue) -> int:
        """Returns the time in milliseconds for which the queue rests."""
        started = self._registry.clock.now()
        try:
            queue_actor.forecast = await self._forecaster.forecast(queue, started)
        except ForecastUnavailable as error:
            log.warning("forecast_unavailable", queue=str(queue_actor.key), error=str(error))
            queue_actor.forecast = EMPTY_FORECAST
            return REST_AFTER_ERROR_MS
        return max(MIN_REST_MS, REST_FACTOR * (self._registry.clock.now() - started))
