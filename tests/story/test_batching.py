"""Batches form at once when full, else when the oldest PR has waited long enough; a PR that was tested never waits."""

from mergeyard.domain.states import Mergeability
from tests.support.story import Story


def test_a_full_batch_starts_at_once_and_is_tested_as_one():
    story = Story(batch=3)
    story.submit(1, 2, 3)
    assert story.queue_text() == "main ← 1+2+3…"
    story.tests_pass(1, 2, 3)
    assert story.landings() == ((1, 2, 3),)


def test_without_batching_every_pr_is_alone_and_does_not_wait():
    story = Story()
    story.submit(1, 2)
    assert story.queue_text() == "main ← 1… ← 2…"


def test_a_batch_never_grows_beyond_its_size():
    story = Story(batch=2, batching_max_wait_time_minutes=5)
    story.submit(1, 2, 3)
    assert story.queue_text() == "main ← 1+2…"
    assert story.wait_reason(3) == "waiting_for_batch"


def test_a_batch_that_is_not_full_starts_when_its_oldest_has_waited_long_enough():
    story = Story(batch=4, batching_max_wait_time_minutes=5)
    story.submit(1)
    story.pass_minutes(3)
    story.submit(2)
    story.pass_minutes(1)
    assert story.queue_text() == "main"
    story.pass_minutes(1)
    assert story.queue_text() == "main ← 1+2…"


def test_a_wait_of_zero_starts_all_waiting_prs_at_once():
    story = Story(batch=4, batching_max_wait_time_minutes=0)
    story.submit(1, 2)
    story.submit(3)
    assert story.queue_text() == "main ← 1+2… ← 3…"


def test_a_no_batch_pr_is_alone_and_closes_the_batch_before_it_which_then_starts():
    story = Story(batch=4)
    story.submit(1, 2)
    story.submit(3, no_batch=True)
    assert story.queue_text() == "main ← 1+2… ← 3…"


def test_a_no_batch_pr_does_not_wait_and_no_pr_joins_it():
    story = Story(batch=2)
    story.submit(1, no_batch=True)
    assert story.queue_text() == "main ← 1…"
    story.submit(2)
    assert story.queue_text() == "main ← 1…"
    story.submit(3)
    assert story.queue_text() == "main ← 1… ← 2+3…"


def test_a_waiting_pr_that_becomes_no_batch_closes_the_batch_before_it():
    story = Story(batch=4)
    story.submit(1, 2)
    story.submit(2, no_batch=True)
    assert story.queue_text() == "main ← 1… ← 2…"


def test_a_batch_consists_of_consecutive_waiting_prs():
    story = Story(batch=2, concurrency=1)
    story.submit(1, 2)
    story.submit(3, priority=200)
    story.submit(4, 5)
    story.tests_pass(1, 2)
    assert story.queue_text() == "main ← 4+5…"


def test_prs_that_wait_for_a_slot_start_together_as_one_batch():
    story = Story(batch=3, batching_max_wait_time_minutes=0, concurrency=1)
    story.submit(1)
    story.submit(2)
    story.submit(3)
    assert story.wait_reason(2) == "waiting_for_slot"
    story.tests_pass(1)
    assert story.queue_text() == "main ← 2+3…"


def test_a_batch_that_loses_a_member_keeps_its_place_and_is_tested_again_without_it():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4, 5, 6)
    story.cancel(3)
    assert story.queue_text() == "main ← 1+2… ← 4… ← 5+6…"
    assert story.runs() == ((1, 2), (1, 2, 4), (1, 2, 4, 5, 6))
    assert "batchmate_removed" in story.reasons(4)
    assert "prerequisite_removed" in story.reasons(5)
    assert story.reasons(1)[-1] == "test_run_started"


def test_a_batch_that_lost_a_member_is_not_filled_up():
    story = Story(batch=2)
    story.submit(1, 2)
    story.cancel(1)
    story.submit(3)
    assert story.queue_text() == "main ← 2…"


def test_a_pr_that_was_in_a_run_does_not_wait_for_a_full_batch():
    story = Story(batch=3)
    story.submit(1, 2, 3)
    story.tests_fail(1, 2, 3)
    story.tests_fail(1)
    assert story.state(1) == "failed"
    assert story.queue_text() == "main ← 2+3…"


def test_a_pr_that_was_in_a_run_starts_with_the_waiting_prs():
    story = Story(batch=3)
    story.submit(1, 2, 3)
    story.submit(4)
    assert story.wait_reason(4) == "waiting_for_batch"
    story.tests_fail(1, 2, 3)
    story.tests_fail(1)
    assert story.queue_text() == "main ← 2+3+4…"


def test_a_batch_passes_and_fails_as_a_whole():
    story = Story(batch=2)
    story.withhold_landings()
    story.submit(1, 2, 3, 4)
    story.tests_fail(3, 4)
    assert story.states(3, 4) == ("pending_failure", "pending_failure")
    assert story.waiting_for(4) == (1, 2)
    story.tests_pass(1, 2)
    assert story.states(1, 2) == ("tests_passed", "tests_passed")


def test_a_batch_that_no_pr_can_join_any_more_does_not_wait_to_be_filled():
    story = Story(batch=3)
    story.submit(1, 2)
    assert story.wait_reason(1) == "waiting_for_batch"
    story.drain()
    assert story.queue_text() == "main ← 1+2…"


def test_the_author_hears_of_a_conflict_at_once_while_a_batch_fills():
    story = Story(batch=3)
    story.submit(1, 2)
    story.set_mergeability(2, Mergeability.NOT_MERGEABLE)
    assert (story.state(2), story.reason(2), story.wait_reason(2)) == (
        "not_ready",
        "no_longer_mergeable",
        "not_mergeable",
    )
    story.set_mergeability(2, Mergeability.MERGEABLE)
    assert (story.state(2), story.wait_reason(2)) == ("pending", "waiting_for_batch")


def test_a_pr_in_a_batch_is_not_judged_without_those_ahead_of_it():
    story = Story()
    story.submit(1, 2)
    story.set_mergeability(2, Mergeability.NOT_MERGEABLE)
    assert story.queue_text() == "main ← 1… ← 2…"


def test_a_forced_pr_that_conflicts_keeps_its_place():
    story = Story(concurrency=1)
    story.submit(1)
    story.submit(2, forced=True)
    story.set_mergeability(2, Mergeability.NOT_MERGEABLE)
    assert story.state(2) == "pending"
