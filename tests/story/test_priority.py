"""Order: priority, then submission; priority ages so that no PR starves; urgent PRs preempt active batches."""

from mergeyard.domain import tasks as t
from mergeyard.domain.config import Mode
from tests.support.story import Story

LONG = 10_080
HIGH, MEDIUM, LOW = 10, 100, 200
URGENT = 0


def busy_story() -> Story:
    """One slot, taken by 1, whose tests do not end by themselves."""
    story = Story(concurrency=1, testing_timeout_minutes=LONG)
    story.submit(1)
    return story


def test_waiting_prs_are_ordered_by_priority_and_then_by_submission():
    story = busy_story()
    story.submit(2, 3)
    story.submit(4, priority=HIGH)
    story.submit(5, priority=LOW)
    story.submit(6)
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (1, 4, 2, 3, 6, 5)


def test_a_pr_that_waits_for_a_slot_shows_that_reason():
    story = busy_story()
    story.submit(2)
    assert (story.state(2), story.wait_reason(2)) == ("pending", "waiting_for_slot")


def test_a_full_hour_of_waiting_counts_ten_points():
    story = busy_story()
    story.submit(2, priority=110)
    story.pass_minutes(60)
    story.submit(3, priority=100)
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (1, 2, 3)


def test_an_hour_that_is_not_full_counts_nothing():
    story = busy_story()
    story.submit(2, priority=110)
    story.pass_minutes(59)
    story.submit(3, priority=100)
    story.tests_pass(1)
    assert story.queue_text() == "main ← 3…"


def test_aged_priority_never_falls_below_one_so_urgent_prs_stay_ahead():
    story = busy_story()
    story.submit(2, priority=LOW)
    story.pass_hours(100)
    story.submit(3, priority=1)
    story.tests_pass(1)
    assert story.queue_text() == "main ← 2…"
    story.submit(4, priority=URGENT)
    assert story.queue_text() == "main ← 4… ← 2"


def test_a_new_priority_moves_a_waiting_pr():
    story = busy_story()
    story.submit(2, 3)
    story.priority(3, HIGH)
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (1, 3, 2)


def test_submitting_again_without_a_priority_keeps_the_place():
    story = busy_story()
    story.submit(2, 3)
    story.submit(2)
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (1, 2, 3)


def test_a_new_priority_does_not_move_active_batches():
    story = Story(concurrency=2)
    story.submit(1, 2)
    story.priority(2, HIGH)
    assert story.queue_text() == "main ← 1… ← 2…"
    assert story.runs() == ((1,), (1, 2))


def test_an_urgent_pr_preempts_active_batches_which_are_tested_again_behind_it():
    story = Story(concurrency=3)
    story.submit(1, 2, 3)
    story.submit(4, priority=URGENT)
    assert story.queue_text() == "main ← 4… ← 1… ← 2… ← 3"
    assert story.runs() == ((4,), (4, 1), (4, 1, 2))
    assert "skip_the_line_interrupted" in story.reasons(1)
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (4, 1, 2, 3)


def test_an_urgent_pr_takes_the_next_free_slot():
    story = Story(concurrency=1)
    story.submit(1)
    story.submit(2, priority=URGENT)
    assert story.queue_text() == "main ← 2… ← 1"
    story.submit(3, priority=URGENT)
    assert story.queue_text() == "main ← 2… ← 3 ← 1"
    story.tests_pass(2)
    assert story.queue_text() == "main ← 3… ← 1"


def test_an_urgent_pr_does_not_wait_for_a_full_batch_and_is_tested_alone():
    story = Story(batch=4)
    story.submit(1, 2)
    story.submit(3, priority=URGENT)
    assert story.queue_text() == "main ← 3…"
    story.submit(4, 5)
    assert story.queue_text() == "main ← 3… ← 1+2+4+5…"


def test_urgent_prs_keep_their_order_among_themselves():
    story = Story()
    story.submit(1)
    story.submit(2, priority=URGENT)
    story.submit(3, priority=URGENT)
    assert story.queue_text() == "main ← 2… ← 3… ← 1…"
    assert story.runs() == ((2,), (2, 3), (2, 3, 1))


def test_an_urgent_pr_is_placed_behind_passed_batches_at_the_front():
    story = Story()
    story.withhold_landings()
    story.submit(1, 2)
    story.tests_pass(1)
    story.submit(3, priority=URGENT)
    assert story.queue_text() == "main ← 1✓ ← 3… ← 2…"
    assert story.runs() == ((1, 3), (1, 3, 2))


def test_an_urgent_pr_preempts_a_passed_batch_behind_one_that_has_not_passed():
    story = Story()
    story.submit(1, 2)
    story.tests_pass(2)
    story.submit(3, priority=URGENT)
    assert story.queue_text() == "main ← 3… ← 1… ← 2…"
    assert story.state_history(2)[-3:] == ("tests_passed", "pending", "testing")


def test_an_urgent_pr_is_placed_behind_a_landing():
    story = Story()
    story.withhold(t.Land)
    story.submit(1, 2)
    story.tests_pass(1)
    story.submit(3, priority=URGENT)
    assert story.queue_text() == "main ← 1✓ ← 3… ← 2…"
    story.stop_withholding()
    assert story.queue_text() == "main ← 3… ← 2…"
    assert story.runs() == ((1, 3), (1, 3, 2))


def test_batches_that_share_no_target_with_the_urgent_pr_continue():
    story = Story(mode=Mode.PARALLEL, concurrency=2)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.impacts(3, "x")
    story.submit(1, 2)
    untouched = story.run_of(2).id
    story.submit(3, priority=URGENT)
    assert story.queue_text() == "main ← 3… ∥ 3 ← 1 ∥ main ← 2…"
    assert story.run_of(2).id == untouched


def test_an_urgent_pr_that_shares_no_target_preempts_no_batch_and_is_next():
    story = Story(mode=Mode.PARALLEL, concurrency=1)
    story.impacts(1, "x")
    story.impacts(2, "x")
    story.impacts(3, "y")
    story.submit(1, 2)
    first = story.run_of(1).id
    story.submit(3, priority=URGENT)
    assert story.run_of(1).id == first
    story.tests_pass(1)
    assert story.runs() == ((3,),)


def test_a_batch_that_was_preempted_three_times_is_not_preempted_again():
    story = Story()
    story.submit(1)
    for number in (2, 3, 4):
        story.submit(number, priority=URGENT)
    assert story.queue_text() == "main ← 2… ← 3… ← 4… ← 1…"
    story.submit(5, priority=URGENT)
    assert story.queue_text() == "main ← 2… ← 3… ← 4… ← 1… ← 5…"


def test_a_pr_that_becomes_urgent_leaves_its_batch_which_keeps_its_place():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4)
    assert story.queue_text() == "main ← 1+2… ← 3+4…"
    story.priority(3, URGENT)
    assert story.queue_text() == "main ← 3… ← 1+2… ← 4…"
    assert story.runs() == ((3,), (3, 1, 2), (3, 1, 2, 4))


def test_a_pr_that_becomes_urgent_at_the_front_keeps_its_run():
    story = Story()
    story.submit(1, 2)
    runs = story.run_of(1).id, story.run_of(2).id
    story.priority(1, URGENT)
    assert story.queue_text() == "main ← 1… ← 2…"
    assert (story.run_of(1).id, story.run_of(2).id) == runs
    story.submit(3, priority=URGENT)
    assert story.queue_text() == "main ← 1… ← 3… ← 2…"


def test_while_no_run_can_start_no_batch_is_preempted():
    story = Story(concurrency=2)
    story.submit(1, 2, 3)
    story.pause()
    story.priority(3, URGENT)
    assert story.queue_text() == "main ← 1… ← 2…"
    story.resume()
    assert story.queue_text() == "main ← 3… ← 1… ← 2"


def test_while_no_status_is_required_an_urgent_pr_preempts_no_batch():
    story = Story()
    story.submit(1, 2)
    story.repository_requires()
    story.submit(3, priority=0)
    assert story.states(1, 2, 3) == ("testing", "testing", "not_ready")
    story.tests_pass(1)
    story.tests_pass(2)
    assert story.merged_prs() == (1, 2)


def test_without_required_statuses_no_pr_waits_for_another_run():
    story = Story(test_retries=1)
    story.submit(1, 2)
    story.repository_requires()
    story.tests_fail(2)
    assert (story.states(1, 2), story.reason(2)) == (("testing", "not_ready"), "no_required_statuses")
    story.restart(1)
    assert (story.state(1), story.reason(1)) == ("not_ready", "no_required_statuses")


def test_without_required_statuses_no_pr_waits_for_a_base_run():
    story = Story.on_an_untested_base()
    story.submit(1)
    story.repository_requires()
    story.tests_fail(1)
    assert (story.state(1), story.reason(1)) == ("not_ready", "no_required_statuses")
