"""Accuracy of replays: simulated days are recorded as in a store, replayed, and compared with the real outcome."""

import pytest

from benchmarks.policy_race.workload import Trace, Workload, generate_trace
from mergeyard.domain.config import Config, Mode, OptimizationMode, Speculation
from mergeyard.simulation import report
from mergeyard.simulation.history import apply_proposed_settings
from mergeyard.simulation.outcomes import build_outcome_model
from mergeyard.simulation.replay import Replay
from mergeyard.simulation.report import PeriodMetrics
from mergeyard.simulation.whatif import WhatIfRequest, compute_whatif
from tests.support.long_tests import mark_long_after
from tests.support.replay_histories import record_race

pytestmark = pytest.mark.long

SETTINGS = {
    "chain": Config(),
    "lanes": Config(mode=Mode.PARALLEL),
    "batches": Config(batch=True),
    "retries": Config(test_retries=1),
    "optimistic merging": Config(can_optimistically_merge=True, pending_failure_depth=2),
    "best first": Config(mode=Mode.PARALLEL, speculation=Speculation.BEST_FIRST, can_optimistically_merge=True),
    "lanes of batches": Config(
        mode=Mode.PARALLEL,
        batch=True,
        batching_max_wait_time_minutes=20,
        optimization_mode=OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS,
    ),
}
every_setting = pytest.mark.parametrize("config", SETTINGS.values(), ids=SETTINGS.keys())
one_setting_daily = pytest.mark.parametrize("config", mark_long_after(1, list(SETTINGS.values())), ids=SETTINGS.keys())
every_seed = pytest.mark.parametrize("seed", mark_long_after(1, [1, 2]))


def a_day(seed: int, *, flakes: float = 0, parts: int = 2) -> Trace:
    return generate_trace(Workload(rate=8, hours=6, workers=1000, parts=parts, conflict=0.03, flakes=flakes), seed)


@every_setting
@every_seed
def test_a_day_is_replayed_exactly_with_its_own_settings(config: Config, seed: int):
    history = record_race(a_day(seed), config).history()
    replay = Replay(history, build_outcome_model(history), history.config_changes).run()
    assert {index: (each.end_state, each.ended_at) for index, each in replay.outcomes.items()} == {
        index: (each.end_state, each.ended_at) for index, each in enumerate(history.arrivals)
    }
    assert report.compute_replayed_metrics(history, replay) == report.compute_actual_metrics(history)


@one_setting_daily
def test_a_day_with_5_percent_flakes_is_replayed_within_10_percent(config: Config):
    """A flake may look like a conflict between two pull requests. Then a few end differently."""
    history = record_race(a_day(1, flakes=0.05), config).history()
    replay = Replay(history, build_outcome_model(history), history.config_changes).run()
    assert (
        max_difference(report.compute_replayed_metrics(history, replay), report.compute_actual_metrics(history)) < 0.1
    )


@pytest.mark.parametrize(
    ("settings", "within"),
    [
        ({"concurrency": 2}, 0.05),
        pytest.param({"test_retries": 1}, 0.05, marks=pytest.mark.long),
        pytest.param({"concurrency": 20}, 0.05, marks=pytest.mark.long),
        pytest.param({"speculation": "best_first", "concurrency": 10}, 0.25, marks=pytest.mark.long),
    ],
    ids=str,
)
@every_seed
def test_the_proposed_metrics_are_close_to_a_real_day_with_these_settings(
    settings: dict[str, object], within: float, seed: int
):
    """Best-first speculation needs results of stacks that never ran, so it is predicted less exactly."""
    trace = a_day(seed, parts=1)
    result = compute_whatif(WhatIfRequest(record_race(trace, Config()).history(), settings))
    assert result.proposed is not None
    actual = report.compute_actual_metrics(record_race(trace, apply_proposed_settings(Config(), settings)).history())
    assert max_difference(result.proposed.median, actual) < within


def max_difference(metrics: PeriodMetrics, actual: PeriodMetrics) -> float:
    """The relative difference in the metric in which the two differ most."""
    pairs = [
        (metrics.merged, actual.merged),
        (metrics.median_ms or 0, actual.median_ms or 0),
        (metrics.p95_ms or 0, actual.p95_ms or 0),
        (metrics.runs, actual.runs),
        (metrics.ci_ms, actual.ci_ms),
    ]
    return max(abs(one - other) / other for one, other in pairs)
