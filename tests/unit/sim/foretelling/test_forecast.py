"""A forecast: what the queue's own engine makes of its present state, if what it believes is true."""

from math import log
from random import Random

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import DirectMergeMode, LandingMethod
from mergeyard.domain.expected import Expected
from mergeyard.domain.experience import Experience
from mergeyard.domain.instants import HOUR, MINUTE, Instant, later
from mergeyard.domain.pulls import Hold
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import Mergeability
from mergeyard.engine import estimating, reading
from mergeyard.engine.learning import ANYBODY
from mergeyard.sim.foretelling.beliefs import Beliefs
from mergeyard.sim.foretelling.course import Course
from mergeyard.sim.foretelling.forecast import FEWEST, foretell
from mergeyard.sim.world import START
from tests.support.builders import Yard, a_parallel_yard, a_yard
from tests.support.foretelling import certain

Found = dict[int, int | None]


def expected(queue: Queue, now: Instant = START, *, seed: int = 0) -> dict[int, Expected | None]:
    forecast = foretell(queue, now, map(Random, range(seed, seed + FEWEST)))
    return {int(queue.submissions[ticket].number): each for ticket, each in forecast.items()}


def minutes(queue: Queue, now: Instant = START) -> Found:
    """From the start to the middle of when each merges."""
    found = expected(queue, now)
    return {number: each and round((each.middle - START) / MINUTE) for number, each in found.items()}


def test_where_nothing_can_fail_they_merge_one_slot_after_the_other():
    queue = certain(a_yard(prs=5, concurrency=2).queue)
    assert minutes(queue) == {1: 10, 2: 10, 3: 20, 4: 20, 5: 30}


def test_where_nothing_can_fail_it_is_as_the_guess_says():
    yard = a_yard(prs=7, concurrency=3)
    queue = certain(yard.queue)
    outlook = estimating.outlook(queue, START)
    assert outlook is not None
    for number, found in expected(queue).items():
        place = reading.position(queue, yard.stay(number), START)
        assert place is not None
        guessed = outlook.of(yard.stay(number), place)
        assert found is not None
        assert guessed is not None
        assert found.middle == pytest.approx(guessed.middle, abs=MINUTE)


def test_to_one_that_is_surely_bad_nobody_promises_a_time():
    assert minutes(certain(a_yard(prs=3, concurrency=3).queue, 2))[2] is None


@pytest.mark.parametrize(("chance", "promised"), [(0.25, False), (0.75, True)])
def test_nor_to_one_that_is_rather_bad(chance: float, promised: bool):
    experience = Experience({ANYBODY: log(chance / (1 - chance))})
    queue = replace(certain(a_yard(prs=1).queue), experience=experience)
    merged = [Course(queue, START, Beliefs(queue, START, Random(seed))).merges() for seed in range(FEWEST)]
    assert 0 < sum(map(len, merged)) < FEWEST
    assert (expected(queue)[1] is not None) is promised


def test_whoever_stands_behind_a_bad_one_is_tested_again_without_it():
    assert minutes(certain(a_yard(prs=3, concurrency=3).queue, 2)) == {1: 10, 2: None, 3: 20}


def test_whoever_shares_no_lane_with_a_bad_one_is_not():
    queue = certain(a_parallel_yard("x", "x", "y", concurrency=3).queue, 1)
    assert minutes(queue) == {1: None, 2: 20, 3: 10}


def test_a_red_batch_is_searched_before_the_innocent_merge():
    """One round finds the bad one: those before it land as they were tested then, and who stood behind it is again."""
    queue = certain(a_yard(prs=4, batch=4, concurrency=1, bisection_concurrency=3).queue, 3)
    assert minutes(queue) == {1: 20, 2: 20, 3: None, 4: 30}


def test_a_run_under_way_has_done_a_part_of_its_work():
    queue = certain(a_yard(prs=1).queue)
    assert minutes(queue, later(START, 4 * MINUTE)) == {1: 10}


def test_the_longer_a_run_exceeds_all_others_the_longer_it_may_still_take():
    queue = certain(a_yard(prs=1).queue)
    for hours in (1, 2):
        (found,) = expected(queue, later(START, hours * HOUR)).values()
        assert found is not None
        assert later(START, round(1.05 * hours * HOUR)) < found.middle < later(START, 2 * hours * HOUR)
        assert found.middle < found.late


def test_one_whose_time_to_be_tested_is_over_is_not_expected_to_merge():
    queue = certain(a_yard(prs=1, testing_timeout_minutes=60).queue)
    assert minutes(queue, later(START, HOUR)) == {1: None}


def test_what_has_passed_merges_at_once():
    yard = a_yard(prs=2)
    yard.passes(1)
    assert minutes(certain(yard.queue)) == {1: 0, 2: 10}


def test_whoever_is_red_upon_one_that_passed_is_hardly_expected_to_merge():
    yard = a_yard(prs=2)
    yard.passes(1)
    yard.fails(2)
    queue = replace(yard.queue, durations=(10 * MINUTE,) * 9)
    assert minutes(queue)[2] is None


def test_whoever_is_red_upon_one_that_may_be_bad_itself_may_still_merge():
    yard = a_yard(prs=2)
    yard.fails(2)
    queue = replace(yard.queue, durations=(10 * MINUTE,) * 9)
    assert minutes(queue)[2] is not None


def test_a_search_that_is_under_way_goes_on():
    """The first two are cleared and land, then the third is, and is tested upon them."""
    yard = a_yard(prs=4, batch=4, bisection_concurrency=1)
    yard.fails(1, 2, 3, 4)
    yard.build()
    assert minutes(certain(yard.queue, 4)) == {1: 10, 2: 10, 3: 30, 4: None}


def test_the_later_one_is_at_least_as_late_as_the_middle_one():
    queue = replace(a_yard(prs=6, concurrency=2).queue, durations=(5 * MINUTE, 10 * MINUTE, 40 * MINUTE))
    found = [each for each in expected(queue).values() if each is not None]
    assert all(each.middle <= each.late for each in found)
    assert any(each.middle < each.late for each in found)


def test_the_same_dice_say_the_same_and_others_something_else():
    queue = replace(a_yard(prs=4).queue, durations=(5 * MINUTE, 10 * MINUTE, 20 * MINUTE))
    assert expected(queue) == expected(queue)
    assert expected(queue) != expected(queue, seed=100)


def test_of_too_few_courses_nothing_is_told():
    assert foretell(certain(a_yard(prs=1).queue), START, [Random(1)]) == {}


def test_to_one_that_is_held_out_of_the_line_nobody_promises_a_time():
    yard = a_yard(prs=2, concurrency=1)
    held = replace(yard.stay(2), hold=Hold(Reason.CONFLICTS_WITH_PR_AHEAD, (yard.ticket(1),)))
    queue = replace(
        yard.queue,
        submissions=yard.queue.submissions.put(held.ticket, held),
        waiting={},
        held=yard.queue.held.put(held.ticket, None),
    )
    assert minutes(certain(queue)) == {1: 10, 2: None}


def test_whoever_is_admitted_is_taken_to_be_mergeable_also_while_the_host_does_not_know():
    yard = a_yard(prs=1)
    stay = yard.stay(1)
    unknown = replace(stay, pull=replace(stay.pull, mergeability=Mergeability.UNKNOWN))
    queue = replace(yard.queue, submissions=yard.queue.submissions.put(stay.ticket, unknown))
    assert minutes(certain(queue)) == {1: 10}


@pytest.mark.parametrize("landing", LandingMethod)
def test_a_landing_that_is_under_way_is_taken_to_succeed(landing: LandingMethod):
    yard = a_yard(prs=2, landing=landing)
    yard.passes(1)
    yard.intend()
    assert minutes(certain(yard.queue)) == {1: 0, 2: 10}


def test_also_where_heads_may_merge_directly_everybody_is_expected_to_need_a_run():
    yard = Yard(replace(a_yard().queue.config, direct_merge_mode=DirectMergeMode.ALWAYS))
    yard.submit(1)
    assert minutes(certain(yard.queue)) == {1: 10}
