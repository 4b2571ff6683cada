"""Admission: an open, mergeable pull request for this branch that is not a draft, while the queue is RUNNING."""

from mergeyard.domain.config import Mode
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import SECOND, later
from tests.support.story import Story

DAY = 24


def test_a_ready_pr_is_admitted_and_starts_at_once():
    story = Story()
    story.submit(1)
    assert story.state_history(1) == ("not_ready", "pending", "testing")
    assert story.reasons(1) == ("submitted", "ready", "test_run_started")


def test_a_pr_for_another_branch_is_not_ready_until_it_points_here():
    story = Story()
    story.open(1)
    story.retarget(1, "release")
    story.submit(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "base_branch_mismatch")
    story.retarget(1, "main")
    assert story.state(1) == "testing"


def test_a_draft_is_not_ready_until_it_is_marked_ready():
    story = Story()
    story.open(1)
    story.draft(1)
    story.submit(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "draft")
    story.undraft(1)
    assert story.state(1) == "testing"


def test_an_unknown_mergeability_means_wait_and_never_fail():
    story = Story()
    story.open(1)
    story.set_mergeability(1, Mergeability.UNKNOWN)
    story.submit(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "mergeability_unknown")
    story.set_mergeability(1, Mergeability.MERGEABLE)
    assert story.state(1) == "testing"


def test_a_pr_that_the_host_reports_as_not_mergeable_is_not_ready():
    story = Story()
    story.open(1)
    story.set_mergeability(1, Mergeability.NOT_MERGEABLE)
    story.submit(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "not_mergeable")


def test_a_forced_pr_skips_the_wait_for_mergeability_and_is_still_tested():
    story = Story()
    story.open(1)
    story.set_mergeability(1, Mergeability.NOT_MERGEABLE)
    story.submit(1, forced=True)
    assert story.runs() == ((1,),)
    story.tests_pass(1)
    assert story.state(1) == "merged"


def test_a_forced_draft_is_a_draft():
    story = Story()
    story.open(1)
    story.draft(1)
    story.submit(1, forced=True)
    assert story.wait_reason(1) == "draft"


def test_force_does_not_count_for_commits_that_are_pushed_later():
    story = Story()
    story.open(1)
    story.draft(1)
    story.set_mergeability(1, Mergeability.NOT_MERGEABLE)
    story.submit(1, forced=True)
    story.push(1)
    story.undraft(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "not_mergeable")
    story.submit(1, forced=True)
    assert story.state(1) == "testing"


def test_force_counts_for_the_commits_that_were_pushed_before_although_no_event_reported_them():
    story = Story()
    story.open(1)
    story.draft(1)
    story.set_mergeability(1, Mergeability.NOT_MERGEABLE)
    story.submit(1)
    story.push_without_event(1)
    story.change_without_event(1, draft=False)
    story.submit(1, forced=True)
    assert story.state(1) == "testing"


def test_forcing_a_pr_that_waits_for_mergeability_admits_it():
    story = Story()
    story.open(1)
    story.set_mergeability(1, Mergeability.UNKNOWN)
    story.submit(1)
    story.submit(1, forced=True)
    assert story.state(1) == "testing"


def test_in_parallel_mode_a_pr_needs_targets_for_its_present_head():
    story = Story(mode=Mode.PARALLEL)
    story.submit(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "missing_impacted_targets")
    story.upload_targets(1, "x")
    assert story.state(1) == "testing"


def test_in_parallel_mode_targets_are_needed_again_after_a_push():
    story = Story(mode=Mode.PARALLEL)
    story.open(1)
    story.draft(1)
    story.submit(1)
    story.upload_targets(1, "x")
    story.push(1)
    story.undraft(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "missing_impacted_targets")


def test_a_push_to_a_pr_that_is_not_ready_does_not_cancel_it():
    story = Story()
    story.open(1)
    story.draft(1)
    story.submit(1)
    story.push(1)
    assert story.state(1) == "not_ready"
    story.undraft(1)
    story.tests_pass(1)
    assert story.target_files()["file1"] == "pr1 again"


def test_a_pinned_pr_is_cancelled_by_a_push_even_when_not_ready():
    story = Story()
    story.open(1)
    story.draft(1)
    story.submit_pinned(1)
    story.push(1)
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_pushed")


def test_a_fork_s_pr_is_cancelled_by_a_push_even_when_not_ready():
    story = Story()
    story.open(1)
    story.change_without_event(1, fork=True, draft=True)
    story.submit(1)
    story.push(1)
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_pushed")


def test_a_fork_that_changes_ci_files_waits_until_a_maintainer_submits_it():
    story = Story()
    story.open(1)
    story.change_without_event(1, fork=True, guarded_paths=(".gitlab-ci.yml",))
    story.submit(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "waiting_for_maintainer")
    story.submit(1, forced=True)
    assert story.state(1) == "not_ready"
    story.submit(1, by_maintainer=True)
    assert story.state(1) == "testing"
    story.push(1)
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_pushed")
    story.submit(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "waiting_for_maintainer")


def test_a_pr_that_is_closed_while_not_ready_is_cancelled():
    story = Story()
    story.open(1)
    story.draft(1)
    story.submit(1)
    story.close(1)
    assert (story.state(1), story.reason(1)) == ("cancelled", "pr_closed")


def a_draft_in_the_queue(timeout: int) -> Story:
    story = Story(not_ready_timeout_hours=timeout)
    story.open(1)
    story.draft(1)
    story.submit(1)
    return story


def test_a_pr_that_is_not_ready_for_too_long_is_cancelled():
    story = a_draft_in_the_queue(timeout=DAY)
    story.pass_hours(DAY - 1)
    assert story.state(1) == "not_ready"
    story.pass_hours(1)
    assert (story.state(1), story.reason(1)) == ("cancelled", "not_ready_timeout")


def test_the_not_ready_timeout_stops_while_the_queue_is_not_running():
    story = a_draft_in_the_queue(timeout=DAY)
    story.pass_hours(DAY - 1)
    story.pause()
    story.pass_hours(DAY)
    story.resume()
    assert story.state(1) == "not_ready"
    story.drain()
    story.pass_hours(DAY)
    story.resume()
    assert story.state(1) == "not_ready"
    story.pass_hours(1)
    assert story.reason(1) == "not_ready_timeout"


def test_a_timeout_of_zero_means_never():
    story = a_draft_in_the_queue(timeout=0)
    story.pass_hours(30 * DAY)
    assert story.state(1) == "not_ready"


def test_submitting_again_after_a_failure_is_a_new_submission_at_the_end():
    story = Story(concurrency=1)
    story.submit(1, 2)
    first = story.submission(1).id
    story.tests_fail(1)
    story.submit(3)
    story.submit(1)
    assert story.submission(1).id != first
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (2, 3, 1)


def test_without_any_required_status_nothing_is_tested_and_nothing_merges():
    story = Story()
    story.repository_requires()
    story.submit(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "no_required_statuses")
    story.repository_requires("unit")
    assert story.state(1) == "testing"


def test_required_statuses_of_the_queue_suffice_when_the_repository_has_none():
    story = Story(required_statuses=("unit",))
    story.repository_requires()
    story.submit(1)
    assert story.state(1) == "testing"


def test_a_configuration_that_cannot_be_read_fails_with_exactly_that_reason():
    story = Story()
    story.break_configuration("line 3: expected a list")
    story.submit(1)
    assert (story.state(1), story.reason(1), story.detail(1)) == (
        "failed",
        "config_invalid",
        "line 3: expected a list",
    )


def test_a_broken_configuration_does_not_stop_running_tests():
    story = Story()
    story.submit(1)
    story.break_configuration("line 3: expected a list")
    assert story.state(1) == "testing"
    story.tests_pass(1)
    assert story.state(1) == "merged"


def test_a_free_slot_waits_for_the_first_submitted_when_the_answer_about_another_comes_first():
    story = Story(concurrency=1)
    for number in (1, 2):
        story.open(number)
        story.set_mergeability(number, Mergeability.UNKNOWN)
        story.submit(number)
    story.set_mergeability(2, Mergeability.MERGEABLE)
    assert story.states(1, 2) == ("not_ready", "pending")
    assert (story.wait_reason(2), story.waiting_for(2)) == ("waiting_for_prs_ahead", (1,))
    story.set_mergeability(1, Mergeability.MERGEABLE)
    assert (story.runs(), story.state(2)) == (((1,),), "pending")


def test_a_free_slot_does_not_wait_longer_than_ten_seconds_for_an_answer():
    story = Story(concurrency=1)
    story.open(1)
    story.set_mergeability(1, Mergeability.UNKNOWN)
    story.submit(1)
    story.submit(2)
    assert story.state(2) == "pending"
    due = later(story.submission(1).submitted_at, 10 * SECOND)
    assert story.wake_at() == due
    story.pass_until(due)
    assert story.state(2) == "testing"


def test_a_free_slot_does_not_wait_for_one_that_the_host_calls_not_mergeable_or_that_comes_later():
    story = Story(concurrency=2)
    story.open(1)
    story.set_mergeability(1, Mergeability.NOT_MERGEABLE)
    story.submit(1)
    story.open(3)
    story.set_mergeability(3, Mergeability.UNKNOWN)
    story.submit(2)
    story.submit(3)
    story.submit(4, priority=10)
    assert story.states(1, 2, 3, 4) == ("not_ready", "testing", "not_ready", "testing")


def test_a_lane_does_not_wait_for_an_answer_about_another_lane():
    story = Story(mode=Mode.PARALLEL)
    for number, name in ((1, "x"), (2, "y"), (3, "x")):
        story.impacts(number, name)
    story.open(1)
    story.set_mergeability(1, Mergeability.UNKNOWN)
    story.submit(1, 2, 3)
    assert story.states(1, 2, 3) == ("not_ready", "testing", "pending")


def a_story_that_awaits_an_answer_about(*lanes: str) -> Story:
    """The Git host has not answered about the first pull request, and each impacts one of these."""
    story = Story(mode=Mode.PARALLEL, concurrency=10)
    for number, name in enumerate(lanes, start=1):
        story.impacts(number, name)
    story.open(1)
    story.set_mergeability(1, Mergeability.UNKNOWN)
    story.submit(*range(1, len(lanes) + 1))
    return story


def test_other_lanes_do_not_wait_behind_one_that_waits_for_an_answer():
    story = a_story_that_awaits_an_answer_about("x", "x", "y", "z")
    assert story.states(2, 3, 4) == ("pending", "testing", "testing")


def test_behind_many_that_wait_for_an_answer_a_pr_of_another_lane_names_them():
    story = a_story_that_awaits_an_answer_about("x", "x", "x", "x", "x", "y")
    assert (story.wait_reason(6), story.waiting_for(6)) == ("waiting_for_prs_ahead", (2, 3, 4))
