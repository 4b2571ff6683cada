"""The worked examples of the engine's rules, each told as a story. A, B, C and D are pull requests 1, 2, 3 and 4."""

from itertools import permutations

import pytest

from mergeyard.domain.config import Mode
from tests.support.story import Story

A, B, C, D = 1, 2, 3, 4


def test_three_prs_are_tested_together_each_upon_those_ahead():
    story = Story(concurrency=3)
    story.submit(A, B, C)
    assert story.picture() == "main ← 1… ← 2… ← 3…"
    assert story.runs() == ((A,), (A, B), (A, B, C))
    assert story.states(A, B, C) == ("testing", "testing", "testing")


@pytest.mark.parametrize("order", list(permutations((A, B, C))), ids=str)
def test_green_prs_merge_in_their_order_whatever_order_their_results_come_in(order: tuple[int, ...]):
    story = Story(concurrency=3)
    story.submit(A, B, C)
    for number in order:
        story.tests_pass(number)
    assert story.merged() == (A, B, C)
    assert story.picture() == "main"


def test_prs_that_are_green_at_once_land_in_one_update():
    story = Story(concurrency=3)
    story.submit(A, B, C)
    story.all_tests_pass()
    assert story.landings() == ((A, B, C),)
    assert story.states(A, B, C) == ("merged", "merged", "merged")


def test_the_first_fails_and_leaves_and_those_behind_are_tested_again_without_it():
    story = Story(concurrency=3)
    story.submit(A, B, C)
    story.tests_fail(A)
    assert story.picture() == "main ← 2… ← 3…"
    assert (story.state(A), story.reason(A), story.failed_upon(A)) == ("failed", "test_run_failed", ())
    assert story.runs() == ((B,), (B, C))
    story.tests_pass(B)
    story.tests_pass(C)
    assert story.merged() == (B, C)


def test_the_second_fails_while_the_first_runs_and_is_judged_when_that_one_merged():
    story = Story(concurrency=3)
    story.submit(A, B, C)
    story.tests_fail(B)
    assert story.picture() == "main ← 1… ← 2✗ ← 3…"
    assert (story.state(B), story.reason(B)) == ("pending_failure", "test_run_failed")
    assert (story.waiting(B), story.waiting_for(B)) == ("waiting_for_prs_ahead", (A,))
    story.tests_pass(A)
    assert story.state(A) == "merged"
    assert (story.state(B), story.failed_upon(B)) == ("failed", (A,))
    assert story.picture() == "main ← 3…"
    assert story.runs() == ((C,),)
    story.tests_pass(C)
    assert story.landings() == ((A,), (C,))


def test_the_second_fails_and_then_the_first_so_the_second_is_tested_again_before_anyone_blames_it():
    story = Story(concurrency=3)
    story.submit(A, B, C)
    story.tests_fail(B)
    story.tests_fail(A)
    assert story.state(A) == "failed"
    assert story.picture() == "main ← 2… ← 3…"
    assert story.runs() == ((B,), (B, C))
    assert story.past(B)[-3:] == ("pending_failure", "pending", "testing")
    assert "prerequisite_removed" in story.reasons(B)
    story.tests_pass(B)
    assert story.state(B) == "merged"


def test_a_red_pr_on_a_base_that_nobody_has_seen_green_waits_for_a_bare_run():
    story = Story.on_an_unseen_base(concurrency=3)
    story.submit(A)
    story.tests_fail(A)
    assert story.picture() == "main ← 1✗ ?"
    assert (story.state(A), story.waiting(A)) == ("pending_failure", "waiting_for_base")
    assert story.bare_runs() == 1
    assert story.shows_bare_run(A)


def test_the_bare_run_is_green_so_the_red_pr_failed():
    story = Story.on_an_unseen_base(concurrency=3)
    story.submit(A)
    story.tests_fail(A)
    story.tests_pass()
    assert (story.state(A), story.reason(A)) == ("failed", "test_run_failed")
    assert story.picture() == "main"


def test_the_bare_run_is_red_so_nobody_fails_and_a_pr_that_repairs_the_base_still_merges():
    story = Story.on_an_unseen_base(concurrency=3)
    story.submit(A)
    story.tests_fail(A)
    story.tests_fail()
    assert (story.state(A), story.waiting(A)) == ("pending", "base_broken")
    assert story.picture() == "main"
    story.submit(B)
    assert story.runs() == ((B,),)
    story.tests_pass(B)
    assert story.state(B) == "merged"
    assert story.picture() == "main ← 1…"
    story.tests_pass(A)
    assert story.landings() == ((B,), (A,))


def test_optimistic_with_depth_1_a_green_successor_takes_the_red_one_along_in_one_update():
    story = Story(concurrency=3, can_optimistically_merge=True, pending_failure_depth=1)
    story.submit(A, B)
    story.tests_fail(A)
    assert story.picture() == "main ← 1✗ ← 2…"
    assert (story.state(A), story.waiting(A), story.waiting_for(A)) == (
        "pending_failure",
        "waiting_for_prs_behind",
        (B,),
    )
    story.tests_pass(B)
    assert story.landings() == ((A, B),)
    assert story.past(A) == ("not_ready", "pending", "testing", "pending_failure", "tests_passed", "merged")
    assert "successor_passed" in story.reasons(A)


def test_optimistic_with_depth_0_the_red_one_fails_and_the_next_is_tested_alone():
    story = Story(concurrency=3, can_optimistically_merge=True, pending_failure_depth=0)
    story.submit(A, B)
    story.tests_fail(A)
    assert story.state(A) == "failed"
    assert story.picture() == "main ← 2…"
    assert story.runs() == ((B,),)


def four_in_lanes() -> Story:
    story = Story(mode=Mode.PARALLEL, concurrency=5)
    story.impacts(A, "fe")
    story.impacts(B, "be")
    story.impacts(C, "fe", "be")
    story.impacts(D, "docs")
    story.submit(A, B, C, D)
    return story


def test_parallel_only_the_one_that_shares_targets_stands_upon_others():
    story = four_in_lanes()
    assert story.picture() == "main ← 1… ∥ main ← 2… ∥ 1, 2 ← 3… ∥ main ← 4…"
    assert set(story.runs()) == {(A,), (B,), (A, B, C), (D,)}
    assert story.dependent_prs(C) == (A, B)
    assert story.dependent_prs(D) == ()


def test_parallel_when_one_of_two_fails_the_one_upon_both_is_tested_again_upon_the_other_only():
    story = four_in_lanes()
    untouched = story.run_of(B).id, story.run_of(D).id
    story.tests_fail(A)
    assert story.state(A) == "failed"
    assert story.picture() == "main ← 2… ∥ 2 ← 3… ∥ main ← 4…"
    assert story.dependent_prs(C) == (B,)
    assert (story.run_of(B).id, story.run_of(D).id) == untouched
    story.tests_pass_until_the_end()
    assert set(story.merged()) == {B, C, D}


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
    assert story.picture() == "main"
    story.pass_minutes(5)
    assert {(A, C), (B, D)}.isdisjoint(story.batches())
    story.tests_pass_until_the_end()
    assert sorted(story.merged()) == [A, B, C, D]


def test_parallel_the_two_across_go_together_behind_the_two_in_lanes():
    story = two_in_lanes_and_two_across(concurrency=2)
    story.submit(A, B)
    story.pass_minutes(5)
    story.submit(C, D)
    assert story.picture() == "main ← 1… ∥ main ← 2…"
    story.tests_pass(A)
    assert story.picture() == "main ← 2… ∥ 2 ← 3+4…"


def a_red_batch_of_four(budget: int) -> Story:
    story = Story(batch=4, bisection_concurrency=budget)
    story.submit(1, 2, 3, 4)
    assert story.picture() == "main ← 1+2+3+4…"
    story.tests_fail(1, 2, 3, 4)
    return story


def test_bisection_with_a_budget_of_2_finds_the_third_of_four_in_one_round():
    story = a_red_batch_of_four(budget=2)
    assert story.picture() == "main ⋔ 1+2+3+4 : 1+2… 1+2+3…"
    assert story.probes() == ((1, 2), (1, 2, 3))
    story.tests_fail(1, 2, 3)
    assert story.state(4) == "testing"
    assert story.runs() == ((4,),)
    story.tests_pass(1, 2)
    assert story.reasons(1)[-2:] == ("bisection_passed", "test_run_started")
    assert story.picture() == "main ← 4… ← 1+2… ⋔ 3"
    assert (story.state(3), story.waiting(3), story.waiting_for(3)) == (
        "pending_failure",
        "waiting_for_prs_ahead",
        (1, 2),
    )


def test_bisection_the_good_merge_as_one_batch_and_then_the_suspect_fails_naming_them():
    story = a_red_batch_of_four(budget=2)
    story.tests_fail(1, 2, 3)
    story.tests_pass(1, 2)
    story.tests_pass(4)
    assert story.merged() == (4,)
    story.tests_pass(1, 2)
    assert story.landings() == ((4,), (1, 2))
    assert story.picture() == "main ⋔ 3 : 3…"
    story.tests_fail(3)
    assert (story.state(3), story.reason(3), story.failed_upon(3)) == ("failed", "test_run_failed", (1, 2))
    assert story.picture() == "main"


def test_bisection_with_a_budget_of_3_needs_one_round():
    story = a_red_batch_of_four(budget=3)
    assert story.picture() == "main ⋔ 1+2+3+4 : 1… 1+2… 1+2+3…"
    story.tests_fail(1, 2, 3)
    story.tests_pass(1, 2)
    assert story.probes() == ()
    assert story.waiting_for(3) == (1, 2)


def test_bisection_of_two_the_first_is_green_so_the_second_is_the_suspect():
    story = Story(batch=2)
    story.submit(1, 2)
    story.tests_fail(1, 2)
    assert story.picture() == "main ⋔ 1+2 : 1…"
    story.tests_pass(1)
    assert story.merged() == (1,)
    story.tests_fail(2)
    assert (story.state(2), story.failed_upon(2)) == ("failed", (1,))


def test_a_pair_that_is_green_apart_and_red_together_merges_the_first_and_fails_the_second_naming_it():
    story = Story(concurrency=2)
    story.submit(A, B)
    story.tests_fail(B)
    story.tests_pass(A)
    assert story.merged() == (A,)
    assert (story.state(B), story.failed_upon(B)) == ("failed", (A,))


def test_a_pair_that_is_red_together_is_found_out_in_a_batch_too():
    story = Story(batch=2)
    story.submit(A, B)
    story.tests_fail(A, B)
    story.tests_pass(A)
    story.tests_fail(B)
    assert story.merged() == (A,)
    assert (story.state(B), story.failed_upon(B)) == ("failed", (A,))


def test_one_pr_waits_for_its_batch_and_the_second_starts_it_at_once():
    story = Story(batch=2, batching_max_wait_time_minutes=5)
    story.submit(1)
    assert story.picture() == "main"
    assert (story.state(1), story.waiting(1)) == ("pending", "waiting_for_batch")
    story.submit(2)
    assert story.picture() == "main ← 1+2…"
    assert story.runs() == ((1, 2),)


def test_a_third_alone_starts_when_it_has_waited_five_minutes():
    story = Story(batch=2, batching_max_wait_time_minutes=5)
    story.submit(1, 2)
    story.submit(3)
    assert story.picture() == "main ← 1+2…"
    story.pass_minutes(4)
    assert story.picture() == "main ← 1+2…"
    story.pass_minutes(1)
    assert story.picture() == "main ← 1+2… ← 3…"


def test_a_leaked_secret_that_was_taken_off_the_target_never_comes_back():
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
