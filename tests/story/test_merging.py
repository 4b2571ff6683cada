"""Landing: the furthest that passed, in one update, read fresh, by compare and swap, with the intent saved first."""

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import Sha
from mergeyard.domain.states import CheckState, Mergeability
from tests.support.story import Story


def a_chosen_landing(*numbers: int) -> Story:
    """They passed and are to be read once more before the intent is saved."""
    story = Story()
    story.withhold(t.ReadPulls)
    story.submit(*numbers)
    story.all_tests_pass()
    return story


def an_intended_landing(*numbers: int) -> Story:
    """The intent is saved, and the push has not been made."""
    story = Story()
    story.withhold(t.Land)
    story.submit(*numbers)
    story.all_tests_pass()
    return story


def test_the_furthest_that_passed_lands_with_everything_beneath_it():
    story = Story()
    story.submit(1, 2, 3)
    story.tests_pass(2)
    assert story.merged() == ()
    story.tests_pass(1)
    assert story.landings() == ((1, 2),)
    assert story.picture() == "main ← 3…"


def test_nothing_lands_over_one_that_has_not_passed():
    story = Story()
    story.submit(1, 2, 3)
    story.tests_pass(2)
    story.tests_pass(3)
    assert story.picture() == "main ← 1… ← 2✓ ← 3✓"
    assert story.merged() == ()


def test_what_lands_is_the_very_commit_that_was_tested():
    story = Story()
    story.submit(1, 2)
    tested = story.run_of(2).tip
    story.all_tests_pass()
    assert story.tip() == tested


def test_what_landed_leaves_the_runs_behind_it_alone():
    story = Story()
    story.submit(1, 2)
    behind = story.run_of(2).id
    story.tests_pass(1)
    assert story.run_of(2).id == behind
    story.tests_pass(2)
    assert story.landings() == ((1,), (2,))


def test_the_test_branches_are_gone_when_all_is_over():
    story = Story()
    story.submit(1, 2, 3)
    story.tests_fail(3)
    story.all_tests_pass()
    assert list(story.world.repository.refs) == ["main"]


# Intent.


def test_before_the_intent_a_cancel_needs_no_host_and_is_final():
    story = a_chosen_landing(1)
    assert story.cancel(1) is None
    story.stop_withholding()
    assert story.state(1) == "cancelled"
    assert story.merged() == ()


def test_from_intent_to_outcome_a_cancel_is_refused():
    story = an_intended_landing(1, 2)
    assert story.cancel(1) == "merge_in_progress"
    assert story.cancel(2) == "merge_in_progress"
    story.stop_withholding()
    assert story.landings() == ((1, 2),)


def test_before_the_intent_a_pause_keeps_everything_from_landing():
    story = a_chosen_landing(1)
    story.pause()
    story.stop_withholding()
    assert (story.state(1), story.waiting(1)) == ("tests_passed", "queue_paused")
    story.resume()
    assert story.state(1) == "merged"


def test_what_was_intended_before_a_pause_is_finished_and_nothing_more():
    story = an_intended_landing(1)
    story.submit(2)
    story.pause()
    story.stop_withholding()
    assert story.state(1) == "merged"
    story.tests_pass(2)
    assert story.state(2) == "tests_passed"


def test_news_of_a_pull_request_wait_for_the_outcome():
    story = an_intended_landing(1)
    story.push(1)
    story.close(1)
    assert story.state(1) == "tests_passed"
    story.stop_withholding()
    assert story.state(1) == "merged"


def test_news_of_the_target_wait_for_the_outcome():
    story = an_intended_landing(1)
    story.submit(2)
    story.foreign_push()
    assert story.state(1) == "tests_passed"
    assert story.outstanding(t.LookAtTarget) == 0
    story.stop_withholding()
    assert story.states(1, 2) == ("testing", "testing")


def test_more_required_statuses_wait_for_the_outcome():
    story = an_intended_landing(1)
    story.settings(required_statuses=("unit", "lint"))
    assert story.state(1) == "tests_passed"
    story.stop_withholding()
    assert story.state(1) == "merged"


def test_switching_optimism_off_waits_for_the_outcome():
    story = Story(can_optimistically_merge=True, pending_failure_depth=1)
    story.withhold(t.Land)
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_pass(2)
    story.settings(can_optimistically_merge=False)
    story.stop_withholding()
    assert story.landings() == ((1, 2),)


def test_a_new_priority_waits_for_the_outcome():
    story = an_intended_landing(1)
    story.priority(1, 0)
    story.stop_withholding()
    assert story.state(1) == "merged"


def test_what_passes_during_a_landing_lands_next():
    story = Story()
    story.withhold(t.Land)
    story.submit(1, 2)
    story.tests_pass(1)
    story.tests_pass(2)
    assert (story.waiting(2), story.waiting_for(2)) == ("waiting_for_prs_ahead", (1,))
    story.stop_withholding()
    assert story.landings() == ((1,), (2,))


def test_a_push_whose_answer_is_lost_is_found_out_and_not_made_again():
    story = an_intended_landing(1)
    story.perform_and_lose_the_answer(t.Land)
    assert story.state(1) == "tests_passed"
    story.stop_withholding()
    assert story.state(1) == "merged"
    assert story.landings() == ((1,),)


# Read fresh before the intent.


def test_one_that_was_pushed_to_unheard_is_cancelled_instead_of_landing():
    story = a_chosen_landing(1)
    story.push_unheard(1)
    story.stop_withholding()
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_pushed")
    assert story.merged() == ()


def test_one_that_was_closed_unheard_is_cancelled_and_the_next_tested_again():
    story = a_chosen_landing(1, 2)
    story.change_unheard(1, is_open=False)
    story.stop_withholding()
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_closed")
    assert story.picture() == "main ← 2…"


def test_one_that_became_a_draft_unheard_is_cancelled():
    story = a_chosen_landing(1)
    story.change_unheard(1, draft=True)
    story.stop_withholding()
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_converted_to_draft")


def test_one_that_was_retargeted_unheard_is_cancelled():
    story = a_chosen_landing(1)
    story.change_unheard(1, base="release")
    story.stop_withholding()
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_base_changed")


def test_one_that_is_no_longer_mergeable_goes_back_to_not_ready_and_comes_again():
    story = a_chosen_landing(1, 2)
    story.change_unheard(1, mergeability=Mergeability.NOT_MERGEABLE)
    story.stop_withholding()
    assert (story.state(1), story.reason(1), story.waiting(1)) == (
        "not_ready",
        "no_longer_mergeable",
        "not_mergeable",
    )
    assert story.picture() == "main ← 2…"
    story.mergeability(1, Mergeability.MERGEABLE)
    assert story.picture() == "main ← 2… ← 1…"


def test_a_forced_pr_lands_whatever_the_host_says_of_its_mergeability():
    story = Story()
    story.submit(1, forced=True)
    story.change_unheard(1, mergeability=Mergeability.NOT_MERGEABLE)
    story.tests_pass(1)
    assert story.state(1) == "merged"


def test_while_the_host_does_not_know_the_mergeability_the_landing_waits():
    story = Story()
    story.submit(1)
    story.change_unheard(1, mergeability=Mergeability.UNKNOWN)
    story.tests_pass(1)
    assert story.state(1) == "tests_passed"
    story.mergeability(1, Mergeability.MERGEABLE)
    assert story.state(1) == "merged"


# The host's answer.


def test_a_target_that_moved_unheard_is_left_as_it_is_and_everybody_is_tested_again():
    story = Story()
    story.submit(1, 2)
    story.foreign_push_unheard()
    foreign = story.tip()
    story.tests_pass(1)
    assert story.tip() == foreign
    assert story.picture() == "main ← 1… ← 2…"
    assert story.reasons(1)[-2:] == ("target_branch_moved", "test_run_started")
    story.tests_pass_until_the_end()
    assert story.merged() == (1, 2)


def test_a_refused_push_pauses_the_queue_with_the_host_s_words_and_fails_nobody():
    story = an_intended_landing(1, 2)
    story.refuse_the_push("main is frozen")
    assert story.queue_state() == "PAUSED"
    assert story.queue.words == "main is frozen"
    assert story.states(1, 2) == ("tests_passed", "tests_passed")
    story.resume()
    story.stop_withholding()
    assert story.landings() == ((1, 2),)


def test_a_push_that_is_refused_in_a_paused_queue_still_shows_the_host_s_words():
    story = an_intended_landing(1)
    story.pause()
    story.refuse_the_push("main is frozen")
    assert (story.queue_state(), story.queue.words) == ("PAUSED", "main is frozen")


def test_an_outcome_that_nobody_can_tell_is_never_landed_again_by_us():
    story = an_intended_landing(1, 2)
    story.submit(3)
    story.lose_test_branch(2)
    story.stop_withholding()
    assert story.states(1, 2) == ("cancelled", "cancelled")
    assert story.reason(1) == "landing_unknown"
    assert story.merged() == ()
    assert story.picture() == "main ← 3…"


def test_a_landed_tree_that_is_not_the_tested_one_is_merged_and_pauses_the_queue():
    story = an_intended_landing(1)
    landing = story.queue.landing
    assert landing is not None
    steps = (replace(landing.steps[0], tree=Sha("another")),)
    story.world.tell(e.LandingSucceeded(landing=landing.number, steps=steps))
    assert (story.state(1), story.reason(1)) == ("merged", "tree_mismatch")
    assert story.queue_state() == "PAUSED"


def test_an_answer_about_an_earlier_landing_changes_nothing():
    story = an_intended_landing(1)
    landing = story.queue.landing
    assert landing is not None
    story.refuse_the_push("not now")
    story.resume()
    story.world.tell(e.LandingSucceeded(landing=landing.number, steps=landing.steps))
    assert story.state(1) == "tests_passed"
    assert story.outstanding(t.Land) == 1


def test_nothing_lands_while_the_target_has_to_be_looked_at():
    story = Story()
    story.withhold(t.LookAtTarget)
    story.submit(1)
    story.foreign_push()
    story.tests_pass(1)
    assert story.state(1) == "tests_passed"
    assert story.outstanding(t.Land) == 0
    story.stop_withholding()
    assert story.state(1) == "testing"


def test_a_late_red_after_the_run_passed_keeps_nobody_from_landing():
    story = a_chosen_landing(1)
    run = next(iter(story.queue.runs.values()))
    story.late_result(run, CheckState.FAILED)
    story.stop_withholding()
    assert story.state(1) == "merged"


def test_a_landing_takes_along_what_passes_while_it_is_read_but_does_not_begin_anew_for_ever():
    story = Story()
    story.submit(1, 2, 3)
    story.withhold_landings()
    for number in (1, 2, 3):
        story.tests_pass(number)
    story.stop_withholding()
    assert story.landings() == ((1, 2), (3,))
