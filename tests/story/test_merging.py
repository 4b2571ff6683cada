"""Landing: all passed PRs at the front in one update, read again, by compare-and-swap, with the intent saved first."""

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import Sha
from mergeyard.domain.states import CheckState, Mergeability
from tests.support.story import Story


def a_chosen_landing(*numbers: int) -> Story:
    """They passed and are read again before the intent is saved."""
    story = Story()
    story.withhold(t.ReadPullRequests)
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


def test_the_last_passed_pr_lands_with_all_prs_ahead_of_it():
    story = Story()
    story.submit(1, 2, 3)
    story.tests_pass(2)
    assert story.merged_prs() == ()
    story.tests_pass(1)
    assert story.landings() == ((1, 2),)
    assert story.queue_text() == "main ← 3…"


def test_no_pr_lands_before_the_prs_ahead_have_passed():
    story = Story()
    story.submit(1, 2, 3)
    story.tests_pass(2)
    story.tests_pass(3)
    assert story.queue_text() == "main ← 1… ← 2✓ ← 3✓"
    assert story.merged_prs() == ()


def test_the_landed_commit_is_the_tested_commit():
    story = Story()
    story.submit(1, 2)
    tested = story.run_of(2).tip
    story.all_tests_pass()
    assert story.tip() == tested


def test_a_landing_does_not_disturb_the_runs_behind_it():
    story = Story()
    story.submit(1, 2)
    behind = story.run_of(2).id
    story.tests_pass(1)
    assert story.run_of(2).id == behind
    story.tests_pass(2)
    assert story.landings() == ((1,), (2,))


def test_test_branches_are_deleted_at_the_end():
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
    assert story.merged_prs() == ()


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
    assert (story.state(1), story.wait_reason(1)) == ("tests_passed", "queue_paused")
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


def test_changes_of_a_pull_request_wait_for_the_outcome_of_its_landing():
    story = an_intended_landing(1)
    story.push(1)
    story.close(1)
    assert story.state(1) == "tests_passed"
    story.stop_withholding()
    assert story.state(1) == "merged"


def test_changes_of_the_target_branch_wait_for_the_outcome_of_a_landing():
    story = an_intended_landing(1)
    story.submit(2)
    story.external_push()
    assert story.state(1) == "tests_passed"
    assert story.count_pending(t.ReadTargetBranch) == 0
    story.stop_withholding()
    assert story.states(1, 2) == ("testing", "testing")


def test_more_required_statuses_wait_for_the_outcome():
    story = an_intended_landing(1)
    story.settings(required_statuses=("unit", "lint"))
    assert story.state(1) == "tests_passed"
    story.stop_withholding()
    assert story.state(1) == "merged"


def test_switching_optimistic_merging_off_waits_for_the_outcome():
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
    assert (story.wait_reason(2), story.waiting_for(2)) == ("waiting_for_prs_ahead", (1,))
    story.stop_withholding()
    assert story.landings() == ((1,), (2,))


def test_a_push_whose_reply_is_lost_is_found_and_not_repeated():
    story = an_intended_landing(1)
    story.perform_and_lose_result(t.Land)
    assert story.state(1) == "tests_passed"
    story.stop_withholding()
    assert story.state(1) == "merged"
    assert story.landings() == ((1,),)


# Read again before the intent.


def test_a_pr_with_an_unreported_push_is_cancelled_instead_of_landing():
    story = a_chosen_landing(1)
    story.push_without_event(1)
    story.stop_withholding()
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_pushed")
    assert story.merged_prs() == ()


def test_a_pr_with_an_unreported_close_is_cancelled_and_the_next_is_tested_again():
    story = a_chosen_landing(1, 2)
    story.change_without_event(1, is_open=False)
    story.stop_withholding()
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_closed")
    assert story.queue_text() == "main ← 2…"


def test_a_pr_with_an_unreported_conversion_to_draft_is_cancelled():
    story = a_chosen_landing(1)
    story.change_without_event(1, draft=True)
    story.stop_withholding()
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_converted_to_draft")


def test_a_pr_with_an_unreported_base_change_is_cancelled():
    story = a_chosen_landing(1)
    story.change_without_event(1, base_branch="release")
    story.stop_withholding()
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_base_changed")


def test_a_pr_that_is_no_longer_mergeable_becomes_not_ready_and_can_return():
    story = a_chosen_landing(1, 2)
    story.change_without_event(1, mergeability=Mergeability.NOT_MERGEABLE)
    story.stop_withholding()
    assert (story.state(1), story.reason(1), story.wait_reason(1)) == (
        "not_ready",
        "no_longer_mergeable",
        "not_mergeable",
    )
    assert story.queue_text() == "main ← 2…"
    story.set_mergeability(1, Mergeability.MERGEABLE)
    assert story.queue_text() == "main ← 2… ← 1…"


def test_a_forced_pr_lands_whatever_the_host_says_of_its_mergeability():
    story = Story()
    story.submit(1, forced=True)
    story.change_without_event(1, mergeability=Mergeability.NOT_MERGEABLE)
    story.tests_pass(1)
    assert story.state(1) == "merged"


def test_while_the_host_does_not_know_the_mergeability_the_landing_waits():
    story = Story()
    story.submit(1)
    story.change_without_event(1, mergeability=Mergeability.UNKNOWN)
    story.tests_pass(1)
    assert story.state(1) == "tests_passed"
    story.set_mergeability(1, Mergeability.MERGEABLE)
    assert story.state(1) == "merged"


# The host's response.


def test_after_an_unreported_move_of_the_target_branch_nothing_lands_and_all_prs_are_tested_again():
    story = Story()
    story.submit(1, 2)
    story.external_push_without_event()
    foreign = story.tip()
    story.tests_pass(1)
    assert story.tip() == foreign
    assert story.queue_text() == "main ← 1… ← 2…"
    assert story.reasons(1)[-2:] == ("target_branch_moved", "test_run_started")
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (1, 2)


def test_a_refused_push_pauses_the_queue_with_the_host_s_message_and_fails_no_pr():
    story = an_intended_landing(1, 2)
    story.refuse_push("main is frozen")
    assert story.queue_state() == "PAUSED"
    assert story.queue.state_reason == "main is frozen"
    assert story.states(1, 2) == ("tests_passed", "tests_passed")
    story.resume()
    story.stop_withholding()
    assert story.landings() == ((1, 2),)


def test_a_push_that_is_refused_in_a_paused_queue_still_shows_the_host_s_message():
    story = an_intended_landing(1)
    story.pause()
    story.refuse_push("main is frozen")
    assert (story.queue_state(), story.queue.state_reason) == ("PAUSED", "main is frozen")


def test_a_pr_with_an_unknown_landing_outcome_is_never_landed_again():
    story = an_intended_landing(1, 2)
    story.submit(3)
    story.delete_test_branch(2)
    story.stop_withholding()
    assert story.states(1, 2) == ("cancelled", "cancelled")
    assert story.reason(1) == "landing_unknown"
    assert story.merged_prs() == ()
    assert story.queue_text() == "main ← 3…"


def test_a_landed_tree_that_is_not_the_tested_one_is_merged_and_pauses_the_queue():
    story = an_intended_landing(1)
    landing = story.queue.landing
    assert landing is not None
    steps = (replace(landing.steps[0], tree=Sha("another")),)
    story.world.apply(e.LandingSucceeded(landing=landing.number, steps=steps))
    assert (story.state(1), story.reason(1)) == ("merged", "tree_mismatch")
    assert story.queue_state() == "PAUSED"


def test_a_result_of_an_earlier_landing_changes_nothing():
    story = an_intended_landing(1)
    landing = story.queue.landing
    assert landing is not None
    story.refuse_push("not now")
    story.resume()
    story.world.apply(e.LandingSucceeded(landing=landing.number, steps=landing.steps))
    assert story.state(1) == "tests_passed"
    assert story.count_pending(t.Land) == 1


def test_nothing_lands_while_a_read_of_the_target_branch_is_pending():
    story = Story()
    story.withhold(t.ReadTargetBranch)
    story.submit(1)
    story.external_push()
    story.tests_pass(1)
    assert story.state(1) == "tests_passed"
    assert story.count_pending(t.Land) == 0
    story.stop_withholding()
    assert story.state(1) == "testing"


def test_a_late_failure_after_the_run_passed_does_not_prevent_landing():
    story = a_chosen_landing(1)
    run = next(iter(story.queue.runs.values()))
    story.late_result(run, CheckState.FAILED)
    story.stop_withholding()
    assert story.state(1) == "merged"


def test_prs_that_pass_while_a_landing_is_read_land_together_in_the_next_one():
    story = Story()
    story.submit(1, 2, 3)
    story.withhold_landings()
    for number in (1, 2, 3):
        story.tests_pass(number)
    story.stop_withholding()
    assert story.landings() == ((1,), (2, 3))
