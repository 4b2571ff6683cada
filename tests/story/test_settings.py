"""Settings that change while runs are active: they apply to runs that start later."""

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.states import CheckState
from tests.support.story import Story


def test_a_lower_concurrency_stops_no_running_test():
    story = Story(concurrency=3)
    story.submit(1, 2, 3, 4)
    story.settings(concurrency=1)
    assert story.runs() == ((1,), (1, 2), (1, 2, 3))
    story.tests_pass(1)
    story.tests_pass(2)
    assert story.wait_reason(4) == "waiting_for_slot"
    story.tests_pass(3)
    assert story.state(4) == "testing"


def test_a_higher_concurrency_starts_waiting_prs_at_once():
    story = Story(concurrency=1)
    story.submit(1, 2)
    story.settings(concurrency=2)
    assert story.runs() == ((1,), (1, 2))


def test_a_run_keeps_the_timeout_that_it_started_with():
    story = Story(testing_timeout_minutes=30)
    story.submit(1)
    story.settings(testing_timeout_minutes=10)
    story.pass_minutes(20)
    assert story.state(1) == "testing"
    story.submit(2)
    story.pass_minutes(10)
    assert (story.state(1), story.state(2)) == ("failed", "testing")


def test_a_run_keeps_the_merge_method_that_it_started_with():
    story = Story(merge_method=MergeMethod.MERGE_COMMIT)
    story.submit(1)
    story.settings(merge_method=MergeMethod.SQUASH)
    assert story.run_of(1).merge_method is MergeMethod.MERGE_COMMIT
    story.submit(2)
    assert story.run_of(2).merge_method is MergeMethod.SQUASH


def test_more_required_statuses_make_all_prs_that_have_not_landed_be_tested_again():
    story = Story()
    story.submit(1, 2)
    story.tests_pass(2)
    story.settings(required_statuses=("unit", "lint"))
    assert story.queue_text() == "main ← 1… ← 2…"
    assert story.reasons(2)[-2:] == ("required_statuses_changed", "test_run_started")
    assert story.missing_checks(1) == ("unit", "lint")


def test_more_required_statuses_of_the_repository_make_prs_be_tested_again():
    story = Story()
    story.submit(1)
    run = story.run_of(1).id
    story.repository_requires("unit", "lint")
    assert story.run_of(1).id != run


def test_fewer_required_statuses_restart_no_tests_and_are_not_waited_for():
    story = Story(required_statuses=("unit", "lint"))
    story.submit(1)
    run = story.run_of(1).id
    story.settings(required_statuses=("unit",))
    assert story.run_of(1).id == run
    assert story.missing_checks(1) == ("unit",)


def test_a_check_that_is_no_longer_required_holds_no_pr():
    story = Story(required_statuses=("unit", "lint"))
    story.submit(1)
    story.check("unit", CheckState.PASSED, 1)
    assert story.missing_checks(1) == ("lint",)
    story.settings(required_statuses=("unit",))
    assert story.state(1) == "merged"


def test_a_check_that_the_repository_no_longer_requires_holds_no_pr():
    story = Story()
    story.repository_requires("unit", "lint")
    story.submit(1)
    story.check("unit", CheckState.PASSED, 1)
    story.repository_requires("unit")
    assert story.state(1) == "merged"


def test_without_any_required_check_an_active_run_does_not_pass():
    story = Story()
    story.repository_requires("unit")
    story.submit(1)
    story.repository_requires()
    assert (story.state(1), story.missing_checks(1)) == ("testing", ("unit",))


def test_a_larger_batch_size_does_not_change_active_batches():
    story = Story(batch=2)
    story.submit(1, 2)
    story.settings(batch=4)
    assert story.queue_text() == "main ← 1+2…"
    story.submit(3, 4, 5, 6)
    assert story.queue_text() == "main ← 1+2… ← 3+4+5+6…"


def test_a_batch_size_that_shrinks_starts_a_batch_that_is_full_now():
    story = Story(batch=4)
    story.submit(1, 2)
    assert story.queue_text() == "main"
    story.settings(batch=2)
    assert story.queue_text() == "main ← 1+2…"


def test_a_shorter_wait_applies_to_prs_that_already_wait():
    story = Story(batch=4, batching_max_wait_time_minutes=60)
    story.submit(1)
    story.pass_minutes(10)
    story.settings(batching_max_wait_time_minutes=5)
    assert story.state(1) == "testing"


def test_more_retries_apply_to_a_failed_pr_that_waits():
    story = Story()
    story.submit(1, 2)
    story.tests_fail(2)
    story.settings(test_retries=1)
    assert story.queue_text() == "main ← 1… ← 2…"


def test_switching_optimistic_merging_on_lands_prs_that_a_passed_run_clears():
    story = Story()
    story.submit(1, 2)
    story.tests_pass(2)
    assert story.merged_prs() == ()
    story.settings(can_optimistically_merge=True)
    assert story.landings() == ((1, 2),)


def test_switching_optimistic_merging_off_withdraws_a_clearance_and_tests_again():
    story = Story(can_optimistically_merge=True, pending_failure_depth=1)
    story.withhold_landings()
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_pass(2)
    assert story.state(1) == "tests_passed"
    story.settings(can_optimistically_merge=False)
    assert story.queue_text() == "main ← 1… ← 2✓"


def test_saving_the_same_settings_again_changes_nothing():
    story = Story(concurrency=3)
    story.submit(1)
    before = story.queue
    assert story.settings(concurrency=3) is None
    assert story.queue is before
