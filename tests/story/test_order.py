"""Who comes first: priority, then submission, with age for nobody to starve, and urgent ones ahead of the line."""

from mergeyard.domain import tasks as t
from mergeyard.domain.config import Mode
from tests.support.story import Story

LONG = 10_080
HIGH, MEDIUM, LOW = 10, 100, 200
URGENT = 0


def a_busy_story() -> Story:
    """One slot, taken by 1, whose tests never end by themselves."""
    story = Story(concurrency=1, testing_timeout_minutes=LONG)
    story.submit(1)
    return story


def test_the_waiting_stand_by_priority_and_then_by_submission():
    story = a_busy_story()
    story.submit(2, 3)
    story.submit(4, priority=HIGH)
    story.submit(5, priority=LOW)
    story.submit(6)
    story.tests_pass_until_the_end()
    assert story.merged() == (1, 4, 2, 3, 6, 5)


def test_who_waits_for_a_slot_says_so():
    story = a_busy_story()
    story.submit(2)
    assert (story.state(2), story.waiting(2)) == ("pending", "waiting_for_slot")


def test_a_full_hour_of_waiting_counts_ten_points():
    story = a_busy_story()
    story.submit(2, priority=110)
    story.pass_minutes(60)
    story.submit(3, priority=100)
    story.tests_pass_until_the_end()
    assert story.merged() == (1, 2, 3)


def test_an_hour_that_is_not_full_counts_nothing():
    story = a_busy_story()
    story.submit(2, priority=110)
    story.pass_minutes(59)
    story.submit(3, priority=100)
    story.tests_pass(1)
    assert story.picture() == "main ← 3…"


def test_age_brings_nobody_below_one_so_only_the_urgent_stay_ahead_for_ever():
    story = a_busy_story()
    story.submit(2, priority=LOW)
    story.pass_hours(100)
    story.submit(3, priority=1)
    story.tests_pass(1)
    assert story.picture() == "main ← 2…"
    story.submit(4, priority=URGENT)
    assert story.picture() == "main ← 4… ← 2"


def test_a_new_priority_moves_one_that_waits():
    story = a_busy_story()
    story.submit(2, 3)
    story.priority(3, HIGH)
    story.tests_pass_until_the_end()
    assert story.merged() == (1, 3, 2)


def test_submitting_again_without_a_priority_keeps_the_place():
    story = a_busy_story()
    story.submit(2, 3)
    story.submit(2)
    story.tests_pass_until_the_end()
    assert story.merged() == (1, 2, 3)


def test_a_new_priority_moves_nobody_in_the_line():
    story = Story(concurrency=2)
    story.submit(1, 2)
    story.priority(2, HIGH)
    assert story.picture() == "main ← 1… ← 2…"
    assert story.runs() == ((1,), (1, 2))


def test_an_urgent_pr_passes_the_line_and_what_it_passes_is_tested_again_behind_it():
    story = Story(concurrency=3)
    story.submit(1, 2, 3)
    story.submit(4, priority=URGENT)
    assert story.picture() == "main ← 4… ← 1… ← 2… ← 3"
    assert story.runs() == ((4,), (4, 1), (4, 1, 2))
    assert "skip_the_line_interrupted" in story.reasons(1)
    story.tests_pass_until_the_end()
    assert story.merged() == (4, 1, 2, 3)


def test_an_urgent_pr_takes_the_next_free_slot():
    story = Story(concurrency=1)
    story.submit(1)
    story.submit(2, priority=URGENT)
    assert story.picture() == "main ← 2… ← 1"
    story.submit(3, priority=URGENT)
    assert story.picture() == "main ← 2… ← 3 ← 1"
    story.tests_pass(2)
    assert story.picture() == "main ← 3… ← 1"


def test_an_urgent_pr_waits_for_no_batch_to_fill_and_stays_alone():
    story = Story(batch=4)
    story.submit(1, 2)
    story.submit(3, priority=URGENT)
    assert story.picture() == "main ← 3…"
    story.submit(4, 5)
    assert story.picture() == "main ← 3… ← 1+2+4+5…"


def test_urgent_prs_keep_their_order_among_themselves():
    story = Story()
    story.submit(1)
    story.submit(2, priority=URGENT)
    story.submit(3, priority=URGENT)
    assert story.picture() == "main ← 2… ← 3… ← 1…"
    assert story.runs() == ((2,), (2, 3), (2, 3, 1))


def test_an_urgent_pr_stands_behind_what_passed_at_the_front():
    story = Story()
    story.withhold_landings()
    story.submit(1, 2)
    story.tests_pass(1)
    story.submit(3, priority=URGENT)
    assert story.picture() == "main ← 1✓ ← 3… ← 2…"
    assert story.runs() == ((1, 3), (1, 3, 2))


def test_an_urgent_pr_passes_one_that_passed_behind_one_that_has_not():
    story = Story()
    story.submit(1, 2)
    story.tests_pass(2)
    story.submit(3, priority=URGENT)
    assert story.picture() == "main ← 3… ← 1… ← 2…"
    assert story.past(2)[-3:] == ("tests_passed", "pending", "testing")


def test_an_urgent_pr_stands_behind_a_landing():
    story = Story()
    story.withhold(t.Land)
    story.submit(1, 2)
    story.tests_pass(1)
    story.submit(3, priority=URGENT)
    assert story.picture() == "main ← 1✓ ← 3… ← 2…"
    story.stop_withholding()
    assert story.picture() == "main ← 3… ← 2…"
    assert story.runs() == ((1, 3), (1, 3, 2))


def test_what_shares_nothing_with_the_urgent_pr_goes_on():
    story = Story(mode=Mode.PARALLEL, concurrency=2)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.impacts(3, "x")
    story.submit(1, 2)
    untouched = story.run_of(2).id
    story.submit(3, priority=URGENT)
    assert story.picture() == "main ← 3… ∥ 3 ← 1 ∥ main ← 2…"
    assert story.run_of(2).id == untouched


def test_an_urgent_pr_that_shares_nothing_with_anybody_interrupts_nobody_and_is_next():
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


def test_a_batch_that_was_interrupted_three_times_is_not_passed_again():
    story = Story()
    story.submit(1)
    for number in (2, 3, 4):
        story.submit(number, priority=URGENT)
    assert story.picture() == "main ← 2… ← 3… ← 4… ← 1…"
    story.submit(5, priority=URGENT)
    assert story.picture() == "main ← 2… ← 3… ← 4… ← 1… ← 5…"


def test_one_that_becomes_urgent_leaves_its_batch_which_keeps_its_place():
    story = Story(batch=2)
    story.submit(1, 2, 3, 4)
    assert story.picture() == "main ← 1+2… ← 3+4…"
    story.priority(3, URGENT)
    assert story.picture() == "main ← 3… ← 1+2… ← 4…"
    assert story.runs() == ((3,), (3, 1, 2), (3, 1, 2, 4))


def test_one_that_becomes_urgent_with_nobody_to_pass_goes_on():
    story = Story()
    story.submit(1, 2)
    runs = story.run_of(1).id, story.run_of(2).id
    story.priority(1, URGENT)
    assert story.picture() == "main ← 1… ← 2…"
    assert (story.run_of(1).id, story.run_of(2).id) == runs
    story.submit(3, priority=URGENT)
    assert story.picture() == "main ← 1… ← 3… ← 2…"


def test_while_no_test_may_start_nobody_is_passed():
    story = Story(concurrency=2)
    story.submit(1, 2, 3)
    story.pause()
    story.priority(3, URGENT)
    assert story.picture() == "main ← 1… ← 2…"
    story.resume()
    assert story.picture() == "main ← 3… ← 1… ← 2"


def test_while_no_status_is_required_an_urgent_one_passes_nobody_and_those_under_test_go_on():
    story = Story()
    story.submit(1, 2)
    story.repository_requires()
    story.submit(3, priority=0)
    assert story.states(1, 2, 3) == ("testing", "testing", "failed")
    story.tests_pass(1)
    story.tests_pass(2)
    assert story.merged() == (1, 2)


def test_without_any_required_status_nobody_waits_to_be_tested_once_more():
    story = Story(test_retries=1)
    story.submit(1, 2)
    story.repository_requires()
    story.tests_fail(2)
    assert (story.states(1, 2), story.reason(2)) == (("testing", "failed"), "no_required_statuses")
    story.restart(1)
    assert (story.state(1), story.reason(1)) == ("failed", "no_required_statuses")


def test_without_any_required_status_nobody_waits_for_a_test_of_the_base():
    story = Story.on_an_unseen_base()
    story.submit(1)
    story.repository_requires()
    story.tests_fail(1)
    assert (story.state(1), story.reason(1)) == ("failed", "no_required_statuses")
