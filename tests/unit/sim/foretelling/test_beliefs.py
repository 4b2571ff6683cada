"""What a draw takes to be true: as likely as the queue itself thinks it is."""

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from mergeyard.domain.durations import LongerThan
from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import HOUR, MINUTE, later
from mergeyard.domain.queue import Queue
from mergeyard.engine import learning
from mergeyard.sim.foretelling.beliefs import Beliefs
from mergeyard.sim.world import START
from tests.support.builders import a_yard
from tests.support.foretelling import certain

DRAWS = 400


def shares(queue: Queue) -> dict[int, float]:
    """How often each is taken to be bad."""
    drawn = [Beliefs(queue, START, Random(seed)).bad for seed in range(DRAWS)]
    counted = Counter(ticket for bad in drawn for ticket in bad)
    return {int(stay.number): counted[stay.ticket] / DRAWS for stay in queue.submissions.values()}


def with_lengths(queue: Queue, *minutes: int) -> Queue:
    return replace(queue, durations=tuple(each * MINUTE for each in minutes))


def test_whoever_waits_or_is_under_test_is_bad_as_often_as_experience_says():
    yard = a_yard(prs=3, concurrency=1)
    often = 1 - learning.chance(yard.queue, yard.stay(1))
    assert shares(with_lengths(yard.queue, 10)) == pytest.approx(dict.fromkeys((1, 2, 3), often), abs=0.05)


def test_of_a_red_batch_under_search_at_least_one_is_bad():
    yard = a_yard(prs=4, batch=4)
    yard.fails(1, 2, 3, 4)
    queue = with_lengths(yard.queue, 10)
    drawn = [Beliefs(queue, START, Random(seed)).bad for seed in range(DRAWS)]
    assert all(drawn)
    assert frozenset[Ticket]().union(*drawn) == set(queue.submissions)


def test_whoever_passed_is_good():
    yard = a_yard(prs=1)
    yard.passes(1)
    assert shares(with_lengths(yard.queue, 10)) == {1: 0}


def test_whoever_is_tested_again_takes_as_long_as_before():
    yard = a_yard(prs=2)
    believed = Beliefs(with_lengths(yard.queue, *range(1, 33)), START, Random(1))
    one, other = yard.run_of(1), yard.run_of(2)
    assert believed.length(one) == believed.length(one)
    assert believed.length(one) != believed.length(other)


def test_a_run_under_way_is_none_of_those_that_would_have_ended_by_now():
    yard = a_yard(prs=1)
    queue, now = with_lengths(yard.queue, *(10, 20, 30) * 10), later(START, 20 * MINUTE)
    left = [Beliefs(queue, now, Random(seed)).left(yard.run_of(1), now) for seed in range(DRAWS)]
    assert all(each > 0 for each in left)
    assert sum(left) / DRAWS == pytest.approx(8 * MINUTE, rel=0.3)


def test_what_is_under_way_for_longer_than_any_other_took_tells_what_others_may_take():
    yard = a_yard(prs=5, concurrency=4)
    queue, now = with_lengths(yard.queue, 10), later(START, HOUR)
    begun = replace(yard.run_of(1), stack=yard.run_of(1).stack[:0], tests=0)
    lengths = [Beliefs(queue, now, Random(seed)).length(begun) for seed in range(DRAWS)]
    assert sum(length > HOUR for length in lengths) / DRAWS == pytest.approx(4 / 5, abs=0.1)


def test_one_that_was_stopped_is_one_of_those_that_take_longer():
    yard = a_yard(prs=1)
    queue = with_lengths(yard.queue, *(10, 20, 30) * 10)
    stopped = replace(queue, durations=(*queue.durations, *(LongerThan(25 * MINUTE),) * 30))
    slow = [Beliefs(stopped, START, Random(seed)).length(yard.run_of(1)) > 25 * MINUTE for seed in range(DRAWS)]
    assert sum(slow) / DRAWS == pytest.approx(2 / 3, abs=0.1)


def test_time_in_which_nobody_could_look_does_not_count():
    yard = a_yard(prs=1)
    run, now = replace(yard.run_of(1), outages=15 * MINUTE), later(START, 20 * MINUTE)
    queue = replace(certain(yard.queue), runs={run.id: run})
    assert Beliefs(queue, now, Random(1)).left(run, now) == pytest.approx(5 * MINUTE, rel=0.05)


def test_the_fewer_runs_are_known_the_less_sure_is_how_long_they_take():
    yard = a_yard(prs=1)

    def spread(count: int) -> float:
        queue = with_lengths(yard.queue, *[10] * count)
        drawn = sorted(Beliefs(queue, START, Random(seed)).length(yard.run_of(1)) for seed in range(DRAWS))
        return drawn[DRAWS * 9 // 10] / drawn[DRAWS // 10]

    assert spread(1) > spread(4) > spread(32) > 1
