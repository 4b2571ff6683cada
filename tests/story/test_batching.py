"""How batches form: at once when full, else when the oldest has waited long enough; who was tested once never waits."""

from tests.support.story import Story


def test_a_full_batch_starts_at_once_and_is_tested_as_one():
    story = Story(batch=3)
    story.submit(1, 2, 3)
    assert story.picture() == "main ← 1+2+3…"
    story.tests_pass(1, 2, 3)
    assert story.landings() == ((1, 2, 3),)


def test_without_batching_every_pr_is_alone_and_waits_for_nobody():
    story = Story()
    story.submit(1, 2)
    assert story.picture() == "main ← 1… ← 2…"


def test_a_batch_never_grows_beyond_its_size():
    story = Story(batch=2, batching_max_wait_time_minutes=5)
    story.submit(1, 2, 3)
    assert story.picture() == "main ← 1+2…"
    assert story.waiting(3) == "waiting_for_batch"


def test_a_batch_that_is_not_full_starts_when_its_oldest_has_waited_long_enough():
    story = Story(batch=4, batching_max_wait_time_minutes=5)
    story.submit(1)
    story.pass_minutes(3)
    story.submit(2)
    story.pass_minutes(1)
    assert story.picture() == "main"
    story.pass_minutes(1)
    assert story.picture() == "main ← 1+2…"


def test_a_wait_of_zero_starts_whoever_is_there():
    story = Story(batch=4, batching_max_wait_time_minutes=0)
    story.submit(1, 2)
    story.submit(3)
    assert story.picture() == "main ← 1+2… ← 3…"


def test_a_no_batch_pr_is_alone_and_closes_the_batch_before_it_which_then_starts():
    story = Story(batch=4)
    story.submit(1, 2)
    story.submit(3, no_batch=True)
    assert story.picture() == "main ← 1+2… ← 3…"


def test_a_no_batch_pr_waits_for_nobody_and_nobody_joins_it():
    story = Story(batch=2)
    story.submit(1, no_batch=True)
    assert story.picture() == "main ← 1…"
    story.submit(2)
    assert story.picture() == "main ← 1…"
    story.submit(3)
    assert story.picture() == "main ← 1… ← 2+3…"


def test_one_that_asks_to_be_alone_while_it_waits_closes_the_batch_before_it():
    story = Story(batch=4)
    story.submit(1, 2)
    story.submit(2, no_batch=True)
    assert story.picture() == "main ← 1… ← 2…"


def test_a_batch_is_made_of_neighbours_in_the_order_of_the_waiting():
    story = Story(batch=2, concurrency=1)
    story.submit(1, 2)
    story.submit(3, priority=200)
    story.submit(4, 5)
    story.tests_pass(1, 2)
    assert story.picture() == "main ← 4+5…"


def test_while_slots_are_taken_the_waiting_gather_and_then_go_together():
    story = Story(batch=3, batching_max_wait_time_minutes=0, concurrency=1)
    story.submit(1)
    story.submit(2)
    story.submit(3)
    assert story.waiting(2) == "waiting_for_slot"
    story.tests_pass(1)
    assert story.picture() == "main ← 2+3…"


def test_a_batch_that_loses_a_member_keeps_its_place_and_is_tested_again_without_it():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4, 5, 6)
    story.cancel(3)
    assert story.picture() == "main ← 1+2… ← 4… ← 5+6…"
    assert story.runs() == ((1, 2), (1, 2, 4), (1, 2, 4, 5, 6))
    assert "batchmate_removed" in story.reasons(4)
    assert "prerequisite_removed" in story.reasons(5)
    assert story.reasons(1)[-1] == "test_run_started"


def test_a_batch_that_lost_a_member_is_not_filled_up():
    story = Story(batch=2)
    story.submit(1, 2)
    story.cancel(1)
    story.submit(3)
    assert story.picture() == "main ← 2…"


def test_one_that_was_once_in_a_run_waits_for_no_batch_to_fill():
    story = Story(batch=3)
    story.submit(1, 2, 3)
    story.tests_fail(1, 2, 3)
    story.tests_fail(1)
    assert story.state(1) == "failed"
    assert story.picture() == "main ← 2+3…"


def test_one_that_was_once_in_a_run_takes_along_those_who_wait():
    story = Story(batch=3)
    story.submit(1, 2, 3)
    story.submit(4)
    assert story.waiting(4) == "waiting_for_batch"
    story.tests_fail(1, 2, 3)
    story.tests_fail(1)
    assert story.picture() == "main ← 2+3+4…"


def test_a_batch_passes_and_fails_as_a_whole():
    story = Story(batch=2)
    story.withhold_landings()
    story.submit(1, 2, 3, 4)
    story.tests_fail(3, 4)
    assert story.states(3, 4) == ("pending_failure", "pending_failure")
    assert story.waiting_for(4) == (1, 2)
    story.tests_pass(1, 2)
    assert story.states(1, 2) == ("tests_passed", "tests_passed")
