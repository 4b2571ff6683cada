"""The truth: when a run is red, and how long it takes."""

import pytest

from mergeyard.domain.instants import MINUTE
from mergeyard.sim.racing.policy import Trial
from mergeyard.sim.racing.truth import JITTER, Truth

TRUTH = Truth(
    durations=(10 * MINUTE, 40 * MINUTE, 20 * MINUTE, 30 * MINUTE),
    bad=frozenset({1}),
    conflicts={0: frozenset({2}), 2: frozenset({0})},
)


@pytest.mark.parametrize(
    ("stack", "merged", "green"),
    [
        ((0,), (), True),
        ((2,), (), True),
        ((0, 3), (), True),
        ((1,), (), False),
        ((1, 3), (), False),
        ((0, 2), (), False),
        ((0, 2, 3), (), False),
        ((2,), (0,), False),
        ((0,), (2,), False),
        ((3,), (0, 2), True),
    ],
)
def test_a_run_is_red_for_a_bad_one_or_for_two_that_break_together(
    stack: tuple[int, ...], merged: tuple[int, ...], green: bool
):
    places = {number: place for place, number in enumerate(merged)}
    assert TRUTH.is_green(Trial(stack=stack), places, 0) == green


def test_what_merged_after_its_base_is_not_in_a_run():
    assert TRUTH.is_green(Trial(stack=(2,), base=1), {3: 0, 0: 1}, 0)
    assert not TRUTH.is_green(Trial(stack=(2,), base=2), {3: 0, 0: 1}, 0)


def test_a_run_takes_as_long_as_the_longest_of_those_that_it_tests():
    assert TRUTH.duration(Trial(stack=(1, 0)), 0) == pytest.approx(10 * MINUTE, rel=JITTER)
    assert TRUTH.duration(Trial(stack=(1, 0), tests=2), 0) == pytest.approx(40 * MINUTE, rel=JITTER)


def test_a_run_of_the_branch_itself_takes_a_median_build():
    assert TRUTH.duration(Trial(stack=(), tests=0), 0) == pytest.approx(30 * MINUTE, rel=JITTER)


def test_the_same_run_has_the_same_luck_whoever_asks_and_another_when_it_is_repeated():
    flaky = Truth(durations=(MINUTE,) * 200, flakes=0.3)
    runs = [Trial(stack=(number,)) for number in range(200)]
    first, again = ([flaky.is_green(run, {}, 0) for run in runs] for _ in range(2))
    repeated = [flaky.is_green(run, {}, 1) for run in runs]
    assert first == again
    assert first != repeated
    assert 40 < first.count(False) < 80
