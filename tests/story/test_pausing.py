"""Pause, drain and resume."""

from mergeyard.domain.states import Mergeability
from tests.support.story import Story


def test_in_a_paused_queue_nothing_enters_starts_or_merges_and_running_tests_finish():
    story = Story(concurrency=2)
    story.submit(1, 2, 3)
    story.pause()
    story.submit(4)
    assert (story.state(4), story.waiting(4)) == ("not_ready", "queue_paused")
    story.tests_pass(1)
    assert (story.state(1), story.waiting(1)) == ("tests_passed", "queue_paused")
    assert (story.state(3), story.waiting(3)) == ("pending", "queue_paused")
    assert story.runs() == ((1, 2),)
    assert story.merged() == ()


def test_on_resume_everything_goes_on_in_its_order():
    story = Story(concurrency=2)
    story.submit(1, 2, 3)
    story.pause()
    story.submit(4)
    story.tests_pass(1)
    story.resume()
    assert story.merged() == (1,)
    story.tests_pass_until_the_end()
    assert story.merged() == (1, 2, 3, 4)


def test_in_a_paused_queue_nobody_fails_and_what_went_red_is_tested_again_on_resume():
    story = Story()
    story.submit(1, 2)
    story.pause()
    story.tests_fail(1)
    assert story.state(1) == "pending_failure"
    assert story.waiting(1) == "queue_paused"
    story.resume()
    assert story.picture() == "main ← 1… ← 2…"
    assert story.reasons(1)[-2:] == ("queue_resumed", "test_run_started")


def test_what_went_red_before_the_pause_is_not_forgotten():
    story = Story()
    story.submit(1, 2)
    story.tests_fail(2)
    story.pause()
    story.tests_pass(1)
    assert story.state(2) == "pending_failure"
    story.resume()
    assert story.states(1, 2) == ("merged", "failed")


def test_a_run_behind_one_that_went_red_in_the_pause_goes_on():
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
    assert story.merged() == ()
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
    assert story.picture() == "main ← 2"
    story.resume()
    assert story.picture() == "main ← 2…"


def test_pausing_twice_is_pausing_once():
    story = Story()
    story.submit(1)
    story.pause()
    story.tests_fail(1)
    story.pause()
    story.resume()
    assert story.state(1) == "testing"


def test_a_batch_that_went_red_in_the_pause_is_not_searched():
    story = Story(batch=2)
    story.submit(1, 2)
    story.pause()
    story.tests_fail(1, 2)
    story.resume()
    assert story.picture() == "main ← 1+2…"
    assert story.probes() == ()


def test_a_draining_queue_finishes_what_is_in_it_and_takes_nothing_new():
    story = Story(concurrency=1)
    story.submit(1, 2)
    story.drain()
    story.submit(3)
    assert (story.state(3), story.waiting(3)) == ("not_ready", "queue_draining")
    story.tests_pass(1)
    story.tests_pass(2)
    assert story.merged() == (1, 2)
    assert story.state(3) == "not_ready"
    story.resume()
    assert story.state(3) == "testing"


def test_a_draining_queue_judges_and_searches_as_ever():
    story = Story(batch=2)
    story.submit(1, 2)
    story.drain()
    story.tests_fail(1, 2)
    assert story.probes() == ((1,),)
    story.tests_fail(1)
    assert story.state(1) == "failed"
    story.tests_pass(2)
    assert story.state(2) == "merged"


def test_one_that_stopped_being_mergeable_does_not_come_back_into_a_draining_queue():
    story = Story()
    story.submit(1)
    story.drain()
    story.change_unheard(1, mergeability=Mergeability.NOT_MERGEABLE)
    story.tests_pass(1)
    story.mergeability(1, Mergeability.MERGEABLE)
    assert (story.state(1), story.waiting(1)) == ("not_ready", "queue_draining")


def test_from_paused_to_draining_what_went_red_is_tested_again():
    story = Story()
    story.submit(1)
    story.pause()
    story.tests_fail(1)
    story.drain()
    assert story.queue_state() == "DRAINING"
    assert story.state(1) == "testing"


def test_an_urgent_pr_in_a_draining_queue_passes_the_line():
    story = Story(concurrency=1)
    story.submit(1, 2)
    story.drain()
    story.priority(2, 0)
    assert story.picture() == "main ← 2… ← 1"
