"""Optimistic merging: a passed run clears all batches ahead of it, as long as it is valid."""

from mergeyard.domain.config import Mode
from mergeyard.domain.states import CheckState
from tests.support.story import Story


def optimistic_story(depth: int) -> Story:
    return Story(can_optimistically_merge=True, pending_failure_depth=depth)


def test_a_passed_run_clears_the_prs_ahead_of_it_that_are_still_in_testing():
    story = optimistic_story(depth=0)
    story.submit(1, 2, 3)
    story.tests_pass(3)
    assert story.landings() == ((1, 2, 3),)
    assert story.reasons(1)[-2:] == ("successor_passed", "merged_by_queue")
    assert story.runs() == ()


def test_a_passed_run_does_not_land_prs_behind_it():
    story = optimistic_story(depth=0)
    story.submit(1, 2, 3)
    story.tests_pass(2)
    assert story.landings() == ((1, 2),)
    assert story.queue_text() == "main ← 3…"
    story.tests_fail(3)
    assert (story.state(3), story.failed_on(3)) == ("failed", (1, 2))


def test_without_optimistic_merging_a_passed_run_clears_no_other_pr():
    story = Story()
    story.submit(1, 2)
    story.tests_pass(2)
    assert story.states(1, 2) == ("testing", "tests_passed")
    assert story.merged_prs() == ()


def a_cleared_failed_pr() -> Story:
    story = optimistic_story(depth=1)
    story.withhold_landings()
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_pass(2)
    return story


def test_a_cleared_pr_is_shown_as_passed():
    story = a_cleared_failed_pr()
    assert story.queue_text() == "main ← 1✓ ← 2✓"
    assert (story.state(1), story.reason(1)) == ("tests_passed", "successor_passed")


def test_a_cleared_pr_is_tested_again_when_the_clearing_run_becomes_invalid():
    story = a_cleared_failed_pr()
    story.cancel(2)
    assert story.queue_text() == "main ← 1…"
    assert story.state_history(1)[-3:] == ("tests_passed", "pending", "testing")
    story.stop_withholding()
    story.tests_fail(1)
    assert story.state(1) == "failed"


def test_a_clearance_is_withdrawn_when_the_target_moves():
    story = a_cleared_failed_pr()
    story.external_push()
    assert story.queue_text() == "main ← 1… ← 2…"
    assert story.merged_prs() == ()


def test_when_a_clearance_is_withdrawn_the_pr_s_own_run_still_counts():
    story = optimistic_story(depth=0)
    story.withhold_landings()
    story.submit(1, 2)
    run = story.run_of(1).id
    story.tests_pass(2)
    assert story.state(1) == "tests_passed"
    story.cancel(2)
    assert story.state(1) == "testing"
    assert story.run_of(1).id == run


def test_a_push_found_just_before_landing_withdraws_the_clearance():
    story = a_cleared_failed_pr()
    story.push_without_event(2)
    story.stop_withholding()
    assert (story.state(2), story.state(1)) == ("cancelled", "testing")
    assert story.merged_prs() == ()


def test_a_pr_that_waits_for_a_slot_starts_before_the_failed_pr_ahead_is_decided():
    story = Story(concurrency=1, can_optimistically_merge=True, pending_failure_depth=1)
    story.submit(1, 2)
    story.tests_fail(1)
    assert story.queue_text() == "main ← 1✗ ← 2…"
    assert story.runs() == ((1, 2),)
    story.tests_pass(2)
    assert story.landings() == ((1, 2),)


def test_a_failed_pr_with_no_pr_behind_it_fails_at_once():
    story = optimistic_story(depth=5)
    story.submit(1)
    story.tests_fail(1)
    assert story.state(1) == "failed"


def test_depth_counts_batches_and_not_prs():
    story = Story(batch=2, can_optimistically_merge=True, pending_failure_depth=1)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    assert story.queue_text() == "main ← 1+2✗ ← 3+4…"
    story.tests_pass(3, 4)
    assert story.landings() == ((1, 2, 3, 4),)


def test_a_failed_batch_that_is_not_cleared_is_bisected():
    story = Story(batch=2, can_optimistically_merge=True, pending_failure_depth=1)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    story.tests_fail(3, 4)
    assert story.queue_text() == "main ← 3+4… ⋔ 1+2 : 1…"


def test_a_failed_pr_waits_for_the_prs_ahead_first_and_then_for_the_prs_behind():
    story = optimistic_story(depth=1)
    story.submit(1, 2, 3)
    story.tests_fail(2)
    assert (story.wait_reason(2), story.waiting_for(2)) == ("waiting_for_prs_ahead", (1,))
    story.tests_pass(1)
    assert (story.state(2), story.wait_reason(2), story.waiting_for(2)) == (
        "pending_failure",
        "waiting_for_prs_behind",
        (3,),
    )
    story.tests_pass(3)
    assert story.landings() == ((1,), (2, 3))


def test_a_failed_pr_also_waits_for_a_retry_behind_it():
    story = Story(can_optimistically_merge=True, pending_failure_depth=1, test_retries=1)
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_fail(1)
    assert story.state(1) == "pending_failure"
    story.tests_fail(2)
    assert story.states(1, 2) == ("pending_failure", "testing")
    story.tests_pass(2)
    assert story.landings() == ((1, 2),)


def test_a_failed_pr_fails_when_the_pr_behind_that_could_clear_it_leaves():
    story = optimistic_story(depth=1)
    story.submit(1, 2)
    story.tests_fail(1)
    story.cancel(2)
    assert story.state(1) == "failed"


def test_only_prs_behind_in_the_same_lane_can_clear_a_failed_pr():
    story = Story(mode=Mode.PARALLEL, can_optimistically_merge=True, pending_failure_depth=1)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.submit(1, 2)
    story.tests_fail(1)
    assert story.state(1) == "failed"
    assert story.state(2) == "testing"


def test_in_parallel_mode_a_passed_run_across_lanes_clears_both():
    story = Story(mode=Mode.PARALLEL, can_optimistically_merge=True, pending_failure_depth=1)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.impacts(3, "x", "y")
    story.submit(1, 2, 3)
    story.tests_fail(1)
    story.tests_pass(3)
    assert story.landings() == ((1, 2, 3),)


def test_on_an_untested_base_a_passed_successor_clears_without_a_base_run():
    story = Story.on_an_untested_base(can_optimistically_merge=True, pending_failure_depth=1)
    story.submit(1, 2)
    story.tests_fail(1)
    assert story.base_runs() == 0
    story.tests_pass(2)
    assert story.landings() == ((1, 2),)


def test_a_cleared_landing_is_a_passed_base_for_the_prs_behind():
    story = Story.on_an_untested_base(can_optimistically_merge=True, pending_failure_depth=1)
    story.submit(1, 2, 3)
    story.tests_fail(1)
    story.tests_pass(2)
    story.tests_fail(3)
    assert (story.state(3), story.failed_on(3), story.base_runs()) == ("failed", (1, 2), 0)


def test_a_skipped_check_satisfies_its_own_run():
    story = Story()
    story.submit(1)
    story.check("unit", CheckState.NEUTRAL, 1)
    assert story.merged_prs() == (1,)


def test_a_skipped_check_does_not_clear_a_failed_run_ahead():
    story = optimistic_story(depth=1)
    story.submit(1, 2)
    story.tests_fail(1)
    story.check("unit", CheckState.NEUTRAL, 2)
    assert (story.state(1), story.reason(1)) == ("failed", "test_run_failed")
    assert story.queue_text() == "main ← 2…"
    story.tests_pass(2)
    assert story.merged_prs() == (2,)


def test_a_skipped_check_does_not_clear_a_run_ahead_that_is_still_in_progress():
    story = optimistic_story(depth=1)
    story.submit(1, 2)
    story.check("unit", CheckState.NEUTRAL, 2)
    assert story.states(1, 2) == ("testing", "tests_passed")
    story.tests_pass(1)
    assert story.landings() == ((1, 2),)


def test_a_skipped_check_does_not_clear_a_batch_ahead_without_a_run():
    story = optimistic_story(depth=1)
    story.withhold_landings()
    story.submit(1, 2)
    story.check("unit", CheckState.NEUTRAL, 2)
    story.restart(1)
    assert story.state(1) in ("pending", "testing")


def test_only_the_checks_that_were_skipped_must_be_satisfied_ahead():
    story = optimistic_story(depth=1)
    story.settings(required_statuses=("lint", "unit"))
    story.submit(1, 2)
    story.check("lint", CheckState.NEUTRAL, 1)
    story.check("unit", CheckState.FAILED, 1)
    story.check("lint", CheckState.NEUTRAL, 2)
    story.check("unit", CheckState.PASSED, 2)
    assert story.landings() == ((1, 2),)


def test_a_check_that_failed_ahead_and_was_skipped_behind_is_not_cleared_by_another_that_passed():
    story = optimistic_story(depth=1)
    story.settings(required_statuses=("lint", "unit"))
    story.submit(1, 2)
    story.check("lint", CheckState.PASSED, 1)
    story.check("unit", CheckState.FAILED, 1)
    story.check("lint", CheckState.PASSED, 2)
    story.check("unit", CheckState.NEUTRAL, 2)
    assert story.state(1) == "pending_failure"
    story.tests_pass()  # the base run: the base was not seen to pass with these required checks
    assert story.state(1) == "failed"
