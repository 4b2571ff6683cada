"""Withdrawn approvals: a pull request merges only while it has the approvals that the Git host requires."""

from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod, Mode
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.journal import Cause
from mergeyard.domain.states import Reason
from tests.support.builders import a_requirement
from tests.support.story import Story


def approve(story: Story, number: int) -> None:
    approve_without_event(story, number)
    story.mark_dirty(number)


def withdraw(story: Story, number: int) -> None:
    withdraw_without_event(story, number)
    story.mark_dirty(number)


def approve_without_event(story: Story, number: int) -> None:
    story.change_without_event(number, requirements=(a_requirement(given=1),))


def withdraw_without_event(story: Story, number: int) -> None:
    story.change_without_event(number, requirements=(a_requirement(given=0),))


def a_story_with_approved_prs(count: int, **settings: object) -> Story:
    story = Story(**settings)  # pyright: ignore[reportArgumentType]
    for number in range(1, count + 1):
        story.open(number)
        approve_without_event(story, number)
    story.submit(*range(1, count + 1))
    return story


def test_a_pr_waits_for_its_approval_and_is_then_tested_and_merged():
    story = Story()
    story.open(1)
    withdraw_without_event(story, 1)
    story.submit(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "waiting_for_review")
    approve(story, 1)
    story.tests_pass(1)
    assert story.state(1) == "merged"


def test_an_approval_that_is_withdrawn_while_testing_stops_the_merge_until_it_is_given_again():
    story = a_story_with_approved_prs(1)
    withdraw(story, 1)
    assert (story.state(1), story.reason(1)) == ("not_ready", "waiting_for_review")
    assert story.runs() == ()
    approve(story, 1)
    assert story.runs() == ((1,),)
    assert story.landings() == ()
    story.tests_pass(1)
    assert story.landings() == ((1,),)
    assert story.reasons(1) == (
        "submitted",
        "ready",
        "test_run_started",
        "waiting_for_review",
        "ready",
        "test_run_started",
        "test_run_passed",
        "merged_by_queue",
    )


def test_a_withdrawal_that_no_event_reported_is_found_right_before_the_merge():
    story = a_story_with_approved_prs(1)
    withdraw_without_event(story, 1)
    story.tests_pass(1)
    assert (story.state(1), story.reason(1)) == ("not_ready", "waiting_for_review")
    assert story.landings() == ()


def test_a_withdrawal_between_the_last_read_and_the_push_comes_too_late():
    story = a_story_with_approved_prs(1)
    story.withhold(t.Land)
    story.tests_pass(1)
    withdraw(story, 1)
    story.stop_withholding()
    assert story.state(1) == "merged"


def test_the_prs_behind_are_tested_again_without_the_one_that_lost_its_approval():
    story = a_story_with_approved_prs(3)
    assert story.runs() == ((1,), (1, 2), (1, 2, 3))
    withdraw(story, 2)
    assert story.runs() == ((1,), (1, 3))
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (1, 3)
    approve(story, 2)
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (1, 3, 2)


def test_a_batch_goes_on_without_the_one_that_lost_its_approval():
    story = a_story_with_approved_prs(3, batch=3)
    withdraw(story, 2)
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (1, 3)
    assert story.state(2) == "not_ready"


def test_a_bisection_ends_when_one_of_its_prs_loses_its_approval_and_the_others_are_tested_without_it():
    story = a_story_with_approved_prs(4, batch=4)
    story.tests_fail(1, 2, 3, 4)
    assert story.bisection_runs()
    withdraw(story, 2)
    assert story.bisection_runs() == ()
    assert story.state(2) == "not_ready"
    assert story.runs() == ((1, 3, 4),)


def test_a_pr_in_another_lane_is_not_disturbed():
    story = Story(mode=Mode.PARALLEL)
    for number, target in ((1, "x"), (2, "y")):
        story.open(number)
        approve_without_event(story, number)
        story.impacts(number, target)
    story.submit(1, 2)
    run = story.run_of(2)
    withdraw(story, 1)
    assert story.run_of(2) == run


def test_a_pr_that_passed_and_waits_for_those_ahead_does_not_merge_after_a_withdrawal():
    story = a_story_with_approved_prs(2)
    story.tests_pass(2)
    withdraw(story, 2)
    story.tests_pass(1)
    assert story.merged_prs() == (1,)
    assert story.state(2) == "not_ready"


def test_where_the_host_merges_a_withdrawn_approval_stops_the_merge_too():
    story = a_story_with_approved_prs(2, landing=LandingMethod.PROVIDER_MERGE)
    withdraw_without_event(story, 1)
    story.all_tests_pass()
    assert story.landings() == ()
    assert story.state(1) == "not_ready"
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (2,)


def test_a_withdrawal_while_the_queue_is_paused_counts():
    story = a_story_with_approved_prs(1)
    story.pause()
    story.tests_pass(1)
    withdraw(story, 1)
    story.resume()
    assert (story.state(1), story.landings()) == ("not_ready", ())


def test_a_check_of_the_head_that_starts_again_stops_no_tests_but_the_merge():
    story = a_story_with_approved_prs(1)
    story.change_without_event(1, requirements=(a_requirement(Reason.WAITING_FOR_HEAD_CHECKS, names=("unit",)),))
    story.mark_dirty(1)
    assert story.state(1) == "testing"
    story.tests_pass(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "waiting_for_head_checks")
    assert story.landings() == ()


def test_a_pr_that_lost_its_approval_is_merged_by_force():
    story = a_story_with_approved_prs(1)
    withdraw(story, 1)
    story.submit(1, forced=True)
    story.tests_pass(1)
    assert story.state(1) == "merged"


def test_a_pr_of_the_same_batch_that_has_the_commits_of_the_withdrawn_one_is_told_so():
    story = Story(batch=2)
    story.open(1)
    story.open_stacked_on(1, 2)
    for number in (1, 2):
        approve_without_event(story, number)
    story.submit(1, 2)
    withdraw(story, 1)
    assert story.causes(2, "batchmate_removed") == (Cause(PullRequestNumber(1)),)
    assert "prerequisite_removed" not in story.reasons(2)
