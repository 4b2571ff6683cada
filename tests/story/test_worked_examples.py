"""The worked examples of the engine's rules as stories. A, B, C and D are pull requests 1, 2, 3 and 4."""

from itertools import permutations

import pytest

from mergeyard.domain.config import Mode
from tests.support.story import Story

A, B, C, D = 1, 2, 3, 4


def test_three_prs_are_tested_together_each_on_top_of_the_prs_ahead():
    story = Story(concurrency=3)
    story.submit(A, B, C)
    assert story.queue_text() == "main ← 1… ← 2… ← 3…"
    assert story.runs() == ((A,), (A, B), (A, B, C))
    assert story.states(A, B, C) == ("testing", "testing", "testing")


@pytest.mark.parametrize("order", list(permutations((A, B, C))), ids=str)
def test_passed_prs_merge_in_their_order_whatever_order_their_results_come_in(order: tuple[int, ...]):
    story = Story(concurrency=3)
    story.submit(A, B, C)
    for number in order:
        story.tests_pass(number)
    assert story.merged_prs() == (A, B, C)
    assert story.queue_text() == "main"


def test_prs_that_pass_at_the_same_time_land_in_one_update():
    story = Story(concurrency=3)
    story.submit(A, B, C)
    story.all_tests_pass()
    assert story.landings() == ((A, B, C),)
    assert story.states(A, B, C) == ("merged", "merged", "merged")


def test_the_first_fails_and_leaves_and_those_behind_are_tested_again_without_it():
    story = Story(concurrency=3)
    story.submit(A, B, C)
    story.tests_fail(A)
    assert story.queue_text() == "main ← 2… ← 3…"
    assert (story.state(A), story.reason(A), story.failed_on(A)) == ("failed", "test_run_failed", ())
    assert story.runs() == ((B,), (B, C))
    story.tests_pass(B)
    story.tests_pass(C)
    assert story.merged_prs() == (B, C)


def test_a_second_pr_that_fails_first_is_decided_when_the_first_has_merged():
    story = Story(concurrency=3)
    story.submit(A, B, C)
    story.tests_fail(B)
    assert story.queue_text() == "main ← 1… ← 2✗ ← 3…"
    assert (story.state(B), story.reason(B)) == ("pending_failure", "cause_unknown")
    assert (story.wait_reason(B), story.waiting_for(B)) == ("waiting_for_prs_ahead", (A,))
    story.tests_pass(A)
    assert story.state(A) == "merged"
    assert (story.state(B), story.failed_on(B)) == ("failed", (A,))
    assert story.queue_text() == "main ← 3…"
    assert story.runs() == ((C,),)
    story.tests_pass(C)
    assert story.landings() == ((A,), (C,))


def test_a_failed_second_pr_is_tested_again_when_the_first_fails_too():
    story = Story(concurrency=3)
    story.submit(A, B, C)
    story.tests_fail(B)
    story.tests_fail(A)
    assert story.state(A) == "failed"
    assert story.queue_text() == "main ← 2… ← 3…"
    assert story.runs() == ((B,), (B, C))
    assert story.state_history(B)[-3:] == ("pending_failure", "pending", "testing")
    assert "prerequisite_removed" in story.reasons(B)
    story.tests_pass(B)
    assert story.state(B) == "merged"


def test_a_failed_pr_on_an_untested_base_waits_for_a_base_run():
    story = Story.on_an_untested_base(concurrency=3)
    story.submit(A)
    story.tests_fail(A)
    assert story.queue_text() == "main ← 1✗ ?"
    assert (story.state(A), story.wait_reason(A)) == ("pending_failure", "waiting_for_base")
    assert story.base_runs() == 1
    assert story.shows_base_run(A)


def test_a_failed_pr_fails_when_the_base_run_passes():
    story = Story.on_an_untested_base(concurrency=3)
    story.submit(A)
    story.tests_fail(A)
    story.tests_pass()
    assert (story.state(A), story.reason(A)) == ("failed", "test_run_failed")
    assert story.queue_text() == "main"


def test_no_pr_fails_when_the_base_run_fails_and_a_pr_that_repairs_the_base_still_merges():
    story = Story.on_an_untested_base(concurrency=3)
    story.submit(A)
    story.tests_fail(A)
    story.tests_fail()
    assert (story.state(A), story.wait_reason(A)) == ("pending", "base_broken")
    assert story.queue_text() == "main"
    story.submit(B)
    assert story.runs() == ((B,),)
    story.tests_pass(B)
    assert story.state(B) == "merged"
    assert story.queue_text() == "main ← 1…"
    story.tests_pass(A)
    assert story.landings() == ((B,), (A,))


def test_optimistic_with_depth_1_a_passed_successor_lands_the_failed_pr_in_one_update():
    story = Story(concurrency=3, can_optimistically_merge=True, pending_failure_depth=1)
    story.submit(A, B)
    story.tests_fail(A)
    assert story.queue_text() == "main ← 1✗ ← 2…"
    assert (story.state(A), story.wait_reason(A), story.waiting_for(A)) == (
        "pending_failure",
        "waiting_for_prs_behind",
        (B,),
    )
    story.tests_pass(B)
    assert story.landings() == ((A, B),)
    assert story.state_history(A) == ("not_ready", "pending", "testing", "pending_failure", "tests_passed", "merged")
    assert "successor_passed" in story.reasons(A)


def test_optimistic_with_depth_0_the_failed_pr_fails_and_the_next_is_tested_alone():
    story = Story(concurrency=3, can_optimistically_merge=True, pending_failure_depth=0)
    story.submit(A, B)
    story.tests_fail(A)
    assert story.state(A) == "failed"
    assert story.queue_text() == "main ← 2…"
    assert story.runs() == ((B,),)


def four_in_lanes() -> Story:
    story = Story(mode=Mode.PARALLEL, concurrency=5)
    story.impacts(A, "fe")
    story.impacts(B, "be")
    story.impacts(C, "fe", "be")
    story.impacts(D, "docs")
    story.submit(A, B, C, D)
    return story


def test_parallel_only_a_pr_that_shares_targets_is_stacked_on_others():
    story = four_in_lanes()
    assert story.queue_text() == "main ← 1… ∥ main ← 2… ∥ 1, 2 ← 3… ∥ main ← 4…"
    assert set(story.runs()) == {(A,), (B,), (A, B, C), (D,)}
    assert story.prs_ahead(C) == (A, B)
    assert story.prs_ahead(D) == ()


def test_parallel_when_one_of_two_fails_the_pr_on_top_of_both_is_tested_again_on_the_other_only():
    story = four_in_lanes()
    untouched = story.run_of(B).id, story.run_of(D).id
    story.tests_fail(A)
    assert story.state(A) == "failed"
    assert story.queue_text() == "main ← 2… ∥ 2 ← 3… ∥ main ← 4…"
    assert story.prs_ahead(C) == (B,)
    assert (story.run_of(B).id, story.run_of(D).id) == untouched
    story.tests_pass_until_the_end()
    assert set(story.merged_prs()) == {B, C, D}


def two_in_lanes_and_two_across(concurrency: int) -> Story:
    story = Story(mode=Mode.PARALLEL, concurrency=concurrency, batch=2, batching_max_wait_time_minutes=5)
    story.impacts(A, "x")
    story.impacts(B, "y")
    story.impacts(C, "x", "y")
    story.impacts(D, "x", "y")
    return story


def test_parallel_batches_never_wait_for_each_other_in_a_circle():
    story = two_in_lanes_and_two_across(concurrency=5)
    story.submit(A, B, C, D)
    assert story.queue_text() == "main"
    story.pass_minutes(5)
    assert {(A, C), (B, D)}.isdisjoint(story.batches())
    story.tests_pass_until_the_end()
    assert sorted(story.merged_prs()) == [A, B, C, D]


def test_parallel_the_two_across_go_together_behind_the_two_in_lanes():
    story = two_in_lanes_and_two_across(concurrency=2)
    story.submit(A, B)
    story.pass_minutes(5)
    story.submit(C, D)
    assert story.queue_text() == "main ← 1… ∥ main ← 2…"
    story.tests_pass(A)
    assert story.queue_text() == "main ← 2… ∥ 2 ← 3+4…"


def a_failed_batch_of_four(budget: int) -> Story:
    story = Story(batch=4, bisection_concurrency=budget)
    story.submit(1, 2, 3, 4)
    assert story.queue_text() == "main ← 1+2+3+4…"
    story.tests_fail(1, 2, 3, 4)
    return story


def test_bisection_with_a_budget_of_2_finds_the_third_of_four_in_one_round():
    story = a_failed_batch_of_four(budget=2)
    assert story.queue_text() == "main ⋔ 1+2+3+4 : 1+2… 1+2+3…"
    assert story.bisection_runs() == ((1, 2), (1, 2, 3))
    story.tests_fail(1, 2, 3)
    assert story.state(4) == "testing"
    assert story.runs() == ((4,),)
    story.tests_pass(1, 2)
    assert story.reasons(1)[-2:] == ("bisection_passed", "test_run_started")
    assert story.queue_text() == "main ← 4… ← 1+2… ⋔ 3"
    assert (story.state(3), story.wait_reason(3), story.waiting_for(3)) == (
        "pending_failure",
        "waiting_for_prs_ahead",
        (1, 2),
    )


def test_bisection_passed_members_merge_as_one_batch_and_then_the_suspect_fails_naming_them():
    story = a_failed_batch_of_four(budget=2)
    story.tests_fail(1, 2, 3)
    story.tests_pass(1, 2)
    story.tests_pass(4)
    assert story.merged_prs() == (4,)
    story.tests_pass(1, 2)
    assert story.landings() == ((4,), (1, 2))
    assert story.queue_text() == "main ⋔ 3 : 3…"
    story.tests_fail(3)
    assert (story.state(3), story.reason(3), story.failed_on(3)) == ("failed", "test_run_failed", (1, 2))
    assert story.queue_text() == "main"


def test_bisection_with_a_budget_of_3_needs_one_round():
    story = a_failed_batch_of_four(budget=3)
    assert story.queue_text() == "main ⋔ 1+2+3+4 : 1… 1+2… 1+2+3…"
    story.tests_fail(1, 2, 3)
    story.tests_pass(1, 2)
    assert story.bisection_runs() == ()
    assert story.waiting_for(3) == (1, 2)


def test_bisection_of_two_the_first_passes_so_the_second_is_the_suspect():
    story = Story(batch=2)
    story.submit(1, 2)
    story.tests_fail(1, 2)
    assert story.queue_text() == "main ⋔ 1+2 : 1…"
    story.tests_pass(1)
    assert story.merged_prs() == (1,)
    story.tests_fail(2)
    assert (story.state(2), story.failed_on(2)) == ("failed", (1,))


def test_of_a_pair_that_only_fails_together_the_first_merges_and_the_second_fails_naming_it():
    story = Story(concurrency=2)
    story.submit(A, B)
    story.tests_fail(B)
    story.tests_pass(A)
    assert story.merged_prs() == (A,)
    assert (story.state(B), story.failed_on(B)) == ("failed", (A,))


def test_a_pair_that_only_fails_together_is_also_found_in_a_batch():
    story = Story(batch=2)
    story.submit(A, B)
    story.tests_fail(A, B)
    story.tests_pass(A)
    story.tests_fail(B)
    assert story.merged_prs() == (A,)
    assert (story.state(B), story.failed_on(B)) == ("failed", (A,))


def test_one_pr_waits_for_its_batch_and_the_second_starts_it_at_once():
    story = Story(batch=2, batching_max_wait_time_minutes=5)
    story.submit(1)
    assert story.queue_text() == "main"
    assert (story.state(1), story.wait_reason(1)) == ("pending", "waiting_for_batch")
    story.submit(2)
    assert story.queue_text() == "main ← 1+2…"
    assert story.runs() == ((1, 2),)


def test_a_third_alone_starts_when_it_has_waited_five_minutes():
    story = Story(batch=2, batching_max_wait_time_minutes=5)
    story.submit(1, 2)
    story.submit(3)
    assert story.queue_text() == "main ← 1+2…"
    story.pass_minutes(4)
    assert story.queue_text() == "main ← 1+2…"
    story.pass_minutes(1)
    assert story.queue_text() == "main ← 1+2… ← 3…"


def test_a_leaked_secret_that_was_removed_from_the_target_branch_never_comes_back():
    story = Story()
    clean = story.tip()
    story.submit(A)
    story.tests_pass(A)
    leak = story.tip()
    story.open_from(leak, B)
    story.rewind(clean)
    story.submit(B)
    assert (story.state(B), story.reason(B)) == ("failed", "contains_removed_commit")
    assert story.tip() == clean
