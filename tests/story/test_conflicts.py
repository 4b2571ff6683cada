"""Conflicts: with the target branch a PR fails; with an active batch or a batchmate it waits until these are gone."""

from mergeyard.domain.config import Mode
from mergeyard.domain.states import Mergeability
from tests.support.story import Story


def two_conflicting_prs() -> Story:
    story = Story()
    story.open(1, {"shared": "one"})
    story.open(2, {"shared": "two"})
    story.submit(1, 2)
    return story


def test_a_pr_that_conflicts_with_the_pr_ahead_is_held():
    story = two_conflicting_prs()
    assert story.queue_text() == "main ← 1…"
    assert (story.state(2), story.wait_reason(2), story.waiting_for(2)) == (
        "pending",
        "conflicts_with_pr_ahead",
        (1,),
    )


def test_prs_behind_a_held_pr_are_tested_without_it():
    story = two_conflicting_prs()
    story.submit(3)
    assert story.queue_text() == "main ← 1… ← 3…"
    assert story.runs() == ((1,), (1, 3))


def test_a_held_pr_fails_when_the_pr_ahead_merged():
    story = two_conflicting_prs()
    story.tests_pass(1)
    assert (story.state(2), story.reason(2)) == ("failed", "merge_conflict")


def test_a_held_pr_is_tested_behind_the_active_batches_when_the_pr_ahead_failed():
    story = two_conflicting_prs()
    story.submit(3)
    story.tests_fail(1)
    assert story.queue_text() == "main ← 3… ← 2…"
    story.tests_pass_until_the_end()
    assert story.merged_prs() == (3, 2)


def test_a_held_pr_is_tested_when_the_pr_ahead_was_cancelled():
    story = two_conflicting_prs()
    story.cancel(1)
    assert story.queue_text() == "main ← 2…"


def test_a_held_pr_is_tested_when_the_pr_ahead_is_no_longer_ready():
    story = two_conflicting_prs()
    story.change_without_event(1, mergeability=Mergeability.NOT_MERGEABLE)
    story.tests_pass(1)
    assert story.states(1, 2) == ("not_ready", "testing")


def test_a_held_pr_is_tested_when_the_pr_ahead_is_held_for_a_broken_base():
    story = Story.on_an_untested_base()
    story.open(1, {"shared": "one"})
    story.open(2, {"shared": "two"})
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_fail()
    assert story.wait_reason(1) == "base_broken"
    assert story.state(2) == "testing"


def test_a_pr_that_conflicts_with_a_batchmate_is_held_and_the_batch_continues():
    story = Story(batch=3)
    story.open(1, {"shared": "one"})
    story.open(2, {"shared": "two"})
    story.submit(1, 2, 3)
    assert story.queue_text() == "main ← 1+3…"
    assert (story.wait_reason(2), story.waiting_for(2)) == ("conflicts_with_pr_ahead", (1,))


def test_a_pr_that_now_conflicts_with_the_target_branch_fails():
    story = Story()
    story.open(1, {"shared": "one"})
    story.submit(1, 2)
    story.external_push({"shared": "theirs"})
    assert (story.state(1), story.reason(1)) == ("failed", "merge_conflict")
    assert story.queue_text() == "main ← 2…"


def test_a_pr_that_conflicts_with_the_target_branch_from_the_start_is_not_ready():
    story = Story()
    story.open(1, {"shared": "one"})
    story.external_push({"shared": "theirs"})
    story.submit(1)
    assert (story.state(1), story.wait_reason(1)) == ("not_ready", "not_mergeable")


def test_a_forced_pr_that_conflicts_with_the_target_branch_fails():
    story = Story()
    story.open(1, {"shared": "one"})
    story.external_push({"shared": "theirs"})
    story.submit(1, forced=True)
    assert (story.state(1), story.reason(1)) == ("failed", "merge_conflict")


def test_an_urgent_pr_makes_the_pr_it_conflicts_with_wait():
    story = Story()
    story.open(1, {"shared": "one"})
    story.open(2, {"shared": "two"})
    story.submit(1)
    story.submit(2, priority=0)
    assert story.queue_text() == "main ← 2…"
    assert (story.wait_reason(1), story.waiting_for(1)) == ("conflicts_with_pr_ahead", (2,))


def test_two_conflicting_lanes_make_a_pr_across_both_wait():
    story = Story(mode=Mode.PARALLEL)
    story.open(1, {"shared": "one"})
    story.open(2, {"shared": "two"})
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.impacts(3, "x", "y")
    story.submit(1, 2, 3)
    assert story.queue_text() == "main ← 1… ∥ main ← 2…"
    assert story.wait_reason(3) == "conflicts_with_pr_ahead"
    story.tests_fail(2)
    story.tests_pass(1)
    assert story.queue_text() == "main ← 3…"
