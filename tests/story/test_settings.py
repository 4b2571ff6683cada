"""Settings that change while runs are live: they count for what starts later."""

from mergeyard.domain.config import MergeMethod
from tests.support.story import Story


def test_a_lower_concurrency_stops_no_running_test():
    story = Story(concurrency=3)
    story.submit(1, 2, 3, 4)
    story.settings(concurrency=1)
    assert story.runs() == ((1,), (1, 2), (1, 2, 3))
    story.tests_pass(1)
    story.tests_pass(2)
    assert story.waiting(4) == "waiting_for_slot"
    story.tests_pass(3)
    assert story.state(4) == "testing"


def test_a_higher_concurrency_starts_those_who_wait_at_once():
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
    assert story.run_of(1).method is MergeMethod.MERGE_COMMIT
    story.submit(2)
    assert story.run_of(2).method is MergeMethod.SQUASH


def test_more_required_statuses_mean_another_test_for_all_that_has_not_landed():
    story = Story()
    story.submit(1, 2)
    story.tests_pass(2)
    story.settings(required_statuses=("unit", "lint"))
    assert story.picture() == "main ← 1… ← 2…"
    assert story.reasons(2)[-2:] == ("required_statuses_changed", "test_run_started")
    assert story.missing_checks(1) == ("unit", "lint")


def test_more_statuses_that_the_repository_requires_mean_another_test_too():
    story = Story()
    story.submit(1)
    run = story.run_of(1).id
    story.repository_requires("unit", "lint")
    assert story.run_of(1).id != run


def test_fewer_required_statuses_leave_running_tests_alone():
    story = Story(required_statuses=("unit", "lint"))
    story.submit(1)
    run = story.run_of(1).id
    story.settings(required_statuses=("unit",))
    assert story.run_of(1).id == run
    assert story.missing_checks(1) == ("unit", "lint")


def test_a_batch_size_that_grows_changes_nothing_in_the_line():
    story = Story(batch=2)
    story.submit(1, 2)
    story.settings(batch=4)
    assert story.picture() == "main ← 1+2…"
    story.submit(3, 4, 5, 6)
    assert story.picture() == "main ← 1+2… ← 3+4+5+6…"


def test_a_batch_size_that_shrinks_starts_a_batch_that_is_full_now():
    story = Story(batch=4)
    story.submit(1, 2)
    assert story.picture() == "main"
    story.settings(batch=2)
    assert story.picture() == "main ← 1+2…"


def test_a_shorter_wait_counts_for_those_who_wait_already():
    story = Story(batch=4, batching_max_wait_time_minutes=60)
    story.submit(1)
    story.pass_minutes(10)
    story.settings(batching_max_wait_time_minutes=5)
    assert story.state(1) == "testing"


def test_retries_that_are_allowed_later_count_for_the_red_one_that_waits():
    story = Story()
    story.submit(1, 2)
    story.tests_fail(2)
    story.settings(test_retries=1)
    assert story.picture() == "main ← 1… ← 2…"


def test_optimism_switched_on_lands_what_a_green_run_speaks_for():
    story = Story()
    story.submit(1, 2)
    story.tests_pass(2)
    assert story.merged() == ()
    story.settings(can_optimistically_merge=True)
    assert story.landings() == ((1, 2),)


def test_optimism_switched_off_takes_a_clearance_back_and_tests_again():
    story = Story(can_optimistically_merge=True, pending_failure_depth=1)
    story.withhold_landings()
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_pass(2)
    assert story.state(1) == "tests_passed"
    story.settings(can_optimistically_merge=False)
    assert story.picture() == "main ← 1… ← 2✓"


def test_settings_that_say_what_was_said_before_change_nothing():
    story = Story(concurrency=3)
    story.submit(1)
    before = story.queue
    assert story.settings(concurrency=3) is None
    assert story.queue is before
