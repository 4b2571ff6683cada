"""Bisection of a failed batch: on its own base and with its own slots, while other batches continue."""

from mergeyard.domain.config import Mode, OptimizationMode
from mergeyard.domain.states import CheckState
from tests.support.story import Story

SKIP_REDUNDANT_TESTS = OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS


def a_failed_batch(size: int, budget: int = 5) -> Story:
    story = Story(batch=size, bisection_concurrency=budget)
    story.submit(*range(1, size + 1))
    story.tests_fail(*range(1, size + 1))
    return story


def test_the_whole_failed_batch_is_never_tested_again():
    story = a_failed_batch(3)
    assert story.queue_text() == "main ⋔ 1+2+3 : 1… 1+2…"
    assert story.bisection_runs() == ((1,), (1, 2))
    assert story.runs() == ()


def test_members_of_a_bisection_show_it_as_their_reason():
    story = a_failed_batch(3)
    assert story.states(1, 2, 3) == ("testing", "testing", "pending_failure")
    assert (story.wait_reason(3), story.waiting_for(3)) == ("bisection", (1, 2))
    assert story.state_history(1) == ("not_ready", "pending", "testing", "pending_failure", "pending", "testing")
    assert story.reasons(1)[-2:] == ("bisection", "test_run_started")


def test_a_budget_of_one_halves_the_unknown_part():
    story = a_failed_batch(4, budget=1)
    assert story.bisection_runs() == ((1, 2),)
    story.tests_pass(1, 2)
    assert story.bisection_runs() == ((1, 2, 3),)
    story.tests_fail(1, 2, 3)
    assert story.queue_text() == "main ← 4… ⋔ 3 : 3…"
    assert story.merged_prs() == (1, 2)


def test_prefixes_are_evenly_spaced_over_the_unknown_part():
    story = a_failed_batch(9, budget=2)
    assert story.bisection_runs() == ((1, 2, 3), (1, 2, 3, 4, 5, 6))
    story.tests_fail(1, 2, 3, 4, 5, 6)
    assert story.bisection_runs()[0] == (1, 2, 3)
    story.tests_fail(1, 2, 3)
    assert set(story.bisection_runs()) == {(1,), (1, 2)}


def test_a_first_pr_that_fails_alone_is_the_culprit_and_fails_at_once():
    story = a_failed_batch(3)
    story.tests_fail(1)
    assert (story.state(1), story.reason(1), story.failed_on(1)) == ("failed", "test_run_failed", ())
    assert story.queue_text() == "main ← 2+3…"
    assert "bisection" in story.reasons(2)


def test_a_failed_prefix_moves_the_members_behind_it_back_to_waiting():
    story = a_failed_batch(4, budget=1)
    story.tests_fail(1, 2)
    assert story.queue_text() == "main ← 3+4… ⋔ 1+2 : 1…"


def test_other_batches_continue_without_the_bisected_batch():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    assert story.queue_text() == "main ← 3+4… ⋔ 1+2 : 1…"
    assert story.runs() == ((3, 4),)
    story.tests_pass(3, 4)
    assert story.merged_prs() == (3, 4)
    assert story.bisection_runs() == ((1,),)


def test_bisections_do_not_take_the_slots_of_batches():
    story = Story(concurrency=1, batch=2)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    assert story.queue_text() == "main ← 3+4… ⋔ 1+2 : 1…"


def test_two_bisections_share_one_budget():
    story = Story(batch=2, bisection_concurrency=1, mode=Mode.PARALLEL)
    for number, name in ((1, "x"), (2, "x"), (3, "y"), (4, "y")):
        story.impacts(number, name)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    story.tests_fail(3, 4)
    assert story.bisection_runs() == ((1,),)
    assert story.wait_reason(3) == "waiting_for_slot"
    story.tests_fail(1)
    assert story.bisection_runs() == ((3,),)


# Alone on an unmoved target branch, the passed prefix lands as it was tested.


def test_a_passed_prefix_lands_as_tested_when_nothing_else_is_tested():
    story = a_failed_batch(2)
    verified = story.run_of(1).id
    story.tests_pass(1)
    assert story.landings() == ((1,),)
    assert story.submission(1).verified_by == verified
    assert story.runs() == ()


def test_a_passed_prefix_goes_back_to_waiting_when_there_are_active_batches():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    story.tests_pass(1)
    assert story.queue_text() == "main ← 3+4… ← 1… ⋔ 2"
    assert story.reasons(1)[-2:] == ("bisection_passed", "test_run_started")
    assert story.merged_prs() == ()


def test_a_passed_prefix_goes_back_to_waiting_when_the_target_branch_moved():
    story = a_failed_batch(2)
    story.external_push()
    story.tests_pass(1)
    assert story.queue_text() == "main ← 1… ⋔ 2"
    assert story.merged_prs() == ()


def test_a_bisection_keeps_its_base_when_the_target_branch_moves():
    story = a_failed_batch(3)
    probes = story.run_of(1).id, story.run_of(1, 2).id
    story.external_push()
    assert (story.run_of(1).id, story.run_of(1, 2).id) == probes
    story.tests_fail(1, 2)
    story.tests_pass(1)
    assert story.waiting_for(2) == (1,)


def test_passed_members_go_back_together_and_no_other_pr_joins_them():
    story = Story(batch=4, concurrency=1)
    story.submit(1, 2, 3, 4)
    story.submit(5, 6)
    story.tests_fail(1, 2, 3, 4)
    story.pass_minutes(5)
    assert story.runs() == ((5, 6),)
    story.submit(7, 8, 9)
    story.tests_pass(1, 2)
    story.tests_fail(1, 2, 3)
    story.tests_pass(5, 6)
    assert story.queue_text() == "main ← 1+2… ⋔ 3"


# The suspect.


def a_suspect_on_two(mode: OptimizationMode) -> Story:
    """3 failed on top of 1 and 2, which passed and wait for the active batches 4 and 5."""
    story = Story(batch=3, optimization_mode=mode)
    story.submit(1, 2, 3)
    story.submit(4, 5)
    story.pass_minutes(5)
    story.tests_fail(1, 2, 3)
    story.tests_pass(1, 2)
    return story


def test_the_suspect_waits_until_the_rest_of_its_prefix_has_merged():
    story = a_suspect_on_two(SKIP_REDUNDANT_TESTS)
    assert story.queue_text() == "main ← 4+5… ← 1+2… ⋔ 3"
    assert (story.state(3), story.wait_reason(3), story.waiting_for(3)) == (
        "pending_failure",
        "waiting_for_prs_ahead",
        (1, 2),
    )


def test_skipping_redundant_tests_the_suspect_fails_as_soon_as_they_merged_naming_them():
    story = a_suspect_on_two(SKIP_REDUNDANT_TESTS)
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (4, 5, 1, 2)
    assert (story.state(3), story.reason(3), story.failed_on(3)) == ("failed", "failed_by_optimization", (1, 2))


def test_without_skipping_the_suspect_fails_only_after_a_failed_confirming_run():
    story = a_suspect_on_two(OptimizationMode.OFF)
    story.tests_pass(4, 5)
    story.tests_pass(1, 2)
    assert story.state(3) == "testing"
    assert story.bisection_runs() == ((3,),)
    story.tests_fail(3)
    assert (story.state(3), story.reason(3), story.failed_on(3)) == ("failed", "test_run_failed", (1, 2))


def test_a_passed_confirming_run_moves_the_suspect_back_and_it_merges():
    story = a_suspect_on_two(OptimizationMode.OFF)
    story.tests_pass(4, 5)
    story.tests_pass(1, 2)
    story.tests_pass(3)
    assert story.reasons(3)[-2:] == ("bisection_passed", "test_run_started")
    assert story.queue_text() == "main ← 3…"
    story.tests_pass(3)
    assert story.state(3) == "merged"


def a_suspect_on_a_manual_merge() -> Story:
    """2 failed on top of 1, which was then merged manually onto an untested tip."""
    story = a_failed_batch(2)
    story.external_push()
    story.tests_pass(1)
    story.merge_by_hand(1)
    story.tests_fail(2)
    return story


def test_on_a_tip_not_known_to_pass_the_suspect_waits_for_a_base_run():
    story = a_suspect_on_a_manual_merge()
    assert (story.state(2), story.wait_reason(2), story.base_runs()) == ("pending_failure", "waiting_for_base", 1)
    assert story.shows_base_run(2)
    story.tests_pass()
    assert (story.state(2), story.failed_on(2)) == ("failed", (1,))


def test_on_a_broken_tip_the_suspect_is_held():
    story = a_suspect_on_a_manual_merge()
    story.tests_fail()
    assert (story.state(2), story.wait_reason(2)) == ("pending", "base_broken")
    story.external_push()
    assert story.queue_text() == "main ← 2…"


def test_the_suspect_goes_back_when_a_pr_it_failed_with_leaves_without_merging():
    story = a_suspect_on_two(SKIP_REDUNDANT_TESTS)
    story.cancel(2)
    assert story.reasons(3)[-2:] == ("batchmate_removed", "test_run_started")
    assert story.queue_text() == "main ← 4+5… ← 1… ← 3…"


def test_the_suspect_goes_back_when_a_pr_it_failed_with_fails():
    story = a_suspect_on_two(SKIP_REDUNDANT_TESTS)
    story.tests_pass(4, 5)
    story.tests_fail(1, 2)
    assert story.queue_text() == "main ⋔ 3 ⋔ 1+2 : 1…"
    story.tests_fail(1)
    assert story.state(1) == "failed"
    assert story.states(2, 3) == ("testing", "testing")


def test_the_prefix_continues_when_the_suspect_is_cancelled():
    story = a_suspect_on_two(SKIP_REDUNDANT_TESTS)
    runs = story.runs()
    story.cancel(3)
    assert story.queue_text() == "main ← 4+5… ← 1+2…"
    assert story.runs() == runs


# A member leaves, or the target branch moves, during the bisection.


def test_a_cancelled_member_invalidates_its_results_and_the_rest_is_tested_again_together():
    story = a_failed_batch(4)
    story.cancel(2)
    assert story.queue_text() == "main ← 1+3+4…"
    assert story.bisection_runs() == ()
    assert "batchmate_removed" in story.reasons(1)


def test_a_bisection_continues_when_a_member_behind_the_failed_prefix_leaves():
    story = a_failed_batch(4, budget=1)
    story.tests_fail(1, 2)
    story.cancel(4)
    assert story.bisection_runs() == ((1,),)
    assert story.queue_text() == "main ← 3… ⋔ 1+2 : 1…"


def test_a_member_that_is_pushed_to_is_cancelled_and_the_rest_is_tested_again():
    story = a_failed_batch(3)
    story.push(3)
    assert (story.state(3), story.reason(3)) == ("cancelled", "pr_pushed")
    assert story.queue_text() == "main ← 1+2…"


def test_a_manually_merged_member_makes_the_rest_be_tested_again_on_top_of_it():
    story = a_failed_batch(3)
    story.merge_by_hand(1)
    assert (story.state(1), story.reason(1)) == ("merged", "merged_manually")
    assert story.queue_text() == "main ← 2+3…"


def test_a_passed_member_that_is_merged_manually_counts_as_merged_for_the_suspect():
    story = a_suspect_on_two(SKIP_REDUNDANT_TESTS)
    story.merge_by_hand(1)
    assert story.waiting_for(3) == (2,)
    story.merge_by_hand(2)
    assert (story.state(3), story.failed_on(3)) == ("failed", (1, 2))


def test_restarting_a_member_ends_the_bisection_and_tests_the_rest_again_together():
    story = a_failed_batch(3)
    assert story.restart(2) is None
    assert story.queue_text() == "main ← 1+2+3…"
    assert "tests_restarted" in story.reasons(2)


def test_a_failed_bisection_run_is_retried_like_any_run():
    story = Story(batch=2, test_retries=1)
    story.submit(1, 2)
    story.tests_fail(1, 2)
    story.tests_fail(1, 2)
    assert story.queue_text() == "main ⋔ 1+2 : 1…"
    story.tests_fail(1)
    assert story.states(1, 2) == ("testing", "pending_failure")
    story.tests_pass(1)
    assert story.merged_prs() == (1,)


def test_a_batch_behind_others_is_bisected_on_top_of_them_when_they_have_merged():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4)
    story.tests_fail(3, 4)
    assert story.queue_text() == "main ← 1+2… ← 3+4✗"
    story.tests_pass(1, 2)
    assert story.queue_text() == "main ⋔ 3+4 : 3…"
    story.tests_pass(3)
    assert story.landings() == ((1, 2), (3,))


def test_results_of_an_aborted_bisection_change_nothing():
    story = a_failed_batch(3)
    probe = story.run_of(1)
    story.cancel(3)
    story.late_result(probe, CheckState.FAILED)
    assert story.queue_text() == "main ← 1+2…"
    assert story.state(1) == "testing"


def test_a_bisection_run_that_failed_while_paused_is_tested_again():
    story = a_failed_batch(3)
    story.pause()
    story.tests_fail(1)
    assert story.state(1) != "failed"
    story.resume()
    assert story.bisection_runs() == ((1, 2), (1,))
    story.tests_pass(1)
    assert story.merged_prs() == (1,)


def a_suspect_in_its_confirming_run(retries: int) -> Story:
    """2 failed on top of 1, which has merged since."""
    story = Story(batch=2, test_retries=retries)
    story.submit(1, 2)
    for _ in range(retries + 1):
        story.tests_fail(1, 2)
    story.tests_pass(1)
    assert story.merged_prs() == (1,)
    assert story.queue_text() == "main ⋔ 2 : 2…"
    return story


def test_the_confirming_run_is_retried_like_any_run():
    story = a_suspect_in_its_confirming_run(retries=1)
    story.tests_fail(2)
    assert story.state(2) == "testing"
    story.tests_fail(2)
    assert (story.state(2), story.failed_on(2)) == ("failed", (1,))


def test_a_confirming_run_that_failed_while_paused_is_tested_again():
    story = a_suspect_in_its_confirming_run(retries=0)
    story.pause()
    story.tests_fail(2)
    assert story.state(2) == "pending_failure"
    story.resume()
    assert story.state(2) == "testing"
    story.tests_fail(2)
    assert story.state(2) == "failed"


def test_the_confirming_run_waits_for_a_bisection_slot():
    story = Story(mode=Mode.PARALLEL, batch=2, bisection_concurrency=1)
    for number, name in ((1, "x"), (2, "x"), (3, "y"), (4, "y")):
        story.impacts(number, name)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    story.tests_fail(3, 4)
    story.tests_pass(1)
    assert story.bisection_runs() == ((3,),)
    story.tests_pass(1)
    assert (story.state(2), story.wait_reason(2)) == ("pending_failure", "waiting_for_slot")
    story.tests_fail(3)
    assert story.bisection_runs() == ((2,),)


def test_no_bisection_starts_when_no_status_is_required_any_longer():
    story = Story(batch=2)
    story.submit(1, 2)
    story.repository_requires()
    story.tests_fail(1, 2)
    assert story.bisection_runs() == ()
    assert story.states(1, 2) == ("not_ready", "not_ready")
    assert story.reason(1) == "no_required_statuses"


def test_a_suspect_that_now_conflicts_with_the_target_branch_fails_for_the_conflict():
    story = Story(batch=2)
    story.open(2, {"shared": "two"})
    story.submit(1, 2)
    story.tests_fail(1, 2)
    story.external_push({"shared": "theirs"})
    story.tests_pass(1)
    story.tests_pass(1)
    assert (story.state(2), story.reason(2)) == ("failed", "merge_conflict")


def test_those_that_a_bisection_clears_go_ahead_of_those_that_have_not_started():
    story = Story(batch=4, concurrency=1, bisection_concurrency=1)
    story.submit(1, 2, 3, 4)
    story.submit(5, no_batch=True)
    story.tests_fail(1, 2, 3, 4)
    story.submit(6, no_batch=True, priority=10)
    assert story.batches() == ((5,),)
    story.tests_pass(1, 2)
    story.tests_pass(5)
    assert story.batches() == ((1, 2),)
    assert story.wait_reason(6) == "waiting_for_slot"


def test_an_urgent_pr_still_goes_ahead_of_those_that_a_bisection_cleared():
    story = Story(batch=2, concurrency=1, bisection_concurrency=1)
    story.submit(1, 2)
    story.submit(5, no_batch=True)
    story.tests_fail(1, 2)
    story.tests_pass(1)
    story.submit(7, priority=0)
    assert story.batches()[0] == (7,)
    assert story.wait_reason(1) == "waiting_for_slot"
