"""Best-first speculation: runs that are likely to be needed start early, also without PRs that will probably fail."""

from typing import Any

from mergeyard.domain.config import Mode, Speculation
from tests.support.story import Story


def speculative_story(*, concurrency: int = 20, retries: int = 0, mode: Mode = Mode.SINGLE) -> Story:
    return Story(speculation=Speculation.BEST_FIRST, concurrency=concurrency, test_retries=retries, mode=mode)


def test_a_pr_tested_without_a_failing_pr_merges_without_another_run_when_that_one_leaves():
    story = speculative_story()
    story.submit(1, 2, 3)
    story.tests_fail(2)
    story.tests_pass(stack=(1, 3))
    assert story.states(1, 2, 3) == ("testing", "pending_failure", "testing")
    assert story.wait_reason(3) == "waiting_for_checks"
    story.tests_pass(1)
    assert story.states(1, 2, 3) == ("merged", "failed", "merged")


def test_a_wrong_guess_costs_a_run_and_nothing_else():
    story = speculative_story()
    story.submit(1, 2, 3)
    story.tests_fail(2)
    story.tests_pass(stack=(2, 3))
    story.tests_pass(1)
    assert story.states(1, 2) == ("merged", "failed")
    assert story.runs() == ((1, 3),)
    story.tests_pass(3)
    assert story.state(3) == "merged"


def test_a_failed_speculative_run_blames_no_pr_while_the_excluded_pr_is_in_the_queue():
    story = speculative_story()
    story.submit(1, 2, 3)
    story.tests_fail(2)
    story.tests_fail(stack=(1, 3))
    assert story.state(3) == "testing"
    story.tests_pass(1)
    assert (story.state(3), story.failed_on(3)) == ("failed", (1,))


def test_a_pr_that_passed_without_another_does_not_land_before_that_one_has_left():
    story = speculative_story()
    story.submit(1, 2, 3)
    story.tests_fail(2)
    story.tests_pass(stack=(2, 3))
    story.tests_pass(stack=(2,))
    assert story.merged_prs() == ()
    story.cancel(1)
    assert story.states(2, 3) == ("merged", "merged")


def test_a_failed_speculative_run_is_retried_like_any_run():
    story = speculative_story(retries=1)
    story.submit(1, 2)
    story.tests_fail(2)
    story.tests_fail(2)
    assert story.state(2) == "pending_failure"
    story.tests_fail(stack=(2,))
    story.tests_pass(stack=(2,))
    story.cancel(1)
    assert story.state(2) == "merged"


def test_a_restart_repeats_all_runs_of_a_batch():
    story = speculative_story()
    story.submit(1, 2)
    story.tests_fail(2)
    before = {run.id for run in story.queue.runs.values()}
    story.restart(2)
    assert sorted(story.runs()) == [(1,), (1, 2), (2,)]
    assert sum(run.id not in before for run in story.queue.runs.values()) == 2


def test_a_pr_too_far_back_for_a_useful_run_waits_for_the_prs_ahead():
    story = speculative_story(concurrency=60)
    story.submit(*range(1, 41))
    assert story.wait_reason(40) == "waiting_for_prs_ahead"
    story.tests_pass_until_the_end()
    assert story.merged_prs() == tuple(range(1, 41))


def test_with_few_slots_the_front_goes_first():
    story = speculative_story(concurrency=2)
    story.submit(1, 2, 3)
    assert story.runs() == ((1,), (1, 2))
    assert story.wait_reason(3) == "waiting_for_slot"


def test_a_lane_that_changed_before_its_first_run_is_computed_again():
    story = speculative_story(concurrency=60, mode=Mode.PARALLEL)
    for number in range(1, 31):
        story.impacts(number, "ui")
    story.submit(*range(1, 31))
    assert story.wait_reason(30) == "waiting_for_prs_ahead"
    story.upload_targets(30, "docs")
    assert (30,) in story.runs()


def test_a_long_lane_takes_no_slots_from_other_lanes():
    story = speculative_story(mode=Mode.PARALLEL)
    for number in range(1, 41):
        story.impacts(number, "ui")
    story.impacts(41, "docs", "ui")
    story.impacts(42, "docs")
    story.impacts(43, "search")
    story.submit(*range(1, 44))
    assert (43,) in story.runs()
    assert story.wait_reason(40) == story.wait_reason(41) == "waiting_for_prs_ahead"
    assert story.state(42) == "pending"
    story.tests_pass_until_the_end()
    assert sorted(story.merged_prs()) == list(range(1, 44))


def test_a_queue_that_stops_speculating_keeps_its_runs():
    story = speculative_story()
    story.submit(1, 2, 3)
    story.tests_fail(2)
    story.settings(speculation=Speculation.CHAIN)
    story.tests_pass(stack=(1, 3))
    story.tests_pass(1)
    assert story.states(1, 2, 3) == ("merged", "failed", "merged")


def test_a_speculative_run_is_invalid_when_the_excluded_pr_lands_in_another_lane():
    story = best_first_in_lanes(can_optimistically_merge=True, pending_failure_depth=1)
    story.tests_fail(stack=(1, 2))
    story.tests_pass(stack=(2, 3))
    story.tests_pass(stack=(1,))
    assert story.landings() == ((1,),)
    assert story.state(2) == "pending_failure"


def test_prs_that_failed_together_do_not_land_by_a_run_that_excluded_a_landed_pr():
    story = best_first_in_lanes()
    story.tests_fail(stack=(1, 2, 3))
    story.tests_pass(stack=(2, 3))
    story.tests_pass(stack=(1, 2))
    story.tests_pass(stack=(1,))
    assert story.merged_prs() == (1, 2)
    assert story.state(3) == "failed"


def best_first_in_lanes(**settings: Any) -> Story:
    story = Story(mode=Mode.PARALLEL, speculation=Speculation.BEST_FIRST, concurrency=20, **settings)
    story.impacts(1, "a")
    story.impacts(2, "a", "b")
    story.impacts(3, "b")
    story.submit(1, 2, 3)
    return story


def test_a_speculative_run_never_blames_an_excluded_pr():
    story = Story.on_an_untested_base(speculation=Speculation.BEST_FIRST, concurrency=9)
    story.submit(1, 2)
    story.tests_fail(stack=(1,))
    story.tests_pass(stack=(2,))
    assert story.state(1) == "pending_failure"
    assert story.base_runs() == 1


def test_a_pr_whose_only_passed_run_contained_one_that_left_is_told_so():
    story = Story.on_an_untested_base(speculation=Speculation.BEST_FIRST, concurrency=3)
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_pass(stack=(1, 2))
    assert story.state(2) == "tests_passed"
    story.tests_fail()
    assert story.reasons(2)[-2:] == ("prerequisite_removed", "test_run_started")
