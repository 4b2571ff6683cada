"""The order of waiting pull requests: priority, then submission; aging prevents starvation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mergeyard.engine.batching import aged_priority, waiting_in_order
from tests.support.builders import a_plain_queue, a_submission
from tests.support.world.world import START_TIME

PRIORITIES = st.sampled_from([0, 1, 5, 50, 95, 100, 200])
WAITING = st.lists(st.tuples(PRIORITIES, st.integers(0, 1000)), max_size=25)
"""A priority and how many minutes ago it was submitted."""

modestly = settings(deadline=None, max_examples=80, derandomize=True)


@modestly
@given(WAITING)
def test_waiting_prs_are_ordered_by_aged_priority_then_by_submission(waiting: list[tuple[int, int]]):
    oldest_first = sorted(waiting, key=lambda entry: -entry[1])
    submissions = [
        a_submission(number, priority=priority, minutes_ago=minutes)
        for number, (priority, minutes) in enumerate(oldest_first, 1)
    ]
    expected = sorted(submissions, key=lambda each: (aged_priority(each, START_TIME), each.id))
    assert list(waiting_in_order(a_plain_queue(*submissions), START_TIME)) == expected


@pytest.mark.parametrize(("minutes", "points"), [(0, 100), (59, 100), (60, 90), (119, 90), (120, 80)])
def test_every_full_hour_of_waiting_counts_ten_points(minutes: int, points: int):
    assert aged_priority(a_submission(priority=100, minutes_ago=minutes), START_TIME) == points


def test_no_priority_ages_below_one():
    assert aged_priority(a_submission(priority=100, minutes_ago=60 * 24), START_TIME) == 1


def test_a_small_priority_does_not_age_below_one():
    assert aged_priority(a_submission(priority=5, minutes_ago=60), START_TIME) == 1


def test_an_urgent_pr_stays_urgent():
    assert aged_priority(a_submission(priority=0, minutes_ago=60 * 24), START_TIME) == 0


def test_no_pr_overtakes_an_urgent_pr_by_age():
    queue = a_plain_queue(a_submission(1, priority=1, minutes_ago=60 * 24), a_submission(2, priority=0))
    assert [each.id for each in waiting_in_order(queue, START_TIME)] == [2, 1]


def test_a_smaller_value_comes_first():
    queue = a_plain_queue(a_submission(1, priority=100), a_submission(2, priority=99))
    assert [each.id for each in waiting_in_order(queue, START_TIME)] == [2, 1]


def test_of_the_same_priority_the_earlier_comes_first():
    queue = a_plain_queue(a_submission(2), a_submission(1))
    assert [each.id for each in waiting_in_order(queue, START_TIME)] == [1, 2]


def test_an_old_pr_overtakes_a_young_pr_of_higher_priority():
    queue = a_plain_queue(a_submission(1, priority=100, minutes_ago=120), a_submission(2, priority=85))
    assert [each.id for each in waiting_in_order(queue, START_TIME)] == [1, 2]
