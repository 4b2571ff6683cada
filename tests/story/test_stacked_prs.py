"""Stacked pull requests: one whose head contains another live one's head stands behind it."""

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PrNumber
from tests.support.story import Story


def a_stack_of_two() -> Story:
    """2 is branched from 1."""
    story = Story()
    story.open(1)
    story.open_upon(1, 2)
    return story


def test_both_submitted_in_order_stand_in_order_and_merge():
    story = a_stack_of_two()
    story.submit(1, 2)
    assert story.picture() == "main ← 1… ← 2…"
    story.all_tests_pass()
    assert story.landings() == ((1, 2),)


def test_submitted_together_in_the_wrong_order_the_upper_one_still_stands_behind():
    story = a_stack_of_two()
    story.submit(2, 1)
    assert story.picture() == "main ← 1… ← 2…"


def test_the_upper_one_waits_for_the_lower_one_to_enter_the_line():
    story = a_stack_of_two()
    story.draft(1)
    story.submit(1, 2)
    assert story.picture() == "main"
    assert (story.state(2), story.waiting(2), story.waiting_for(2)) == (
        "pending",
        "waiting_for_prs_ahead",
        (1,),
    )
    story.undraft(1)
    assert story.picture() == "main ← 1… ← 2…"


def test_the_upper_one_goes_on_alone_when_the_lower_one_left():
    story = a_stack_of_two()
    story.submit(1, 2)
    story.tests_fail(1)
    assert story.picture() == "main ← 2…"
    story.tests_pass(2)
    assert set(story.target_files()) == {"README", "file1", "file2"}


def test_the_upper_one_goes_alone_when_the_lower_one_was_never_submitted():
    story = a_stack_of_two()
    story.submit(2)
    assert story.picture() == "main ← 2…"


def test_the_lower_one_is_merged_when_the_upper_one_brought_it():
    story = a_stack_of_two()
    story.submit(2)
    story.submit(1)
    assert story.picture() == "main ← 2… ← 1…"
    story.tests_pass(2)
    story.tests_pass(1)
    assert story.states(1, 2) == ("merged", "merged")
    assert (story.reason(1), story.landings()) == ("merged_manually", ((2,),))


def test_in_parallel_mode_the_upper_one_stands_behind_whatever_their_targets():
    story = Story(mode=Mode.PARALLEL)
    story.open(1)
    story.open_upon(1, 2)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.submit(1, 2)
    assert story.picture() == "main ← 1… ∥ 1 ← 2…"


def test_in_one_batch_the_lower_one_comes_first():
    story = Story(batch=2)
    story.open(1)
    story.open_upon(1, 2)
    story.submit(1, 2)
    assert story.picture() == "main ← 1+2…"
    story.tests_pass(1, 2)
    assert story.landings() == ((1, 2),)


def test_the_upper_one_is_never_merged_directly_over_the_lower_one():
    story = a_stack_of_two()
    story.submit(1, 2)
    story.tests_pass(2)
    assert story.merged() == ()


def test_an_urgent_upper_one_still_stands_behind_the_lower_one():
    story = a_stack_of_two()
    story.submit(1)
    story.submit(2, priority=0)
    assert story.picture() == "main ← 1… ← 2…"


def test_an_urgent_upper_one_waits_for_a_lower_one_that_is_not_in_the_line():
    story = a_stack_of_two()
    story.draft(1)
    story.submit(1)
    story.submit(2, priority=0)
    assert (story.state(2), story.waiting(2), story.waiting_for(2)) == (
        "pending",
        "waiting_for_prs_ahead",
        (1,),
    )


def test_a_suspect_and_one_that_turns_out_to_stand_upon_it_do_not_wait_for_each_other():
    story = Story(batch=2)
    story.open(3)
    story.open_upon(3, 1)
    story.submit(1)
    story.open(2)
    story.change_unheard(2, head=story.submission(1).pull.contains[PrNumber(3)])
    story.submit(2)
    story.touch(1)
    story.tests_fail(1, 2)
    story.tests_pass(1)
    story.tests_pass_until_the_end()
    assert story.merged() == (2, 1)


def test_one_that_waits_names_those_that_it_waits_for_by_now():
    story = Story()
    story.open(1)
    story.open_upon(1, 2)
    story.open_upon(2, 3)
    story.draft(1)
    story.draft(2)
    story.submit(1, 2, 3)
    assert story.waiting_for(3) == (1, 2)
    story.undraft(1)
    assert story.waiting_for(3) == (2,)
