"""The trace: a seed gives one day, which looks as the workload says."""

from itertools import pairwise

import pytest

from mergeyard.domain.instants import HOUR, MINUTE
from mergeyard.sim.racing.trace import Trace, draw
from mergeyard.sim.racing.workload import LONGEST_BUILD, MEDIAN_BUILD, SHORTEST_BUILD, Workload

BUSY = Workload(rate=400, hours=5, success=0.9, conflict=0.1, parts=20, wide=0.2)


@pytest.fixture(scope="module", name="trace")
def busy_trace() -> Trace:
    return draw(BUSY, 1)


def test_a_seed_gives_the_same_day_again_and_another_seed_another_day(trace: Trace):
    assert draw(BUSY, 1) == trace
    assert draw(BUSY, 2).changes != trace.changes


def test_changes_come_as_often_as_the_workload_says_and_no_longer(trace: Trace):
    assert 1850 < len(trace.changes) < 2150
    assert all(one.at <= next_one.at for one, next_one in pairwise(trace.changes))
    assert trace.changes[-1].at < 5 * HOUR


def test_as_many_are_good_as_the_workload_says(trace: Trace):
    assert 0.08 < len(trace.truth.bad) / len(trace.changes) < 0.12


def test_some_authors_break_more_than_others(trace: Trace):
    shares = dict[str, list[bool]]()
    for change in trace.changes:
        shares.setdefault(change.author, []).append(change.number in trace.truth.bad)
    of_many = [sum(bad) / len(bad) for bad in shares.values() if len(bad) > 50]
    assert len(of_many) > 5
    assert max(of_many) > 2 * min(of_many)


def test_builds_take_half_an_hour_at_the_median_and_never_very_long(trace: Trace):
    durations = sorted(trace.truth.durations)
    assert 27 * MINUTE < durations[len(durations) // 2] < 33 * MINUTE
    assert durations[0] >= SHORTEST_BUILD
    assert durations[-1] <= LONGEST_BUILD


def test_only_neighbours_break_together_and_as_many_as_the_workload_says(trace: Trace):
    neighbours = {
        (one.number, other.number)
        for one in trace.changes
        for other in trace.changes[one.number + 1 :]
        if other.at - one.at <= MEDIAN_BUILD and one.parts & other.parts
    }
    breaking = {(one, other) for one, others in trace.truth.conflicts.items() for other in others if one < other}
    assert breaking <= neighbours
    assert 0.08 < len(breaking) / len(neighbours) < 0.12


def test_the_wide_touch_two_parts(trace: Trace):
    assert {len(change.parts) for change in trace.changes} == {1, 2}
    assert 0.15 < sum(len(change.parts) == 2 for change in trace.changes) / len(trace.changes) < 0.25


def test_a_day_on_which_nothing_comes_is_a_day():
    assert draw(Workload(rate=0.1, hours=0.1), 1).changes == ()
