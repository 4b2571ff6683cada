"""Traces and true outcomes, generated from a workload and a seed."""

from itertools import pairwise

import pytest

from benchmarks.policy_race.workload import (
    DURATION_JITTER,
    MAX_BUILD_MS,
    MEDIAN_BUILD_MS,
    MIN_BUILD_MS,
    Trace,
    TrueOutcomes,
    Workload,
    generate_trace,
)
from mergeyard.domain.timestamps import HOUR, MINUTE
from mergeyard.simulation.engine_driver import SimulatedRun

pytestmark = pytest.mark.long

BUSY = Workload(rate=400, hours=5, success=0.9, conflict=0.1, parts=20, wide=0.2)


@pytest.fixture(scope="module", name="trace")
def busy_trace() -> Trace:
    return generate_trace(BUSY, 1)


def test_a_trace_depends_only_on_the_seed(trace: Trace):
    assert generate_trace(BUSY, 1) == trace
    assert generate_trace(BUSY, 2).changes != trace.changes


def test_changes_arrive_at_the_rate_and_within_the_hours_of_the_workload(trace: Trace):
    assert 1850 < len(trace.changes) < 2150
    assert all(one.arrived_at <= next_one.arrived_at for one, next_one in pairwise(trace.changes))
    assert trace.changes[-1].arrived_at < 5 * HOUR


def test_the_share_of_bad_changes_is_that_of_the_workload(trace: Trace):
    assert 0.08 < len(trace.true_outcomes.bad) / len(trace.changes) < 0.12


def test_some_authors_have_more_bad_changes_than_others(trace: Trace):
    by_author = dict[str, list[bool]]()
    for change in trace.changes:
        by_author.setdefault(change.author, []).append(change.number in trace.true_outcomes.bad)
    rates = [sum(bad) / len(bad) for bad in by_author.values() if len(bad) > 50]
    assert len(rates) > 5
    assert max(rates) > 2 * min(rates)


def test_build_durations_have_a_median_of_half_an_hour_and_limits(trace: Trace):
    durations = sorted(trace.true_outcomes.durations)
    assert 27 * MINUTE < durations[len(durations) // 2] < 33 * MINUTE
    assert durations[0] >= MIN_BUILD_MS
    assert durations[-1] <= MAX_BUILD_MS


def test_only_changes_close_in_time_and_parts_conflict_at_the_rate_of_the_workload(trace: Trace):
    candidates = {
        (one.number, other.number)
        for one in trace.changes
        for other in trace.changes[one.number + 1 :]
        if other.arrived_at - one.arrived_at <= MEDIAN_BUILD_MS and one.parts & other.parts
    }
    conflicting = {
        (one, other) for one, others in trace.true_outcomes.conflicts.items() for other in others if one < other
    }
    assert conflicting <= candidates
    assert 0.08 < len(conflicting) / len(candidates) < 0.12


def test_wide_changes_touch_two_parts(trace: Trace):
    assert {len(change.parts) for change in trace.changes} == {1, 2}
    assert 0.15 < sum(len(change.parts) == 2 for change in trace.changes) / len(trace.changes) < 0.25


def test_a_trace_can_be_empty():
    assert generate_trace(Workload(rate=0.1, hours=0.1), 1).changes == ()


OUTCOMES = TrueOutcomes(
    durations=(10 * MINUTE, 40 * MINUTE, 20 * MINUTE, 30 * MINUTE),
    bad=frozenset({1}),
    conflicts={0: frozenset({2}), 2: frozenset({0})},
)


@pytest.mark.parametrize(
    ("stack", "merged", "passes"),
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
def test_a_run_fails_with_a_bad_change_or_two_conflicting_ones(
    stack: tuple[int, ...], merged: tuple[int, ...], passes: bool
):
    merge_order = {number: index for index, number in enumerate(merged)}
    assert OUTCOMES.passes(SimulatedRun(stack=stack), merge_order, 0) == passes


def test_a_run_does_not_contain_what_merged_after_its_base():
    assert OUTCOMES.passes(SimulatedRun(stack=(2,), base_merge_count=1), {3: 0, 0: 1}, 0)
    assert not OUTCOMES.passes(SimulatedRun(stack=(2,), base_merge_count=2), {3: 0, 0: 1}, 0)


def test_a_run_takes_as_long_as_the_longest_build_of_its_changes():
    assert OUTCOMES.duration_ms(SimulatedRun(stack=(1, 0)), 0) == pytest.approx(10 * MINUTE, rel=DURATION_JITTER)
    assert OUTCOMES.duration_ms(SimulatedRun(stack=(1, 0), tested_count=2), 0) == pytest.approx(
        40 * MINUTE, rel=DURATION_JITTER
    )


def test_a_base_run_takes_a_median_build():
    assert OUTCOMES.duration_ms(SimulatedRun(stack=(), tested_count=0), 0) == pytest.approx(
        30 * MINUTE, rel=DURATION_JITTER
    )


def test_flakes_of_a_run_are_reproducible_and_differ_between_attempts():
    flaky = TrueOutcomes(durations=(MINUTE,) * 200, flake_rate=0.3)
    runs = [SimulatedRun(stack=(number,)) for number in range(200)]
    first, again = ([flaky.passes(run, {}, 0) for run in runs] for _ in range(2))
    repeated = [flaky.passes(run, {}, 1) for run in runs]
    assert first == again
    assert first != repeated
    assert 40 < first.count(False) < 80
