"""The metrics: percentiles, ratios to Oracle, and their ranges over seeds."""

import pytest

from benchmarks.policy_race.report import (
    MetricRange,
    RaceMetrics,
    compute_metrics,
    percentile,
    safe_ratio,
    summarize_seeds,
    to_json_members,
)
from tests.support.race_traces import a_trace, run_policy

pytestmark = pytest.mark.long

TRACE = a_trace(30, 30, 30, bad=[1])


def metrics_of(policy: str) -> RaceMetrics:
    return compute_metrics(TRACE, run_policy(policy, TRACE), run_policy("oracle", TRACE))


@pytest.mark.parametrize(("share", "value"), [(0, 10), (0.5, 30), (0.75, 40), (0.9, 46), (1, 50)])
def test_a_percentile_is_interpolated(share: float, value: float):
    assert percentile([10, 20, 30, 40, 50], share) == pytest.approx(value)


def test_percentiles_and_ratios_of_nothing_are_zero():
    assert percentile([], 0.5) == 0
    assert safe_ratio(5, 0) == 0


def test_oracle_has_the_ratio_one():
    oracle = metrics_of("oracle")
    assert (oracle.p50_over_oracle, oracle.p95_over_oracle, oracle.p99_over_oracle) == (1, 1, 1)
    assert (oracle.changes, oracle.merges, oracle.runs, oracle.wasted_runs) == (3, 2, 3, 0)


def test_a_slower_policy_is_a_multiple_of_oracle():
    serial = metrics_of("serial")
    assert serial.p50_over_oracle == pytest.approx(2, abs=0.2)
    assert serial.longest_wait_minutes == pytest.approx(90, abs=5)
    assert serial.runs_per_merge == 1.5
    assert serial.merges_per_hour == pytest.approx(2 / 1.5, abs=0.1)


def test_seeds_are_summarized_as_mean_minimum_and_maximum():
    ranges = summarize_seeds([metrics_of("oracle"), metrics_of("serial")])
    assert ranges["p50_over_oracle"].minimum == 1
    assert ranges["runs"] == MetricRange(3, 3, 3)
    members = to_json_members({"runs": MetricRange(2, 1, 4)})
    assert members == {"runs": 2, "runs_min": 1, "runs_max": 4}
