"""A small benchmark with every test run: only ratios, best of a few tries, because the machine is shared."""

from pathlib import Path

import pytest

from mergeyard.domain.config import Mode
from tests.bench import branching, placement, remembering, service_table, serving, starting, turns
from tests.bench.busy_server import Crowd
from tests.bench.promises import ABSOLUTELY, AT_LEAST, AT_MOST, DEARER_AT_MOST, FASTER_AT_LEAST, broken_promises
from tests.bench.recorded import RECORDED, fallen
from tests.bench.yard import CONCURRENCY, Yard

TRIES = range(3)

both_modes = pytest.mark.parametrize("mode", list(Mode))


@both_modes
def test_ten_thousand_waiting_do_not_make_a_turn_dear(mode: Mode):
    ratios = (turns.measure(mode, (100, 10_000), 5)[f"turn_ratio_{mode}_10000_to_100"] for _ in TRIES)
    assert any(ratio <= DEARER_AT_MOST for ratio in ratios)


def test_the_index_places_a_pull_request_a_hundred_times_as_fast_as_asking_everybody():
    speedups = (placement.measure(80, 200, 3)["lane_placement_speedup_80_targets"] for _ in TRIES)
    assert any(speedup >= FASTER_AT_LEAST for speedup in speedups)


@both_modes
def test_a_yard_stays_as_full_as_it_says(mode: Mode):
    yard = Yard(mode, 30)
    for _ in range(5):
        yard.go_round()
        assert yard.waiting == 30
        assert len(yard.under_test) == CONCURRENCY


@pytest.mark.long
def test_everything_that_the_service_promises_is_measured(tmp_path: Path):
    """On grounds so small that the numbers say nothing."""
    crowd = Crowd(pulls=8, repositories=2, branches_each=2)
    numbers = serving.measure(tmp_path, crowd, rounds=1)
    numbers |= branching.measure(tmp_path / "branches", (200, 400), repetitions=1)
    numbers |= starting.measure(tmp_path / "starting", entries=100, rounds=1)
    numbers |= remembering.measure(10, 20)
    assert all(number > 0 for number in numbers.values())
    assert numbers.keys() >= AT_LEAST.keys() | AT_MOST.keys() | ABSOLUTELY.keys() | RECORDED.keys()
    assert service_table.drawn(numbers).row_count


def test_a_promise_that_was_broken_is_told_in_a_sentence():
    numbers = {"turn_ratio_single_100000_to_100": 4.2, "lane_placement_speedup_8000_targets": 99.0}
    dear, slow = broken_promises(numbers)
    assert dear.startswith("In single mode a turn among 100,000 waiting pull requests costs 4.2 times")
    assert slow.startswith("Placing a pull request of 8,000 targets by the index is 99 times as fast")
    assert list(broken_promises({"turn_ratio_single_100000_to_100": 4.0, "turn_us_single_100_waiting": 900.0})) == []


def test_a_limit_that_is_not_kept_is_told_in_a_sentence():
    slow, dear = broken_promises({"read_over_echo": 0.4, "branch_over_plain_git": 1.4})
    assert slow.startswith("It was 0.40 times as many pull requests read")
    assert dear.startswith("It took 1.40 times the time of plain git")
    kept = {name: limit for limits in (AT_LEAST, AT_MOST, ABSOLUTELY) for name, (limit, _) in limits.items()}
    assert list(broken_promises(kept)) == []


def test_what_every_machine_must_keep_is_told_in_a_sentence():
    (fat,) = broken_promises({"bytes_per_waiting_pull": 4000.0})
    assert fat == "It took 4,000 bytes for one more that waits; at most 3,072 were promised."


def test_a_ratio_that_fell_by_more_than_a_third_is_told_in_a_sentence():
    recorded = {"read_over_echo": 0.6, "branch_over_plain_git": 1.2}
    assert list(fallen({"read_over_echo": 0.41, "branch_over_plain_git": 1.75}, recorded)) == []
    slow, dear = fallen({"read_over_echo": 0.39, "branch_over_plain_git": 1.85}, recorded)
    assert slow == "read_over_echo is 0.39, and was 0.60 when it was recorded: find out what made it slower."
    assert dear.startswith("branch_over_plain_git is 1.85, and was 1.20")


def test_every_recorded_ratio_is_one_that_is_promised():
    assert RECORDED.keys() <= AT_LEAST.keys() | AT_MOST.keys()
