"""Measures how often forecasts and estimates hold on simulated days: compares the first estimate of each pull request
with the time of its merge.

`python -m tests.support.forecast_calibration` measures the table of docs/understand/performance.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from random import Random

from msgspec import Struct

from benchmarks.policy_race.policies.mergeyard import Mergeyard
from benchmarks.policy_race.race import RaceState
from benchmarks.policy_race.workload import Trace, Workload, generate_trace
from mergeyard.domain.config import Config, Mode, OptimizationMode, Speculation
from mergeyard.domain.ids import SubmissionId
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import MINUTE, Instant, MergeEstimate
from mergeyard.engine import estimates, views
from mergeyard.simulation.engine_driver import start_driver
from mergeyard.simulation.forecast import forecast_merges, select_for_forecast

CONFIGS = {
    "single mode": Config(),
    "lanes": Config(mode=Mode.PARALLEL),
    "batches of 4": Config(batch=True),
    "lanes of batches": Config(
        mode=Mode.PARALLEL,
        batch=True,
        batching_max_wait_time_minutes=20,
        optimization_mode=OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS,
    ),
    "lanes, best first, optimistic": Config(
        mode=Mode.PARALLEL, speculation=Speculation.BEST_FIRST, can_optimistically_merge=True
    ),
    "single mode, optimistic, depth 2": Config(can_optimistically_merge=True, pending_failure_depth=2),
}
SAMPLE_INTERVAL_MS = 15 * MINUTE

Estimates = Mapping[SubmissionId, MergeEstimate | None]


class HitRate(Struct):
    """How many merged pull requests merged by their first estimate."""

    merged: int = 0
    within_median: int = 0
    within_p90: int = 0

    def add_race(self, race: RaceState, samples: Iterable[tuple[Queue, Estimates]]) -> None:
        """Adds a finished race with all estimates that were made during it."""
        first = dict[int, MergeEstimate]()
        for queue, estimates_by_id in samples:
            for submission_id, estimate in estimates_by_id.items():
                if estimate is not None:
                    first.setdefault(queue.submissions[submission_id].number, estimate)
        for number in first.keys() & race.merged.keys():
            self.merged += 1
            self.within_median += race.decided_at[number] <= first[number].median
            self.within_p90 += race.decided_at[number] <= first[number].p90

    @property
    def median_rate(self) -> float:
        return self.within_median / self.merged

    @property
    def p90_rate(self) -> float:
        return self.within_p90 / self.merged


def a_day_trace(seed: int, *, hours: float = 10) -> Trace:
    """One change in ten is bad; one build in six takes less than 18 minutes, one in six more than 50."""
    return generate_trace(Workload(rate=8, hours=hours, workers=1000, parts=3), seed)


def measure_calibration(config: Config, *days: Trace, simulations: int = 19) -> tuple[HitRate, HitRate]:
    """The rates of forecasts, and of estimates at the same times."""
    forecast, estimated = HitRate(), HitRate()
    for day in days:
        track = RaceState(day)
        samples = list(_sample_queue(track, config))
        forecast.add_race(track, ((queue, _forecast(queue, now, simulations)) for queue, now in samples))
        estimated.add_race(track, ((queue, _estimate(queue, now)) for queue, now in samples))
    return forecast, estimated


def _sample_queue(race: RaceState, config: Config) -> Iterator[tuple[Queue, Instant]]:
    """The queue at regular times of a race, while the race runs to its end."""
    policy, sample_time = Mergeyard(config, race.trace.workload.workers), SAMPLE_INTERVAL_MS
    policy.driver = start_driver(config)
    while not race.is_finished:
        now = race.next_time()
        assert now is not None
        for passed in range(sample_time, now + 1, SAMPLE_INTERVAL_MS):
            yield policy.driver.queue, Instant(passed)
            sample_time = passed + SAMPLE_INTERVAL_MS
        race.apply_actions(policy.react(race.collect_observations(now), now), now)


def _forecast(queue: Queue, now: Instant, simulations: int) -> Estimates:
    selected = select_for_forecast(queue)
    return {} if selected is None else forecast_merges(selected, now, map(Random, range(simulations)))


def _estimate(queue: Queue, now: Instant) -> Estimates:
    model = estimates.build_eta_model(queue, now)
    if model is None:
        return {}
    positions = {each.id: views.position(queue, each, now) for each in queue.submissions.values()}
    return {each: model.estimate(queue.submissions[each], position) for each, position in positions.items() if position}


def main() -> None:
    for name, config in CONFIGS.items():
        forecast, estimated = measure_calibration(config, *map(a_day_trace, range(1, 6)))
        shares = (forecast.p90_rate, forecast.median_rate, estimated.p90_rate, estimated.median_rate)
        written = " | ".join(f"{share:.0%}".replace("%", " %") for share in shares)
        print(f"| {name} | {forecast.merged} | {written} |", flush=True)


if __name__ == "__main__":
    main()
