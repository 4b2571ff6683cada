"""Optimistic merging: a green run speaks for everything beneath it, for as long as it holds."""

from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode, Mode
from mergeyard.domain.states import CheckState
from tests.support.story import Story


def an_optimist(depth: int) -> Story:
    return Story(can_optimistically_merge=True, pending_failure_depth=depth)


def test_a_green_run_clears_those_beneath_it_that_are_still_under_test():
    story = an_optimist(depth=0)
    story.submit(1, 2, 3)
    story.tests_pass(3)
    assert story.landings() == ((1, 2, 3),)
    assert story.reasons(1)[-2:] == ("successor_passed", "merged_by_queue")
    assert story.runs() == ()


def test_a_green_run_lands_no_further_than_itself():
    story = an_optimist(depth=0)
    story.submit(1, 2, 3)
    story.tests_pass(2)
    assert story.landings() == ((1, 2),)
    assert story.picture() == "main ← 3…"
    story.tests_fail(3)
    assert (story.state(3), story.failed_upon(3)) == ("failed", (1, 2))


def test_without_optimistic_merging_a_green_run_speaks_for_nobody_else():
    story = Story()
    story.submit(1, 2)
    story.tests_pass(2)
    assert story.states(1, 2) == ("testing", "tests_passed")
    assert story.merged() == ()


def a_cleared_red_one() -> Story:
    story = an_optimist(depth=1)
    story.withhold_landings()
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_pass(2)
    return story


def test_one_that_was_cleared_shows_as_passed():
    story = a_cleared_red_one()
    assert story.picture() == "main ← 1✓ ← 2✓"
    assert (story.state(1), story.reason(1)) == ("tests_passed", "successor_passed")


def test_a_clearance_is_withdrawn_when_its_run_stops_holding_and_the_one_it_cleared_is_tested_again():
    story = a_cleared_red_one()
    story.cancel(2)
    assert story.picture() == "main ← 1…"
    assert story.past(1)[-3:] == ("tests_passed", "pending", "testing")
    story.stop_withholding()
    story.tests_fail(1)
    assert story.state(1) == "failed"


def test_a_clearance_is_withdrawn_when_the_target_moves():
    story = a_cleared_red_one()
    story.foreign_push()
    assert story.picture() == "main ← 1… ← 2…"
    assert story.merged() == ()


def test_when_a_clearance_is_withdrawn_a_run_of_its_own_that_goes_on_still_counts():
    story = an_optimist(depth=0)
    story.withhold_landings()
    story.submit(1, 2)
    run = story.run_of(1).id
    story.tests_pass(2)
    assert story.state(1) == "tests_passed"
    story.cancel(2)
    assert story.state(1) == "testing"
    assert story.run_of(1).id == run


def test_a_push_found_just_before_landing_withdraws_the_clearance():
    story = a_cleared_red_one()
    story.push_unheard(2)
    story.stop_withholding()
    assert (story.state(2), story.state(1)) == ("cancelled", "testing")
    assert story.merged() == ()


def test_one_that_waits_for_a_slot_starts_before_the_red_one_ahead_is_judged():
    story = Story(concurrency=1, can_optimistically_merge=True, pending_failure_depth=1)
    story.submit(1, 2)
    story.tests_fail(1)
    assert story.picture() == "main ← 1✗ ← 2…"
    assert story.runs() == ((1, 2),)
    story.tests_pass(2)
    assert story.landings() == ((1, 2),)


def test_with_nobody_behind_it_a_red_one_fails_at_once():
    story = an_optimist(depth=5)
    story.submit(1)
    story.tests_fail(1)
    assert story.state(1) == "failed"


def test_depth_counts_batches_and_not_prs():
    story = Story(batch=2, can_optimistically_merge=True, pending_failure_depth=1)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    assert story.picture() == "main ← 1+2✗ ← 3+4…"
    story.tests_pass(3, 4)
    assert story.landings() == ((1, 2, 3, 4),)


def test_a_red_batch_that_nobody_cleared_is_searched():
    story = Story(batch=2, can_optimistically_merge=True, pending_failure_depth=1)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    story.tests_fail(3, 4)
    assert story.picture() == "main ← 3+4… ⋔ 1+2 : 1…"


def test_a_red_one_behind_waits_for_those_ahead_first_and_then_for_those_behind():
    story = an_optimist(depth=1)
    story.submit(1, 2, 3)
    story.tests_fail(2)
    assert (story.waiting(2), story.waiting_for(2)) == ("waiting_for_prs_ahead", (1,))
    story.tests_pass(1)
    assert (story.state(2), story.waiting(2), story.waiting_for(2)) == (
        "pending_failure",
        "waiting_for_prs_behind",
        (3,),
    )
    story.tests_pass(3)
    assert story.landings() == ((1,), (2, 3))


def test_a_retry_behind_is_waited_for_too():
    story = Story(can_optimistically_merge=True, pending_failure_depth=1, test_retries=1)
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_fail(1)
    assert story.state(1) == "pending_failure"
    story.tests_fail(2)
    assert story.states(1, 2) == ("pending_failure", "testing")
    story.tests_pass(2)
    assert story.landings() == ((1, 2),)


def test_the_one_behind_leaves_so_nobody_is_left_to_speak_for_the_red_one():
    story = an_optimist(depth=1)
    story.submit(1, 2)
    story.tests_fail(1)
    story.cancel(2)
    assert story.state(1) == "failed"


def test_only_those_behind_in_the_same_lane_can_speak_for_a_red_one():
    story = Story(mode=Mode.PARALLEL, can_optimistically_merge=True, pending_failure_depth=1)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.submit(1, 2)
    story.tests_fail(1)
    assert story.state(1) == "failed"
    assert story.state(2) == "testing"


def test_in_parallel_mode_a_green_run_across_lanes_clears_both():
    story = Story(mode=Mode.PARALLEL, can_optimistically_merge=True, pending_failure_depth=1)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.impacts(3, "x", "y")
    story.submit(1, 2, 3)
    story.tests_fail(1)
    story.tests_pass(3)
    assert story.landings() == ((1, 2, 3),)


def test_on_an_unseen_base_a_green_successor_clears_without_a_bare_run():
    story = Story.on_an_unseen_base(can_optimistically_merge=True, pending_failure_depth=1)
    story.submit(1, 2)
    story.tests_fail(1)
    assert story.bare_runs() == 0
    story.tests_pass(2)
    assert story.landings() == ((1, 2),)


def test_what_was_cleared_and_landed_is_a_proven_base_for_those_behind():
    story = Story.on_an_unseen_base(can_optimistically_merge=True, pending_failure_depth=1)
    story.submit(1, 2, 3)
    story.tests_fail(1)
    story.tests_pass(2)
    story.tests_fail(3)
    assert (story.state(3), story.failed_upon(3), story.bare_runs()) == ("failed", (1, 2), 0)


def test_those_beneath_do_not_land_by_a_run_behind_them_next_to_a_stranger_of_their_lane():
    story = Story(
        mode=Mode.PARALLEL, direct_merge_mode=DirectMergeMode.ALWAYS, can_optimistically_merge=True, concurrency=9
    )
    for number, targets in ((1, "a"), (2, "ab"), (3, "b")):
        story.impacts(number, *targets)
    story.open(1)
    story.checks_pass_on_head(1)
    story.submit(3)
    story.withhold(t.Land)
    story.submit(1)
    story.submit(2, priority=0)
    story.stop_withholding()
    assert [run.base for run in story.queue.runs_in_progress] == [story.queue.target.tip] * 2
    story.tests_pass(3)
    assert story.landings() == ((1,), (2, 3))


def test_a_skipped_check_satisfies_its_own_run():
    story = Story()
    story.submit(1)
    story.check("unit", CheckState.NEUTRAL, 1)
    assert story.merged() == (1,)


def test_a_skipped_check_does_not_clear_a_failed_run_ahead():
    story = an_optimist(depth=1)
    story.submit(1, 2)
    story.tests_fail(1)
    story.check("unit", CheckState.NEUTRAL, 2)
    assert (story.state(1), story.reason(1)) == ("failed", "test_run_failed")
    assert story.picture() == "main ← 2…"
    story.tests_pass(2)
    assert story.merged() == (2,)


def test_a_skipped_check_does_not_clear_a_run_ahead_that_is_still_in_progress():
    story = an_optimist(depth=1)
    story.submit(1, 2)
    story.check("unit", CheckState.NEUTRAL, 2)
    assert story.states(1, 2) == ("testing", "tests_passed")
    story.tests_pass(1)
    assert story.landings() == ((1, 2),)


def test_a_skipped_check_does_not_clear_a_batch_ahead_without_a_run():
    story = an_optimist(depth=1)
    story.withhold_landings()
    story.submit(1, 2)
    story.check("unit", CheckState.NEUTRAL, 2)
    story.restart(1)
    assert story.state(1) in ("pending", "testing")


def test_only_the_checks_that_were_skipped_must_be_satisfied_ahead():
    story = an_optimist(depth=1)
    story.settings(required_statuses=("lint", "unit"))
    story.submit(1, 2)
    story.check("lint", CheckState.NEUTRAL, 1)
    story.check("unit", CheckState.FAILED, 1)
    story.check("lint", CheckState.NEUTRAL, 2)
    story.check("unit", CheckState.PASSED, 2)
    assert story.landings() == ((1, 2),)


def test_a_check_that_failed_ahead_and_was_skipped_behind_is_not_cleared_by_another_that_passed():
    story = an_optimist(depth=1)
    story.settings(required_statuses=("lint", "unit"))
    story.submit(1, 2)
    story.check("lint", CheckState.PASSED, 1)
    story.check("unit", CheckState.FAILED, 1)
    story.check("lint", CheckState.PASSED, 2)
    story.check("unit", CheckState.NEUTRAL, 2)
    assert story.state(1) == "pending_failure"
    story.tests_pass()  # the base run: the base was not seen to pass with these required checks
    assert story.state(1) == "failed"
