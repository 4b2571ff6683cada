"""Views for answers: everybody in order, everybody's position, and the run to show."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mergeyard.domain.states import PrState
from mergeyard.engine import reading
from mergeyard.sim.world import START
from tests.support.builders import (
    Yard,
    a_parallel_yard,
    a_plain_queue,
    a_red_prefix_upon_an_unseen_tip,
    a_submission,
    a_yard,
)

PRIORITIES = st.sampled_from([1, 5, 50, 95, 100])
WAITING = st.lists(st.tuples(PRIORITIES, st.integers(0, 400)), max_size=25)
"""A priority and how many minutes ago it was submitted."""

modestly = settings(deadline=None, max_examples=80, derandomize=True)


@pytest.fixture(scope="module")
def yard() -> Yard:
    """3 and 4 in the line, 1 and 2 searched through, 8 and 7 waiting, 6 held behind 5, and 5 not ready."""
    yard = a_yard(prs=2, batch=2, concurrency=1)
    yard.fails(1, 2)
    yard.open(5)
    yard.change(5, draft=True)
    yard.submit(5)
    yard.submit(6, upon=5, no_batch=True)
    yard.submit(3, 4)
    yard.submit(7)
    yard.submit(8, priority=50)
    yard.build()
    return yard


def test_everybody_stands_line_first_then_bisections_the_waiting_the_held_and_the_not_ready(yard: Yard):
    assert [each.number for each in reading.enqueued(yard.queue, yard.now)] == [3, 4, 1, 2, 8, 7, 6, 5]


def test_a_position_counts_those_that_stand_before(yard: Yard):
    admitted = [each for each in reading.enqueued(yard.queue, yard.now) if each.state is not PrState.NOT_READY]
    assert [reading.position(yard.queue, each, yard.now) for each in admitted] == [1, 2, 3, 4, 5, 6, 7]


def test_one_that_is_not_ready_has_no_position(yard: Yard):
    assert reading.position(yard.queue, yard.stay(5), yard.now) is None


@modestly
@given(WAITING)
def test_a_position_among_the_waiting_is_the_place_in_their_order(waiting: list[tuple[int, int]]):
    oldest_first = sorted(waiting, key=lambda entry: -entry[1])
    queue = a_plain_queue(
        *(
            a_submission(number, priority=priority, minutes_ago=minutes)
            for number, (priority, minutes) in enumerate(oldest_first, 1)
        )
    )
    everybody = list(reading.enqueued(queue, START))
    assert [reading.position(queue, each, START) for each in everybody] == list(range(1, len(everybody) + 1))


def test_a_pull_request_shows_its_own_run(yard: Yard):
    assert reading.shown_run(yard.queue, yard.stay(3)) == yard.run_of(3, 4).id


def test_one_that_was_never_in_a_run_shows_none(yard: Yard):
    assert reading.shown_run(yard.queue, yard.stay(7)) is None


def test_one_that_waits_for_the_base_shows_the_bare_run():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    yard.build()
    assert reading.shown_run(yard.queue, yard.stay(1)) == yard.run_of().id


def test_everybody_who_waits_for_the_base_shows_the_bare_run():
    yard = a_parallel_yard("x", "y", proven=False)
    yard.fails(1)
    yard.fails(2)
    yard.build()
    assert [reading.shown_run(yard.queue, yard.stay(number)) for number in (1, 2)] == [yard.run_of().id] * 2


def test_one_that_is_red_by_itself_in_a_bisection_shows_the_bare_run():
    yard = a_red_prefix_upon_an_unseen_tip()
    assert reading.shown_run(yard.queue, yard.stay(3)) == yard.run_of().id


def test_one_that_does_not_wait_for_the_base_shows_its_own_run():
    yard = a_yard(prs=2, proven=False)
    yard.fails(1)
    yard.build()
    assert reading.shown_run(yard.queue, yard.stay(2)) == yard.run_of(2).id


def test_a_bare_run_that_is_not_built_yet_is_not_shown():
    yard = a_yard(prs=1, proven=False)
    red = yard.run_of(1)
    yard.fails(1)
    assert reading.shown_run(yard.queue, yard.stay(1)) == red.id


def test_one_that_is_red_behind_others_shows_its_own_run():
    yard = a_yard(prs=2)
    yard.fails(2)
    assert reading.shown_run(yard.queue, yard.stay(2)) == yard.run_of(2).id
