"""Failed runs: they are retried as often as the settings allow, then their PRs wait until all PRs ahead have merged."""

from mergeyard.domain.states import CheckState
from tests.support.story import Story


def test_a_failed_run_is_retried_before_a_pr_fails():
    story = Story(test_retries=1)
    story.submit(1)
    story.tests_fail(1)
    assert story.state(1) == "testing"
    assert story.queue_text() == "main ← 1…"
    story.tests_fail(1)
    assert (story.state(1), story.reason(1)) == ("failed", "test_run_failed")


def test_a_flaky_test_costs_a_run_and_nothing_else():
    story = Story(test_retries=1)
    story.submit(1)
    story.tests_fail(1)
    story.tests_pass(1)
    assert story.state(1) == "merged"
    assert story.state_history(1) == ("not_ready", "pending", "testing", "tests_passed", "merged")


def test_a_retry_does_not_disturb_the_runs_behind_it():
    story = Story(test_retries=1)
    story.submit(1, 2)
    behind = story.run_of(2).id
    story.tests_fail(1)
    assert story.run_of(2).id == behind
    story.tests_pass(1)
    assert story.run_of(2).id == behind
    story.tests_pass(2)
    assert story.landings() == ((1,), (2,))


def test_what_landed_after_a_retry_keeps_the_run_behind_a_fast_forward():
    story = Story(test_retries=1)
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_pass(2)
    story.tests_pass(1)
    assert story.landings() == ((1, 2),)


def test_retries_are_counted_for_every_run():
    story = Story(test_retries=2)
    story.submit(1)
    for _ in range(2):
        story.tests_fail(1)
        assert story.state(1) == "testing"
    story.tests_fail(1)
    assert story.state(1) == "failed"


def test_results_of_the_first_try_never_count_for_the_second():
    story = Story(test_retries=1)
    story.submit(1)
    first = story.run_of(1)
    story.tests_fail(1)
    story.late_result(first, CheckState.PASSED)
    assert story.state(1) == "testing"
    assert story.run_of(1).tip != first.tip


def test_a_retry_takes_a_slot_before_waiting_prs():
    story = Story(concurrency=1, test_retries=1)
    story.submit(1, 2)
    story.tests_fail(1)
    assert story.runs() == ((1,),)


def test_a_failed_pr_waits_until_all_prs_ahead_have_merged():
    story = Story()
    story.submit(1, 2, 3)
    story.tests_fail(3)
    assert (story.state(3), story.waiting_for(3)) == ("pending_failure", (1, 2))
    story.tests_pass(1)
    assert (story.state(3), story.waiting_for(3)) == ("pending_failure", (2,))
    story.tests_pass(2)
    assert (story.state(3), story.failed_on(3)) == ("failed", (1, 2))


def test_a_failed_pr_also_waits_for_passed_prs_ahead_that_have_not_merged():
    story = Story()
    story.withhold_landings()
    story.submit(1, 2)
    story.tests_fail(2)
    story.tests_pass(1)
    assert story.states(1, 2) == ("tests_passed", "pending_failure")
    story.stop_withholding()
    assert story.states(1, 2) == ("merged", "failed")


def test_a_failed_pr_is_tested_again_when_a_pr_ahead_is_cancelled():
    story = Story()
    story.submit(1, 2)
    story.tests_fail(2)
    story.cancel(1)
    assert story.queue_text() == "main ← 2…"
    assert story.runs() == ((2,),)
    assert story.reasons(2)[-2:] == ("prerequisite_removed", "test_run_started")


def test_prs_behind_a_failed_pr_stay_in_testing():
    story = Story(concurrency=2)
    story.submit(1, 2, 3)
    story.tests_fail(2)
    assert story.queue_text() == "main ← 1… ← 2✗ ← 3…"
    assert story.runs() == ((1,), (1, 2, 3))


def test_a_passed_pr_behind_a_failed_pr_is_tested_again_without_it():
    story = Story()
    story.submit(1, 2, 3)
    story.tests_pass(3)
    story.tests_fail(2)
    assert story.queue_text() == "main ← 1… ← 2✗ ← 3✓"
    story.tests_pass(1)
    assert story.states(1, 2, 3) == ("merged", "failed", "testing")
    assert story.merged_prs() == (1,)


def test_a_failed_check_that_is_not_required_fails_no_pr():
    story = Story()
    story.submit(1)
    story.check("lint", CheckState.FAILED, 1)
    assert story.state(1) == "testing"


def test_one_required_check_of_two_is_not_enough_and_the_other_is_named():
    story = Story(required_statuses=("unit", "lint"))
    story.submit(1)
    story.check("unit", CheckState.PASSED, 1)
    assert (story.state(1), story.wait_reason(1), story.missing_checks(1)) == (
        "testing",
        "waiting_for_checks",
        ("lint",),
    )
    story.check("lint", CheckState.PASSED, 1)
    assert story.state(1) == "merged"


def test_one_required_check_that_fails_is_enough():
    story = Story(required_statuses=("unit", "lint"))
    story.submit(1)
    story.check("unit", CheckState.FAILED, 1)
    assert story.state(1) == "failed"


def test_a_result_that_changes_after_the_run_was_decided_changes_nothing():
    story = Story()
    story.withhold_landings()
    story.submit(1)
    run = story.run_of(1)
    story.tests_pass(1)
    story.late_result(run, CheckState.FAILED)
    assert story.state(1) == "tests_passed"
