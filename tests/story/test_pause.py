"""Pause, drain and resume."""

from mergeyard.domain.states import Mergeability
from tests.support.story import Story


def test_in_a_paused_queue_no_pr_is_admitted_started_or_merged_and_running_tests_finish():
    story = Story(concurrency=2)
    story.submit(1, 2, 3)
    story.pause()
    story.submit(4)
    assert (story.state(4), story.wait_reason(4)) == ("not_ready", "queue_paused")
    story.tests_pass(1)
    assert (story.state(1), story.wait_reason(1)) == ("tests_passed", "queue_paused")
    assert (story.state(3), story.wait_reason(3)) == ("pending", "queue_paused")
    assert story.runs() == ((1, 2),)
    assert story.merged_prs() == ()


def test_on_resume_all_prs_continue_in_their_order():
    story = Story(concurrency=2)
    story.submit(1, 2, 3)
    story.pause()
    story.submit(4)
    story.tests_pass(1)
    story.resume()
    assert story.merged_prs() == (1,)
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (1, 2, 3, 4)


def test_in_a_paused_queue_no_pr_fails_and_failed_runs_are_repeated_on_resume():
    story = Story()
    story.submit(1, 2)
    story.pause()
    story.tests_fail(1)
    assert story.state(1) == "pending_failure"
    assert story.wait_reason(1) == "queue_paused"
    story.resume()
    assert story.queue_text() == "main ← 1… ← 2…"
    assert story.reasons(1)[-2:] == ("queue_resumed", "test_run_started")


def test_a_failure_before_the_pause_still_counts():
    story = Story()
    story.submit(1, 2)
    story.tests_fail(2)
    story.pause()
    story.tests_pass(1)
    assert story.state(2) == "pending_failure"
    story.resume()
    assert story.states(1, 2) == ("merged", "failed")


def test_a_run_behind_a_pr_that_failed_in_the_pause_continues():
    story = Story()
    story.submit(1, 2)
    behind = story.run_of(2).id
    story.pause()
    story.tests_fail(1)
    story.resume()
    assert story.run_of(2).id == behind


def test_what_passed_during_the_pause_lands_in_one_update_on_resume():
    story = Story()
    story.submit(1, 2, 3)
    story.pause()
    for number in (1, 2, 3):
        story.tests_pass(number)
    assert story.merged_prs() == ()
    story.resume()
    assert story.landings() == ((1, 2, 3),)


def test_a_retry_that_is_due_in_the_pause_starts_on_resume():
    story = Story(test_retries=1)
    story.submit(1)
    story.pause()
    story.tests_fail(1)
    assert story.runs() == ()
    story.resume()
    assert story.runs() == ((1,),)
    story.tests_fail(1)
    assert story.state(1) == "failed"


def test_one_can_be_cancelled_in_a_paused_queue_and_those_behind_wait_to_be_tested_again():
    story = Story()
    story.submit(1, 2)
    story.pause()
    assert story.cancel(1) is None
    assert story.queue_text() == "main ← 2"
    story.resume()
    assert story.queue_text() == "main ← 2…"


def test_pausing_twice_is_pausing_once():
    story = Story()
    story.submit(1)
    story.pause()
    story.tests_fail(1)
    story.pause()
    story.resume()
    assert story.state(1) == "testing"


def test_a_batch_that_failed_in_the_pause_is_not_bisected():
    story = Story(batch=2)
    story.submit(1, 2)
    story.pause()
    story.tests_fail(1, 2)
    story.resume()
    assert story.queue_text() == "main ← 1+2…"
    assert story.bisection_runs() == ()


def test_a_draining_queue_finishes_admitted_prs_and_admits_no_others():
    story = Story(concurrency=1)
    story.submit(1, 2)
    story.drain()
    story.submit(3)
    assert (story.state(3), story.wait_reason(3)) == ("not_ready", "queue_draining")
    story.tests_pass(1)
    story.tests_pass(2)
    assert story.merged_prs() == (1, 2)
    assert story.state(3) == "not_ready"
    story.resume()
    assert story.state(3) == "testing"


def test_a_draining_queue_fails_prs_and_bisects_batches():
    story = Story(batch=2)
    story.submit(1, 2)
    story.drain()
    story.tests_fail(1, 2)
    assert story.bisection_runs() == ((1,),)
    story.tests_fail(1)
    assert story.state(1) == "failed"
    story.tests_pass(2)
    assert story.state(2) == "merged"


def test_a_pr_that_is_no_longer_mergeable_is_not_admitted_again_by_a_draining_queue():
    story = Story()
    story.submit(1)
    story.drain()
    story.change_without_event(1, mergeability=Mergeability.NOT_MERGEABLE)
    story.tests_pass(1)
    story.set_mergeability(1, Mergeability.MERGEABLE)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "queue_draining")


def test_from_paused_to_draining_failed_runs_are_repeated():
    story = Story()
    story.submit(1)
    story.pause()
    story.tests_fail(1)
    story.drain()
    assert story.queue_state() == "DRAINING"
    assert story.state(1) == "testing"


def test_an_urgent_pr_in_a_draining_queue_preempts_active_batches():
    story = Story(concurrency=1)
    story.submit(1, 2)
    story.drain()
    story.priority(2, 0)
    assert story.queue_text() == "main ← 2… ← 1"
