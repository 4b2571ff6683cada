"""Timeouts: an overdue run is decided only after a fresh read, and time without the host does not count."""

from mergeyard.domain import tasks as t
from tests.support.story import Story


def test_a_run_that_takes_too_long_fails_for_its_timeout():
    story = Story(testing_timeout_minutes=30)
    story.submit(1)
    story.pass_minutes(29)
    assert story.state(1) == "testing"
    story.pass_minutes(1)
    assert (story.state(1), story.reason(1)) == ("failed", "test_run_timeout")


def test_an_overdue_run_is_not_decided_before_a_fresh_read():
    story = Story(testing_timeout_minutes=30)
    story.withhold(t.ReadChecks)
    story.submit(1)
    story.pass_minutes(60)
    assert story.state(1) == "testing"
    assert story.count_pending(t.ReadChecks) == 1
    story.stop_withholding()
    assert story.state(1) == "failed"


def test_a_fresh_read_that_finds_all_checks_passed_makes_an_overdue_run_pass():
    story = Story(testing_timeout_minutes=30)
    story.submit(1)
    story.pass_checks_without_event(1)
    story.pass_minutes(30)
    assert story.state(1) == "merged"


def test_a_read_that_started_before_the_timeout_is_not_fresh():
    story = Story(testing_timeout_minutes=30)
    story.withhold(t.ReadChecks)
    story.submit(1)
    old_look = story.world.host.read_checks(story.run_of(1).id, story.queue.counters.revision)
    story.pass_minutes(30)
    story.world.apply(old_look)
    assert story.state(1) == "testing"


def test_a_run_that_timed_out_is_retried_like_a_failed_run():
    story = Story(testing_timeout_minutes=30, test_retries=1)
    story.submit(1)
    story.pass_minutes(30)
    assert story.state(1) == "testing"
    story.pass_minutes(30)
    assert (story.state(1), story.reason(1)) == ("failed", "test_run_timeout")


def test_a_pr_that_timed_out_behind_others_waits_for_them():
    story = Story(testing_timeout_minutes=30, concurrency=1)
    story.submit(1, 2)
    story.settings(concurrency=2)
    story.pass_minutes(20)
    story.restart(1)
    story.pass_minutes(10)
    assert (story.state(2), story.reason(2)) == ("pending_failure", "cause_unknown")
    assert story.waiting_for(2) == (1,)


def test_time_in_which_the_host_could_not_be_read_does_not_count():
    story = Story(testing_timeout_minutes=30)
    story.submit(1)
    story.pass_minutes(20)
    story.lose_host()
    assert story.wait_reason(1) == "provider_unavailable"
    story.pass_minutes(60)
    assert story.state(1) == "testing"
    story.regain_host()
    story.pass_minutes(9)
    assert story.state(1) == "testing"
    story.pass_minutes(1)
    assert story.state(1) == "failed"


def test_a_run_that_started_during_the_outage_gets_only_its_own_share_back():
    story = Story(testing_timeout_minutes=30)
    story.lose_host()
    story.pass_minutes(60)
    story.submit(1)
    story.pass_minutes(10)
    story.regain_host()
    story.pass_minutes(29)
    assert story.state(1) == "testing"
    story.pass_minutes(1)
    assert story.state(1) == "failed"


def test_a_timeout_in_a_bisection_counts_as_a_failure():
    story = Story(batch=2, testing_timeout_minutes=30)
    story.submit(1, 2)
    story.tests_fail(1, 2)
    story.pass_minutes(30)
    assert (story.state(1), story.reason(1)) == ("failed", "test_run_timeout")
    assert story.state(2) == "testing"


def test_a_base_run_that_times_out_blames_no_pr():
    story = Story.on_an_untested_base(testing_timeout_minutes=30)
    story.submit(1)
    story.tests_fail(1)
    story.pass_minutes(30)
    assert (story.state(1), story.wait_reason(1)) == ("pending", "base_broken")


def test_a_batch_wakes_the_queue_when_its_wait_is_over():
    story = Story(batch=2, batching_max_wait_time_minutes=5)
    story.submit(1)
    wake_at = story.wake_at()
    assert wake_at is not None
    story.pass_until(wake_at)
    assert story.state(1) == "testing"
