"""The figures: percentiles, ratios to Oracle, and their ranges over seeds."""

import pytest

from mergeyard.sim.racing.figures import Figures, figures, percentile, ratio
from mergeyard.sim.racing.ranges import Range, over_seeds, spelled_out
from tests.support.racing import a_trace, raced

TRACE = a_trace(30, 30, 30, bad=[1])


def figures_of(policy: str) -> Figures:
    return figures(TRACE, raced(policy, TRACE), raced("oracle", TRACE))


@pytest.mark.parametrize(("share", "value"), [(0, 10), (0.5, 30), (0.75, 40), (0.9, 46), (1, 50)])
def test_a_percentile_lies_between_its_neighbours(share: float, value: float):
    assert percentile([10, 20, 30, 40, 50], share) == pytest.approx(value)


def test_nothing_has_no_percentiles_and_no_ratios():
    assert percentile([], 0.5) == 0
    assert ratio(5, 0) == 0


def test_oracle_is_as_fast_as_oracle():
    oracle = figures_of("oracle")
    assert (oracle.p50_over_oracle, oracle.p95_over_oracle, oracle.p99_over_oracle) == (1, 1, 1)
    assert (oracle.changes, oracle.merges, oracle.runs, oracle.wasted_runs) == (3, 2, 3, 0)


def test_a_slower_one_is_told_as_so_many_times_oracle():
    serial = figures_of("serial")
    assert serial.p50_over_oracle == pytest.approx(2, abs=0.2)
    assert serial.longest_wait_minutes == pytest.approx(90, abs=5)
    assert serial.runs_per_merge == 1.5
    assert serial.merges_per_hour == pytest.approx(2 / 1.5, abs=0.1)


def test_seeds_are_told_as_their_mean_with_the_least_and_the_most():
    ranges = over_seeds([figures_of("oracle"), figures_of("serial")])
    assert ranges["p50_over_oracle"].least == 1
    assert ranges["runs"] == Range(3, 3, 3)
    spelled = spelled_out({"runs": Range(2, 1, 4)})
    assert spelled == {"runs": 2, "runs_min": 1, "runs_max": 4}
