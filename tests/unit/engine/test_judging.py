"""Red batches are judged: the guilty fails, several are searched through, a broken base blames nobody."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import CheckState, PrState, QueueState
from mergeyard.domain.targets import named
from tests.support.builders import Yard, a_config, a_parallel_yard, a_wait, a_yard, prs_beneath


def states(yard: Yard, *numbers: int) -> list[PrState]:
    return [yard.state(number) for number in numbers]


# Failing.


def test_one_that_is_red_upon_a_proven_base_fails():
    yard = a_yard(prs=1)
    yard.fails(1)
    assert (yard.state(1), yard.reason(1)) == (PrState.FAILED, Reason.TEST_RUN_FAILED)


def test_those_behind_one_that_failed_are_tested_again_without_it():
    yard = a_yard(prs=3)
    yard.fails(1)
    assert (yard.picture, yard.reason(2), prs_beneath(yard.run_of(3))) == (
        *("main ← 2… ← 3…", Reason.PREREQUISITE_REMOVED),
        (2,),
    )


def test_one_that_is_red_behind_others_waits_until_they_have_merged():
    yard = a_yard(prs=2)
    yard.fails(2)
    assert yard.state(2) is PrState.PENDING_FAILURE


def test_one_that_was_red_behind_others_fails_when_they_have_merged():
    yard = a_yard(prs=2)
    yard.fails(2)
    yard.passes(1)
    yard.perform_all()
    assert (yard.state(2), yard.reason(2)) == (PrState.FAILED, Reason.TEST_RUN_FAILED)


def test_one_that_fails_names_those_that_it_was_red_upon():
    yard = a_yard(prs=2)
    yard.fails(2)
    yard.passes(1)
    yard.perform_all()
    assert yard.stay(2).upon == (1,)


def test_one_that_was_red_upon_one_that_left_is_tested_again_before_anyone_blames_it():
    yard = a_yard(prs=2)
    yard.fails(2)
    yard.fails(1)
    assert (yard.picture, yard.reason(2)) == ("main ← 2…", Reason.PREREQUISITE_REMOVED)


def test_one_whose_time_ran_out_fails_for_that():
    yard = a_yard(prs=1, testing_timeout_minutes=1)
    yard.pass_time(60_000)
    yard.perform(t.LookAtChecks)
    assert yard.reason(1) is Reason.TEST_RUN_TIMEOUT


def test_several_that_are_red_together_are_searched_through():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    assert yard.picture == "main ⋔ 1+2 : 1…"


def test_in_a_paused_queue_nobody_fails_for_a_test():
    yard = a_yard(prs=1)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.fails(1)
    assert yard.state(1) is PrState.PENDING_FAILURE


def test_two_that_break_each_other_are_judged_by_who_merged():
    """Each is green alone; together they are red, so the first merges and the second fails, naming it."""
    yard = a_yard(prs=2)
    yard.tell(yard.verdict(CheckState.PASSED, 1), yard.verdict(CheckState.FAILED, 2))
    yard.perform_all()
    assert (states(yard, 1, 2), yard.stay(2).upon) == ([PrState.MERGED, PrState.FAILED], (1,))


# A base that nobody saw green.


def test_on_a_broken_base_nobody_fails():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    yard.build()
    yard.fails()
    assert (yard.state(1), yard.reason(1)) == (PrState.PENDING, Reason.BASE_BROKEN)


def test_on_a_broken_base_the_one_that_repairs_it_merges():
    yard = a_yard(prs=2, proven=False)
    yard.fails(1)
    yard.build()
    yard.fails()
    yard.build()
    yard.passes(2)
    yard.perform_all()
    assert (yard.state(2), yard.picture) == (PrState.MERGED, "main ← 1…")


def test_whoever_is_green_upon_a_broken_base_convicts_nobody():
    yard = a_parallel_yard("x", proven=False)
    yard.fails(1)
    yard.build()
    yard.fails()
    yard.submit(2, targets=named("y"))
    yard.submit(3, targets=named("z"))
    yard.build()
    yard.passes(2)
    yard.fails(3)
    assert (yard.state(3), yard.waits(3)) == (PrState.PENDING, a_wait(Reason.BASE_BROKEN))


def test_whoever_repairs_a_broken_base_does_not_convict_whom_it_repaired():
    """1 is red alone and green with 2, which says nothing about the base without either."""
    yard = a_yard(prs=2, proven=False)
    yard.passes(2)
    yard.fails(1)
    assert (yard.state(1), yard.picture) == (PrState.PENDING_FAILURE, "main ← 1✗ ← 2✓ ?")


# Optimistic merging.


def test_a_red_one_that_a_run_behind_clears_merges_with_it():
    yard = a_yard(prs=2, depth=1)
    yard.fails(1)
    yard.passes(2)
    yard.perform_all()
    assert states(yard, 1, 2) == [PrState.MERGED, PrState.MERGED]


def test_a_red_one_that_a_run_behind_cleared_was_never_failed():
    yard = a_yard(prs=2, depth=1)
    yard.fails(1)
    yard.passes(2)
    assert yard.timeline(1)[-2:] == [
        (PrState.PENDING_FAILURE, Reason.TEST_RUN_FAILED),
        (PrState.TESTS_PASSED, Reason.SUCCESSOR_PASSED),
    ]


def test_a_red_one_whose_successors_are_red_too_fails():
    yard = a_yard(prs=2, depth=1)
    yard.fails(1)
    yard.fails(2)
    assert (yard.state(1), yard.picture) == (PrState.FAILED, "main ← 2…")


def test_a_red_one_fails_at_once_when_nobody_stands_behind():
    yard = a_yard(prs=1, depth=1)
    yard.fails(1)
    assert yard.state(1) is PrState.FAILED


def test_a_clearance_is_withdrawn_when_the_run_that_gave_it_holds_no_longer():
    yard = a_yard(prs=3, depth=2)
    yard.fails(1)
    yard.passes(2)
    yard.cancel(2)
    assert (yard.state(1), yard.reason(1)) == (PrState.PENDING, Reason.PREREQUISITE_REMOVED)


def test_one_that_was_red_is_tested_again_when_its_clearance_is_withdrawn():
    yard = a_yard(prs=2, depth=1)
    yard.fails(1)
    red = yard.run_of(1)
    yard.passes(2)
    yard.cancel(2)
    assert (yard.picture, yard.run_of(1).id != red.id) == ("main ← 1…", True)


def test_one_under_test_goes_on_when_its_clearance_is_withdrawn():
    yard = a_yard(prs=2, depth=1)
    run = yard.run_of(1)
    yard.passes(2)
    yard.cancel(2)
    assert (yard.state(1), yard.run_of(1)) == (PrState.TESTING, run)


def test_a_clearance_is_withdrawn_when_optimistic_merging_is_turned_off():
    yard = a_yard(prs=2, depth=1)
    yard.passes(2)
    yard.tell(e.SettingsSaved(config=a_config()))
    assert yard.state(1) is PrState.TESTING


def test_one_that_passed_by_itself_needs_no_clearance():
    yard = a_yard(prs=2, depth=1)
    yard.passes(2)
    yard.passes(1)
    yard.cancel(2)
    assert yard.state(1) is PrState.TESTS_PASSED


@pytest.mark.parametrize("depth", [0, 1])
def test_the_clearance_of_one_that_lost_its_run_is_withdrawn_with_the_run_behind(depth: int):
    """The only run of 1 was declared void on resume, and the one behind it is cancelled: nothing speaks for 1."""
    yard = a_yard(prs=2, depth=depth, concurrency=2)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.fails(1)
    yard.passes(2)
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    yard.cancel(2)
    assert (yard.state(1), yard.picture) == (PrState.PENDING, "main ← 1…")
