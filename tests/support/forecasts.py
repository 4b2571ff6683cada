"""Queues with known outcomes, and a forecaster that runs in the test process."""

from random import Random

from msgspec.structs import replace

from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.queue import PassRateModel, Queue
from mergeyard.domain.timestamps import MINUTE, Instant, MergeEstimate
from mergeyard.engine.pass_rate_model import BIAS
from mergeyard.ports.external import Forecast, ForecastUnavailable
from mergeyard.simulation.forecast import MIN_SIMULATIONS, forecast_merges

CERTAIN_LOG_ODDS = 50.0
"""So large that the simulation never draws the other outcome."""
BAD_AUTHOR = "mallory"


def with_certain_outcomes(queue: Queue, *bad: int, minutes: int = 10) -> Queue:
    """Every run takes this long, these pull requests certainly fail, and all others certainly pass."""
    for number in bad:
        queue = with_author(BAD_AUTHOR, queue, number)
    weights = {BIAS: CERTAIN_LOG_ODDS, f"author {BAD_AUTHOR}": -2 * CERTAIN_LOG_ODDS}
    return replace(queue, durations=(minutes * MINUTE,) * 10_000, pass_rate_model=PassRateModel(weights))


def with_author(author: str, queue: Queue, number: int) -> Queue:
    submission = queue.submissions[queue.submission_by_number[PullRequestNumber(number)]]
    changed = replace(submission, pull_request=replace(submission.pull_request, author=author))
    return replace(queue, submissions=queue.submissions.put(submission.id, changed))


class InProcessForecaster:
    """Computes forecasts in this process, unlike a server: a caller blocks until the forecast is complete."""

    def __init__(self) -> None:
        self.requests: list[Queue] = []
        self.closed = False
        self.error: ForecastUnavailable | None = None

    async def forecast(self, queue: Queue, now: Instant) -> Forecast:
        self.requests.append(queue)
        if self.error is not None:
            raise self.error
        expected = forecast_merges(queue, now, map(Random, range(MIN_SIMULATIONS)))
        return {
            submission_id: estimate and MergeEstimate(estimate.median, estimate.p90)
            for submission_id, estimate in expected.items()
        }

    async def close(self) -> None:
        self.closed = True
