"""A small benchmark with every run of the tests: only ratios, best of a few attempts, because the machine is shared."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Mode
from tests.bench import branch_builds, decisions, idle, memory, placement, requests, startup
from tests.bench.busy_queue import CONCURRENCY, BusyQueue
from tests.bench.busy_server import LoadSize
from tests.bench.limits import (
    MAX_DECISION_RATIO,
    MAX_FIGURES,
    MAX_RATIOS,
    MIN_PLACEMENT_SPEEDUP,
    MIN_RATIOS,
    RECORDED,
    exceeded_limits,
    fallen_ratios,
)
from tests.bench.tables import service_table
from tests.support.long_tests import mark_long_after

ATTEMPTS = range(3)

both_modes = pytest.mark.parametrize("mode", mark_long_after(1, list(Mode)))


@both_modes
def test_decision_is_not_slower_with_ten_thousand_waiting(mode: Mode):
    ratios = (decisions.measure(mode, (100, 10_000), 5)[f"decision_ratio_{mode}_10000_to_100"] for _ in ATTEMPTS)
    assert any(ratio <= MAX_DECISION_RATIO for ratio in ratios)


def test_index_places_a_batch_a_hundred_times_faster_than_comparing_with_all():
    speedups = (placement.measure(80, 200, 3)["lane_placement_speedup_80_targets"] for _ in ATTEMPTS)
    assert any(speedup >= MIN_PLACEMENT_SPEEDUP for speedup in speedups)


@both_modes
def test_busy_queue_keeps_its_size(mode: Mode):
    queue = BusyQueue(mode, 30)
    for _ in range(5):
        queue.run_round()
        assert queue.waiting == 30
        assert len(queue.runs_in_progress) == CONCURRENCY


@pytest.mark.long
def test_every_limited_figure_is_measured(tmp_path: Path):
    """With loads so small that the figures mean nothing."""
    load_size = LoadSize(pull_requests=8, repositories=2, branches_each=2)
    numbers = requests.measure(tmp_path, load_size, rounds=1)
    numbers |= branch_builds.measure(tmp_path / "branches", (200, 400), repetitions=1)
    numbers |= startup.measure(tmp_path / "starting", entries=100, rounds=1)
    numbers |= memory.measure(10, 20)
    numbers |= idle.measure(tmp_path / "idle", queues=12, seconds=0.1, periods=1)
    assert all(number > 0 for number in numbers.values())
    assert numbers.keys() >= MIN_RATIOS.keys() | MAX_RATIOS.keys() | MAX_FIGURES.keys() | RECORDED.keys()
    assert service_table(numbers).row_count


def test_slow_decision_and_slow_placement_are_reported_in_sentences():
    numbers = {"decision_ratio_single_100000_to_100": 4.2, "lane_placement_speedup_8000_targets": 99.0}
    decision, placing = exceeded_limits(numbers)
    assert decision.startswith("In single mode a decision among 100,000 waiting pull requests costs 4.2 times")
    assert placing.startswith("Placing a pull request of 8,000 targets by the index is 99 times as fast")
    assert (
        list(exceeded_limits({"decision_ratio_single_100000_to_100": 4.0, "decision_us_single_100_waiting": 900.0}))
        == []
    )


def test_exceeded_ratio_is_reported_in_a_sentence():
    too_low, too_high = exceeded_limits({"read_over_echo": 0.3, "branch_over_plain_git": 1.4})
    assert too_low.startswith("0.30 times as many pull requests read")
    assert too_high.startswith("1.40 times the time of plain git")
    at_the_limit = {
        name: limit for limits in (MIN_RATIOS, MAX_RATIOS, MAX_FIGURES) for name, (limit, _) in limits.items()
    }
    assert list(exceeded_limits(at_the_limit)) == []


def test_exceeded_figure_is_reported_in_a_sentence():
    (message,) = exceeded_limits({"bytes_per_waiting_pr": 4000.0})
    assert message == "4,000 bytes for one more waiting pull request; the maximum is 3,072."


def test_ratio_that_is_a_third_worse_than_recorded_is_reported_in_a_sentence():
    recorded = {"read_over_echo": 0.6, "branch_over_plain_git": 1.2}
    assert list(fallen_ratios({"read_over_echo": 0.41, "branch_over_plain_git": 1.75}, recorded)) == []
    too_low, too_high = fallen_ratios({"read_over_echo": 0.39, "branch_over_plain_git": 1.85}, recorded)
    assert too_low == "read_over_echo is 0.39, but was recorded as 0.60: find out what made it slower."
    assert too_high.startswith("branch_over_plain_git is 1.85, but was recorded as 1.20")


def test_every_recorded_ratio_has_a_limit():
    assert RECORDED.keys() <= MIN_RATIOS.keys() | MAX_RATIOS.keys()
