"""Stacked pull requests: a pull request whose head contains another queued head is placed behind it."""

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PullRequestNumber
from tests.support.story import Story


def a_stack_of_two() -> Story:
    """2 is stacked on 1."""
    story = Story()
    story.open(1)
    story.open_stacked_on(1, 2)
    return story


def test_stacked_prs_submitted_in_order_are_tested_in_order_and_merge():
    story = a_stack_of_two()
    story.submit(1, 2)
    assert story.queue_text() == "main ← 1… ← 2…"
    story.all_tests_pass()
    assert story.landings() == ((1, 2),)


def test_stacked_prs_submitted_in_the_wrong_order_are_tested_in_order():
    story = a_stack_of_two()
    story.submit(2, 1)
    assert story.queue_text() == "main ← 1… ← 2…"


def test_the_upper_pr_waits_until_the_lower_pr_is_admitted():
    story = a_stack_of_two()
    story.draft(1)
    story.submit(1, 2)
    assert story.queue_text() == "main"
    assert (story.state(2), story.wait_reason(2), story.waiting_for(2)) == (
        "pending",
        "waiting_for_prs_ahead",
        (1,),
    )
    story.undraft(1)
    assert story.queue_text() == "main ← 1… ← 2…"


def test_the_upper_pr_continues_alone_when_the_lower_pr_left():
    story = a_stack_of_two()
    story.submit(1, 2)
    story.tests_fail(1)
    assert story.queue_text() == "main ← 2…"
    story.tests_pass(2)
    assert set(story.target_files()) == {"README", "file1", "file2"}


def test_the_upper_pr_is_tested_alone_when_the_lower_pr_was_never_submitted():
    story = a_stack_of_two()
    story.submit(2)
    assert story.queue_text() == "main ← 2…"


def test_the_lower_pr_is_merged_when_the_upper_pr_contained_it():
    story = a_stack_of_two()
    story.submit(2)
    story.submit(1)
    assert story.queue_text() == "main ← 2… ← 1…"
    story.tests_pass(2)
    assert story.states(1, 2) == ("merged", "merged")
    assert (story.reason(1), story.landings()) == ("merged_with_another", ((2,),))


def test_in_parallel_mode_the_upper_pr_is_behind_the_lower_pr_whatever_their_targets():
    story = Story(mode=Mode.PARALLEL)
    story.open(1)
    story.open_stacked_on(1, 2)
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.submit(1, 2)
    assert story.queue_text() == "main ← 1… ∥ 1 ← 2…"


def test_in_one_batch_the_lower_pr_comes_first():
    story = Story(batch=2)
    story.open(1)
    story.open_stacked_on(1, 2)
    story.submit(1, 2)
    assert story.queue_text() == "main ← 1+2…"
    story.tests_pass(1, 2)
    assert story.landings() == ((1, 2),)


def test_the_upper_pr_is_never_merged_directly_before_the_lower_pr():
    story = a_stack_of_two()
    story.submit(1, 2)
    story.tests_pass(2)
    assert story.merged_prs() == ()


def test_an_urgent_upper_pr_is_still_behind_the_lower_pr():
    story = a_stack_of_two()
    story.submit(1)
    story.submit(2, priority=0)
    assert story.queue_text() == "main ← 1… ← 2…"


def test_an_urgent_upper_pr_waits_for_a_lower_pr_that_is_not_active():
    story = a_stack_of_two()
    story.draft(1)
    story.submit(1)
    story.submit(2, priority=0)
    assert (story.state(2), story.wait_reason(2), story.waiting_for(2)) == (
        "pending",
        "waiting_for_prs_ahead",
        (1,),
    )


def test_a_suspect_and_a_pr_that_is_later_stacked_on_it_do_not_wait_for_each_other():
    story = Story(batch=2)
    story.open(3)
    story.open_stacked_on(3, 1)
    story.submit(1)
    story.open(2)
    story.change_without_event(2, head=story.submission(1).pull_request.contained_heads[PullRequestNumber(3)])
    story.submit(2)
    story.mark_dirty(1)
    story.tests_fail(1, 2)
    story.tests_pass(1)
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (2, 1)


def test_a_waiting_pr_names_the_prs_that_it_waits_for_now():
    story = Story()
    story.open(1)
    story.open_stacked_on(1, 2)
    story.open_stacked_on(2, 3)
    story.draft(1)
    story.draft(2)
    story.submit(1, 2, 3)
    assert story.waiting_for(3) == (1, 2)
    story.undraft(1)
    assert story.waiting_for(3) == (2,)
