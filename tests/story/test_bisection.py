"""The search for the guilty one of a red batch: on its own base and budget, while the line flows on."""

from mergeyard.domain.config import Mode, OptimizationMode
from mergeyard.domain.states import CheckState
from tests.support.story import Story

SKIPPING = OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS


def a_red_batch(size: int, budget: int = 5) -> Story:
    story = Story(batch=size, bisection_concurrency=budget)
    story.submit(*range(1, size + 1))
    story.tests_fail(*range(1, size + 1))
    return story


def test_the_whole_batch_is_known_red_and_never_run_again():
    story = a_red_batch(3)
    assert story.picture() == "main ⋔ 1+2+3 : 1… 1+2…"
    assert story.probes() == ((1,), (1, 2))
    assert story.runs() == ()


def test_those_under_search_say_so():
    story = a_red_batch(3)
    assert story.states(1, 2, 3) == ("testing", "testing", "pending_failure")
    assert (story.waiting(3), story.waiting_for(3)) == ("bisection", (1, 2))
    assert story.past(1) == ("not_ready", "pending", "testing", "pending_failure", "pending", "testing")
    assert story.reasons(1)[-2:] == ("bisection", "test_run_started")


def test_a_budget_of_one_halves_the_unknown_part():
    story = a_red_batch(4, budget=1)
    assert story.probes() == ((1, 2),)
    story.tests_pass(1, 2)
    assert story.probes() == ((1, 2, 3),)
    story.tests_fail(1, 2, 3)
    assert story.picture() == "main ← 4… ⋔ 3 : 3…"
    assert story.merged() == (1, 2)


def test_prefixes_are_evenly_spaced_over_the_unknown_part():
    story = a_red_batch(9, budget=2)
    assert story.probes() == ((1, 2, 3), (1, 2, 3, 4, 5, 6))
    story.tests_fail(1, 2, 3, 4, 5, 6)
    assert story.probes()[0] == (1, 2, 3)
    story.tests_fail(1, 2, 3)
    assert set(story.probes()) == {(1,), (1, 2)}


def test_the_first_is_guilty_by_itself_and_fails_at_once():
    story = a_red_batch(3)
    story.tests_fail(1)
    assert (story.state(1), story.reason(1), story.failed_upon(1)) == ("failed", "test_run_failed", ())
    assert story.picture() == "main ← 2+3…"
    assert "bisection" in story.reasons(2)


def test_a_red_prefix_sends_back_those_behind_it():
    story = a_red_batch(4, budget=1)
    story.tests_fail(1, 2)
    assert story.picture() == "main ← 3+4… ⋔ 1+2 : 1…"


def test_the_line_flows_on_without_the_batch():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    assert story.picture() == "main ← 3+4… ⋔ 1+2 : 1…"
    assert story.runs() == ((3, 4),)
    story.tests_pass(3, 4)
    assert story.merged() == (3, 4)
    assert story.probes() == ((1,),)


def test_bisections_do_not_take_the_slots_of_the_line():
    story = Story(concurrency=1, batch=2)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    assert story.picture() == "main ← 3+4… ⋔ 1+2 : 1…"


def test_two_bisections_share_one_budget():
    story = Story(batch=2, bisection_concurrency=1, mode=Mode.PARALLEL)
    for number, name in ((1, "x"), (2, "x"), (3, "y"), (4, "y")):
        story.impacts(number, name)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    story.tests_fail(3, 4)
    assert story.probes() == ((1,),)
    assert story.waiting(3) == "waiting_for_slot"
    story.tests_fail(1)
    assert story.probes() == ((3,),)


# Alone on an unmoved target, the green prefix lands as it was tested.


def test_a_green_prefix_lands_as_tested_when_nothing_else_is_under_test():
    story = a_red_batch(2)
    verified = story.run_of(1).id
    story.tests_pass(1)
    assert story.landings() == ((1,),)
    assert story.submission(1).verified_by == verified
    assert story.runs() == ()


def test_a_green_prefix_goes_back_to_the_waiting_when_the_line_is_not_empty():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    story.tests_pass(1)
    assert story.picture() == "main ← 3+4… ← 1… ⋔ 2"
    assert story.reasons(1)[-2:] == ("bisection_passed", "test_run_started")
    assert story.merged() == ()


def test_a_green_prefix_goes_back_to_the_waiting_when_the_target_has_moved():
    story = a_red_batch(2)
    story.foreign_push()
    story.tests_pass(1)
    assert story.picture() == "main ← 1… ⋔ 2"
    assert story.merged() == ()


def test_a_bisection_stays_on_its_base_whatever_the_target_does():
    story = a_red_batch(3)
    probes = story.run_of(1).id, story.run_of(1, 2).id
    story.foreign_push()
    assert (story.run_of(1).id, story.run_of(1, 2).id) == probes
    story.tests_fail(1, 2)
    story.tests_pass(1)
    assert story.waiting_for(2) == (1,)


def test_the_good_go_back_together_without_newcomers():
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
    assert story.picture() == "main ← 1+2… ⋔ 3"


# The suspect.


def a_suspect_upon_two(mode: OptimizationMode) -> Story:
    """3 was red upon 1 and 2, which were green and wait for the line, where 4 and 5 are tested."""
    story = Story(batch=3, optimization_mode=mode)
    story.submit(1, 2, 3)
    story.submit(4, 5)
    story.pass_minutes(5)
    story.tests_fail(1, 2, 3)
    story.tests_pass(1, 2)
    return story


def test_the_suspect_waits_until_the_rest_of_its_prefix_has_merged():
    story = a_suspect_upon_two(SKIPPING)
    assert story.picture() == "main ← 4+5… ← 1+2… ⋔ 3"
    assert (story.state(3), story.waiting(3), story.waiting_for(3)) == (
        "pending_failure",
        "waiting_for_prs_ahead",
        (1, 2),
    )


def test_skipping_redundant_tests_the_suspect_fails_as_soon_as_they_merged_naming_them():
    story = a_suspect_upon_two(SKIPPING)
    story.tests_pass_until_the_end()
    assert story.merged() == (4, 5, 1, 2)
    assert (story.state(3), story.reason(3), story.failed_upon(3)) == ("failed", "failed_by_optimization", (1, 2))


def test_otherwise_the_suspect_fails_only_after_one_more_red_run_upon_them():
    story = a_suspect_upon_two(OptimizationMode.OFF)
    story.tests_pass(4, 5)
    story.tests_pass(1, 2)
    assert story.state(3) == "testing"
    assert story.probes() == ((3,),)
    story.tests_fail(3)
    assert (story.state(3), story.reason(3), story.failed_upon(3)) == ("failed", "test_run_failed", (1, 2))


def test_one_more_run_that_is_green_sends_the_suspect_back_and_it_merges():
    story = a_suspect_upon_two(OptimizationMode.OFF)
    story.tests_pass(4, 5)
    story.tests_pass(1, 2)
    story.tests_pass(3)
    assert story.reasons(3)[-2:] == ("bisection_passed", "test_run_started")
    assert story.picture() == "main ← 3…"
    story.tests_pass(3)
    assert story.state(3) == "merged"


def a_suspect_upon_a_merge_by_hand() -> Story:
    """2 was red upon 1, which somebody then merged onto a tip that nobody has tested."""
    story = a_red_batch(2)
    story.foreign_push()
    story.tests_pass(1)
    story.merge_by_hand(1)
    story.tests_fail(2)
    return story


def test_upon_a_tip_that_nobody_has_seen_green_the_suspect_waits_for_a_bare_run():
    story = a_suspect_upon_a_merge_by_hand()
    assert (story.state(2), story.waiting(2), story.bare_runs()) == ("pending_failure", "waiting_for_base", 1)
    assert story.shows_bare_run(2)
    story.tests_pass()
    assert (story.state(2), story.failed_upon(2)) == ("failed", (1,))


def test_upon_a_tip_that_is_red_by_itself_the_suspect_steps_aside():
    story = a_suspect_upon_a_merge_by_hand()
    story.tests_fail()
    assert (story.state(2), story.waiting(2)) == ("pending", "base_broken")
    story.foreign_push()
    assert story.picture() == "main ← 2…"


def test_the_suspect_goes_back_when_one_it_was_red_upon_leaves_otherwise():
    story = a_suspect_upon_two(SKIPPING)
    story.cancel(2)
    assert story.reasons(3)[-2:] == ("batchmate_removed", "test_run_started")
    assert story.picture() == "main ← 4+5… ← 1… ← 3…"


def test_the_suspect_goes_back_when_one_it_was_red_upon_fails():
    story = a_suspect_upon_two(SKIPPING)
    story.tests_pass(4, 5)
    story.tests_fail(1, 2)
    assert story.picture() == "main ⋔ 3 ⋔ 1+2 : 1…"
    story.tests_fail(1)
    assert story.state(1) == "failed"
    assert story.states(2, 3) == ("testing", "testing")


def test_the_suspect_is_cancelled_and_its_prefix_goes_on():
    story = a_suspect_upon_two(SKIPPING)
    runs = story.runs()
    story.cancel(3)
    assert story.picture() == "main ← 4+5… ← 1+2…"
    assert story.runs() == runs


# Somebody leaves, or the world moves, in the middle of the search.


def test_a_cancelled_member_makes_every_set_that_holds_it_unknown_and_the_rest_is_tested_again_together():
    story = a_red_batch(4)
    story.cancel(2)
    assert story.picture() == "main ← 1+3+4…"
    assert story.probes() == ()
    assert "batchmate_removed" in story.reasons(1)


def test_a_member_behind_the_red_prefix_leaves_and_the_search_goes_on():
    story = a_red_batch(4, budget=1)
    story.tests_fail(1, 2)
    story.cancel(4)
    assert story.probes() == ((1,),)
    assert story.picture() == "main ← 3… ⋔ 1+2 : 1…"


def test_a_member_that_is_pushed_to_is_cancelled_and_the_rest_is_tested_again():
    story = a_red_batch(3)
    story.push(3)
    assert (story.state(3), story.reason(3)) == ("cancelled", "pr_pushed")
    assert story.picture() == "main ← 1+2…"


def test_a_member_that_somebody_merges_by_hand_makes_the_rest_be_tested_again_upon_it():
    story = a_red_batch(3)
    story.merge_by_hand(1)
    assert (story.state(1), story.reason(1)) == ("merged", "merged_manually")
    assert story.picture() == "main ← 2+3…"


def test_one_that_was_found_good_and_merged_by_hand_counts_as_merged_for_the_suspect():
    story = a_suspect_upon_two(SKIPPING)
    story.merge_by_hand(1)
    assert story.waiting_for(3) == (2,)
    story.merge_by_hand(2)
    assert (story.state(3), story.failed_upon(3)) == ("failed", (1, 2))


def test_restarting_a_member_ends_the_search_and_tests_the_rest_again_together():
    story = a_red_batch(3)
    assert story.restart(2) is None
    assert story.picture() == "main ← 1+2+3…"
    assert "tests_restarted" in story.reasons(2)


def test_a_red_probe_is_run_again_as_often_as_any_run():
    story = Story(batch=2, test_retries=1)
    story.submit(1, 2)
    story.tests_fail(1, 2)
    story.tests_fail(1, 2)
    assert story.picture() == "main ⋔ 1+2 : 1…"
    story.tests_fail(1)
    assert story.states(1, 2) == ("testing", "pending_failure")
    story.tests_pass(1)
    assert story.merged() == (1,)


def test_a_batch_behind_others_is_searched_upon_them_when_they_have_merged():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4)
    story.tests_fail(3, 4)
    assert story.picture() == "main ← 1+2… ← 3+4✗"
    story.tests_pass(1, 2)
    assert story.picture() == "main ⋔ 3+4 : 3…"
    story.tests_pass(3)
    assert story.landings() == ((1, 2), (3,))


def test_results_of_a_search_that_was_given_up_change_nothing():
    story = a_red_batch(3)
    probe = story.run_of(1)
    story.cancel(3)
    story.late_result(probe, CheckState.FAILED)
    assert story.picture() == "main ← 1+2…"
    assert story.state(1) == "testing"


def test_what_went_red_in_a_search_while_the_queue_was_paused_is_tested_again():
    story = a_red_batch(3)
    story.pause()
    story.tests_fail(1)
    assert story.state(1) != "failed"
    story.resume()
    assert story.probes() == ((1, 2), (1,))
    story.tests_pass(1)
    assert story.merged() == (1,)


def a_suspect_under_its_last_test(retries: int) -> Story:
    """2 was red upon 1, which has merged since."""
    story = Story(batch=2, test_retries=retries)
    story.submit(1, 2)
    for _ in range(retries + 1):
        story.tests_fail(1, 2)
    story.tests_pass(1)
    assert story.merged() == (1,)
    assert story.picture() == "main ⋔ 2 : 2…"
    return story


def test_the_suspect_s_last_test_is_run_again_as_often_as_any_run():
    story = a_suspect_under_its_last_test(retries=1)
    story.tests_fail(2)
    assert story.state(2) == "testing"
    story.tests_fail(2)
    assert (story.state(2), story.failed_upon(2)) == ("failed", (1,))


def test_the_suspect_s_last_test_that_went_red_in_a_pause_is_run_again():
    story = a_suspect_under_its_last_test(retries=0)
    story.pause()
    story.tests_fail(2)
    assert story.state(2) == "pending_failure"
    story.resume()
    assert story.state(2) == "testing"
    story.tests_fail(2)
    assert story.state(2) == "failed"


def test_the_suspect_s_last_test_waits_for_the_budget_of_bisections():
    story = Story(mode=Mode.PARALLEL, batch=2, bisection_concurrency=1)
    for number, name in ((1, "x"), (2, "x"), (3, "y"), (4, "y")):
        story.impacts(number, name)
    story.submit(1, 2, 3, 4)
    story.tests_fail(1, 2)
    story.tests_fail(3, 4)
    story.tests_pass(1)
    assert story.probes() == ((3,),)
    story.tests_pass(1)
    assert (story.state(2), story.waiting(2)) == ("pending_failure", "waiting_for_slot")
    story.tests_fail(3)
    assert story.probes() == ((2,),)


def test_no_search_begins_when_nothing_is_required_any_more_since_nothing_merges_untested():
    story = Story(batch=2)
    story.submit(1, 2)
    story.repository_requires()
    story.tests_fail(1, 2)
    assert story.probes() == ()
    assert story.states(1, 2) == ("failed", "failed")
    assert story.reason(1) == "no_required_statuses"


def test_a_suspect_that_conflicts_with_the_target_by_now_fails_for_that():
    story = Story(batch=2)
    story.open(2, {"shared": "two"})
    story.submit(1, 2)
    story.tests_fail(1, 2)
    story.foreign_push({"shared": "theirs"})
    story.tests_pass(1)
    story.tests_pass(1)
    assert (story.state(2), story.reason(2)) == ("failed", "merge_conflict")
