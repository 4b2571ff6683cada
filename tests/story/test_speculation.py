"""Best-first speculation: what is likely to be needed is tested early, also without those who are probably bad."""

from typing import Any

from mergeyard.domain.config import Mode, Speculation
from tests.support.story import Story


def a_speculator(*, concurrency: int = 20, retries: int = 0, mode: Mode = Mode.SINGLE) -> Story:
    return Story(speculation=Speculation.BEST_FIRST, concurrency=concurrency, test_retries=retries, mode=mode)


def test_whoever_was_tested_without_the_bad_one_merges_when_it_leaves_and_needs_no_other_run():
    story = a_speculator()
    story.submit(1, 2, 3)
    story.tests_fail(2)
    story.tests_pass(upon=(1, 3))
    assert story.states(1, 2, 3) == ("testing", "pending_failure", "testing")
    assert story.waiting(3) == "waiting_for_checks"
    story.tests_pass(1)
    assert story.states(1, 2, 3) == ("merged", "failed", "merged")


def test_a_wrong_guess_costs_a_run_and_nothing_else():
    story = a_speculator()
    story.submit(1, 2, 3)
    story.tests_fail(2)
    story.tests_pass(upon=(2, 3))
    story.tests_pass(1)
    assert story.states(1, 2) == ("merged", "failed")
    assert story.runs() == ((1, 3),)
    story.tests_pass(3)
    assert story.state(3) == "merged"


def test_a_red_run_without_somebody_blames_nobody_while_that_one_is_still_there():
    story = a_speculator()
    story.submit(1, 2, 3)
    story.tests_fail(2)
    story.tests_fail(upon=(1, 3))
    assert story.state(3) == "testing"
    story.tests_pass(1)
    assert (story.state(3), story.failed_upon(3)) == ("failed", (1,))


def test_who_passed_without_another_does_not_land_before_that_one_has_left():
    story = a_speculator()
    story.submit(1, 2, 3)
    story.tests_fail(2)
    story.tests_pass(upon=(2, 3))
    story.tests_pass(upon=(2,))
    assert story.merged() == ()
    story.cancel(1)
    assert story.states(2, 3) == ("merged", "merged")


def test_a_red_bet_is_repeated_like_any_run():
    story = a_speculator(retries=1)
    story.submit(1, 2)
    story.tests_fail(2)
    story.tests_fail(2)
    assert story.state(2) == "pending_failure"
    story.tests_fail(upon=(2,))
    story.tests_pass(upon=(2,))
    story.cancel(1)
    assert story.state(2) == "merged"


def test_a_restart_begins_all_runs_of_a_batch_anew():
    story = a_speculator()
    story.submit(1, 2)
    story.tests_fail(2)
    before = {run.id for run in story.queue.runs.values()}
    story.restart(2)
    assert sorted(story.runs()) == [(1,), (1, 2), (2,)]
    assert sum(run.id not in before for run in story.queue.runs.values()) == 2


def test_whoever_stands_too_far_back_to_be_worth_a_run_waits_for_those_ahead():
    story = a_speculator(concurrency=60)
    story.submit(*range(1, 41))
    assert story.waiting(40) == "waiting_for_prs_ahead"
    story.tests_pass_until_the_end()
    assert story.merged() == tuple(range(1, 41))


def test_with_few_slots_the_front_goes_first():
    story = a_speculator(concurrency=2)
    story.submit(1, 2, 3)
    assert story.runs() == ((1,), (1, 2))
    assert story.waiting(3) == "waiting_for_slot"


def test_a_lane_that_changed_before_its_first_run_is_found_anew():
    story = a_speculator(concurrency=60, mode=Mode.PARALLEL)
    for number in range(1, 31):
        story.impacts(number, "ui")
    story.submit(*range(1, 31))
    assert story.waiting(30) == "waiting_for_prs_ahead"
    story.upload_targets(30, "docs")
    assert (30,) in story.runs()


def test_a_long_lane_keeps_no_slots_from_the_others():
    story = a_speculator(mode=Mode.PARALLEL)
    for number in range(1, 41):
        story.impacts(number, "ui")
    story.impacts(41, "docs", "ui")
    story.impacts(42, "docs")
    story.impacts(43, "search")
    story.submit(*range(1, 44))
    assert (43,) in story.runs()
    assert story.waiting(40) == story.waiting(41) == "waiting_for_prs_ahead"
    assert story.state(42) == "pending"
    story.tests_pass_until_the_end()
    assert sorted(story.merged()) == list(range(1, 44))


def test_a_queue_that_stops_speculating_goes_on_with_what_it_has():
    story = a_speculator()
    story.submit(1, 2, 3)
    story.tests_fail(2)
    story.settings(speculation=Speculation.CHAIN)
    story.tests_pass(upon=(1, 3))
    story.tests_pass(1)
    assert story.states(1, 2, 3) == ("merged", "failed", "merged")


def test_a_bet_is_lost_when_the_one_that_it_left_out_lands_in_another_lane():
    story = best_first_in_lanes(can_optimistically_merge=True, pending_failure_depth=1)
    story.tests_fail(upon=(1, 2))
    story.tests_pass(upon=(2, 3))
    story.tests_pass(upon=(1,))
    assert story.landings() == ((1,),)
    assert story.state(2) == "pending_failure"


def test_what_was_red_together_does_not_land_by_a_bet_against_one_that_landed():
    story = best_first_in_lanes()
    story.tests_fail(upon=(1, 2, 3))
    story.tests_pass(upon=(2, 3))
    story.tests_pass(upon=(1, 2))
    story.tests_pass(upon=(1,))
    assert story.merged() == (1, 2)
    assert story.state(3) == "failed"


def best_first_in_lanes(**settings: Any) -> Story:
    story = Story(mode=Mode.PARALLEL, speculation=Speculation.BEST_FIRST, concurrency=20, **settings)
    story.impacts(1, "a")
    story.impacts(2, "a", "b")
    story.impacts(3, "b")
    story.submit(1, 2, 3)
    return story


def test_a_bet_convicts_nobody_whom_it_left_out():
    story = Story.on_an_unseen_base(speculation=Speculation.BEST_FIRST, concurrency=9)
    story.submit(1, 2)
    story.tests_fail(upon=(1,))
    story.tests_pass(upon=(2,))
    assert story.state(1) == "pending_failure"
    assert story.bare_runs() == 1
