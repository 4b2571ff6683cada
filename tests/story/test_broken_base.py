"""Broken bases: no PR is blamed on a base that is not known to pass, and no PR fails because of a broken base."""

from mergeyard.domain.config import Mode
from mergeyard.domain.journal import PullRequestUpdated
from tests.support.story import Story


def a_broken_base() -> Story:
    """1 failed on it, and so did the base run."""
    story = Story.on_an_untested_base()
    story.submit(1)
    story.tests_fail(1)
    story.tests_fail()
    return story


def test_a_passed_run_needs_no_passed_base():
    story = Story.on_an_untested_base()
    story.submit(1)
    story.tests_pass(1)
    assert story.state(1) == "merged"


def test_a_base_that_landed_as_tested_is_known_to_pass():
    story = Story.on_an_untested_base()
    story.submit(1, 2)
    story.tests_pass(1)
    story.tests_fail(2)
    assert story.state(2) == "failed"
    assert story.base_runs() == 0


def test_a_run_that_passed_on_the_same_base_does_not_replace_a_base_run():
    story = Story.on_an_untested_base(mode=Mode.PARALLEL)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.submit(1, 2)
    story.tests_fail(1)
    assert (story.state(1), story.wait_reason(1), story.base_runs()) == ("pending_failure", "waiting_for_base", 1)
    story.tests_pass()
    assert story.state(1) == "failed"


def test_one_base_run_decides_all_failures_on_its_base():
    story = Story.on_an_untested_base(mode=Mode.PARALLEL)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_fail(2)
    assert story.base_runs() == 1
    story.tests_pass()
    assert story.states(1, 2) == ("failed", "failed")


def test_a_passed_run_that_contains_the_failed_pr_says_nothing_about_the_base():
    story = Story.on_an_untested_base(concurrency=3)
    story.submit(1, 2)
    story.tests_pass(2)
    story.tests_fail(1)
    assert story.queue_text() == "main ← 1✗ ← 2✓ ?"
    story.tests_fail()
    assert story.wait_reason(1) == "base_broken"
    assert story.queue_text() == "main ← 2…"


def test_a_base_run_takes_a_slot_before_all_other_runs():
    story = Story.on_an_untested_base(concurrency=1)
    story.submit(1, 2)
    story.tests_fail(1)
    assert story.queue_text() == "main ← 1✗ ?"
    assert story.wait_reason(2) == "waiting_for_slot"


def test_a_base_run_is_retried_like_any_run():
    story = Story.on_an_untested_base(test_retries=1)
    story.submit(1)
    story.tests_fail(1)
    story.tests_fail(1)
    story.tests_fail()
    assert story.base_runs() == 1
    story.tests_pass()
    assert story.state(1) == "failed"


def test_a_base_run_stops_when_no_pr_waits_for_it_any_longer():
    story = Story.on_an_untested_base()
    story.submit(1)
    story.tests_fail(1)
    story.cancel(1)
    assert story.base_runs() == 0


def test_failed_prs_are_held_and_not_tested_again_on_a_broken_base():
    story = a_broken_base()
    assert (story.state(1), story.reason(1), story.wait_reason(1)) == ("pending", "base_broken", "base_broken")
    story.pass_minutes(9)
    assert story.runs() == ()
    assert story.base_runs() == 0


def test_a_broken_base_is_tested_again_by_itself_and_prs_only_once_it_passed():
    story = a_broken_base()
    story.submit(2)
    story.tests_fail(2)
    story.pass_minutes(10)
    assert (story.wait_reason(1), story.base_runs(), story.runs()) == ("waiting_for_base", 1, ())
    story.tests_pass()
    assert story.queue_text() == "main ← 1… ← 2…"


def test_a_base_that_stays_broken_is_tested_at_longer_and_longer_intervals():
    story = a_broken_base()
    for minutes in (10, 20, 40, 80, 160, 240, 240):
        story.pass_minutes(minutes - 1)
        assert (story.wait_reason(1), story.base_runs()) == ("base_broken", 0)
        story.pass_minutes(1)
        assert story.base_runs() == 1
        story.tests_fail()


def test_a_broken_base_is_not_tested_again_while_no_pr_waits_for_it():
    story = a_broken_base()
    story.cancel(1)
    story.pass_hours(1)
    assert story.base_runs() == 0


def test_the_repeated_test_of_a_base_stops_when_no_pr_waits_for_it_any_longer():
    story = a_broken_base()
    story.restart(1)
    assert story.base_runs() == 1
    story.cancel(1)
    assert story.base_runs() == 0


def test_a_broken_base_is_not_tested_again_while_the_queue_is_paused():
    story = a_broken_base()
    story.pause()
    story.pass_hours(1)
    assert story.base_runs() == 0
    story.resume()
    assert story.base_runs() == 1


def test_a_restart_tests_the_broken_base_again_at_once():
    story = a_broken_base()
    assert story.restart(1) is None
    assert (story.wait_reason(1), story.base_runs()) == ("waiting_for_base", 1)
    story.restart(1)
    story.tests_pass()
    assert story.queue_text() == "main ← 1…"
    story.tests_pass(1)
    assert story.state(1) == "merged"


def test_a_second_submit_tests_the_broken_base_again_at_once():
    story = a_broken_base()
    story.submit(1)
    story.tests_fail()
    assert (story.wait_reason(1), story.base_runs()) == ("base_broken", 0)
    story.submit(1)
    story.tests_pass()
    assert story.queue_text() == "main ← 1…"


def test_the_timeline_names_who_had_the_base_tested_again():
    story = a_broken_base()
    (entry,) = story.world.apply(story.world.build_submission(1, actor="grace")).journal
    assert isinstance(entry, PullRequestUpdated)
    assert (entry.number, entry.reason, entry.actor) == (1, "base_test_restarted", "grace")


def test_other_prs_are_still_tested_on_a_broken_base_since_one_can_repair_it():
    story = Story.on_an_untested_base()
    story.submit(1, 2, 3)
    story.tests_fail(1)
    story.tests_fail()
    assert story.queue_text() == "main ← 2… ← 3…"
    story.tests_fail(2)
    assert story.queue_text() == "main ← 3…"
    assert story.wait_reason(2) == "base_broken"
    story.tests_pass(3)
    assert story.state(3) == "merged"


def test_after_the_repair_held_prs_are_tested_again():
    story = a_broken_base()
    story.submit(2)
    story.tests_pass(2)
    assert story.queue_text() == "main ← 1…"
    story.tests_fail(1)
    assert (story.state(1), story.base_runs()) == ("failed", 0)


def test_a_foreign_push_that_repairs_the_base_releases_held_prs():
    story = a_broken_base()
    story.external_push()
    assert story.queue_text() == "main ← 1…"


def test_a_foreign_push_that_does_not_repair_the_base_blames_no_pr():
    story = a_broken_base()
    story.external_push()
    story.tests_fail(1)
    assert story.base_runs() == 1
    story.tests_fail()
    assert story.wait_reason(1) == "base_broken"


def test_a_failed_pr_behind_a_failed_pr_on_a_broken_base_is_tested_again_without_it():
    story = Story.on_an_untested_base()
    story.submit(1, 2)
    story.tests_fail(2)
    story.tests_fail(1)
    story.tests_fail()
    assert story.states(1, 2) == ("pending", "testing")
    assert story.runs() == ((2,),)


def test_a_batch_is_not_bisected_while_the_base_is_not_known_to_pass():
    story = Story.on_an_untested_base(batch=2)
    story.submit(1, 2)
    story.tests_fail(1, 2)
    assert story.queue_text() == "main ← 1+2✗ ?"
    assert story.bisection_runs() == ()
    story.tests_pass()
    assert story.queue_text() == "main ⋔ 1+2 : 1…"


def test_a_batch_is_held_as_a_whole_on_a_broken_base():
    story = Story.on_an_untested_base(batch=2)
    story.submit(1, 2)
    story.tests_fail(1, 2)
    story.tests_fail()
    assert (story.wait_reason(1), story.wait_reason(2)) == ("base_broken", "base_broken")
    story.external_push()
    assert story.queue_text() == "main ← 1+2…"


def test_a_foreign_push_is_not_known_to_pass_because_the_commit_before_it_passed():
    story = Story()
    story.submit(1)
    story.external_push()
    story.tests_fail(1)
    assert (story.state(1), story.base_runs()) == ("pending_failure", 1)


def test_a_pr_held_for_a_broken_base_can_still_be_cancelled():
    story = a_broken_base()
    assert story.cancel(1) is None
    assert story.state(1) == "cancelled"
