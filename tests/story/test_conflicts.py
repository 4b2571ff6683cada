"""Conflicts: with the target it fails, with the line or a batchmate it waits until they are gone."""

from mergeyard.domain.config import Mode
from mergeyard.domain.states import Mergeability
from tests.support.story import Story


def two_that_conflict() -> Story:
    story = Story()
    story.open(1, {"shared": "one"})
    story.open(2, {"shared": "two"})
    story.submit(1, 2)
    return story


def test_one_that_conflicts_with_the_one_ahead_waits_out_of_every_stack():
    story = two_that_conflict()
    assert story.picture() == "main ← 1…"
    assert (story.state(2), story.waiting(2), story.waiting_for(2)) == (
        "pending",
        "conflicts_with_pr_ahead",
        (1,),
    )


def test_those_behind_it_are_tested_without_it():
    story = two_that_conflict()
    story.submit(3)
    assert story.picture() == "main ← 1… ← 3…"
    assert story.runs() == ((1,), (1, 3))


def test_it_fails_when_the_one_ahead_merged_since_it_conflicts_with_the_target_then():
    story = two_that_conflict()
    story.tests_pass(1)
    assert (story.state(2), story.reason(2)) == ("failed", "merge_conflict")


def test_it_rejoins_at_the_end_of_the_line_when_the_one_ahead_failed():
    story = two_that_conflict()
    story.submit(3)
    story.tests_fail(1)
    assert story.picture() == "main ← 3… ← 2…"
    story.tests_pass_until_the_end()
    assert story.merged() == (3, 2)


def test_it_rejoins_when_the_one_ahead_was_cancelled():
    story = two_that_conflict()
    story.cancel(1)
    assert story.picture() == "main ← 2…"


def test_it_rejoins_when_the_one_ahead_is_not_ready_any_more():
    story = two_that_conflict()
    story.change_unheard(1, mergeability=Mergeability.NOT_MERGEABLE)
    story.tests_pass(1)
    assert story.states(1, 2) == ("not_ready", "testing")


def test_it_is_tested_when_the_one_ahead_stepped_aside_for_a_broken_base():
    story = Story.on_an_unseen_base()
    story.open(1, {"shared": "one"})
    story.open(2, {"shared": "two"})
    story.submit(1, 2)
    story.tests_fail(1)
    story.tests_fail()
    assert story.waiting(1) == "base_broken"
    assert story.state(2) == "testing"


def test_one_that_conflicts_with_a_batchmate_waits_and_the_batch_goes_on():
    story = Story(batch=3)
    story.open(1, {"shared": "one"})
    story.open(2, {"shared": "two"})
    story.submit(1, 2, 3)
    assert story.picture() == "main ← 1+3…"
    assert (story.waiting(2), story.waiting_for(2)) == ("conflicts_with_pr_ahead", (1,))


def test_one_that_conflicts_with_the_target_by_now_fails():
    story = Story()
    story.open(1, {"shared": "one"})
    story.submit(1, 2)
    story.foreign_push({"shared": "theirs"})
    assert (story.state(1), story.reason(1)) == ("failed", "merge_conflict")
    assert story.picture() == "main ← 2…"


def test_one_that_conflicts_with_the_target_from_the_beginning_is_not_ready():
    story = Story()
    story.open(1, {"shared": "one"})
    story.foreign_push({"shared": "theirs"})
    story.submit(1)
    assert (story.state(1), story.waiting(1)) == ("not_ready", "not_mergeable")


def test_one_that_is_forced_in_though_it_conflicts_with_the_target_fails():
    story = Story()
    story.open(1, {"shared": "one"})
    story.foreign_push({"shared": "theirs"})
    story.submit(1, forced=True)
    assert (story.state(1), story.reason(1)) == ("failed", "merge_conflict")


def test_an_urgent_pr_makes_the_one_it_conflicts_with_wait():
    story = Story()
    story.open(1, {"shared": "one"})
    story.open(2, {"shared": "two"})
    story.submit(1)
    story.submit(2, priority=0)
    assert story.picture() == "main ← 2…"
    assert (story.waiting(1), story.waiting_for(1)) == ("conflicts_with_pr_ahead", (2,))


def test_two_lanes_that_disagree_make_the_one_across_both_wait():
    story = Story(mode=Mode.PARALLEL)
    story.open(1, {"shared": "one"})
    story.open(2, {"shared": "two"})
    story.impacts(1, "x")
    story.impacts(2, "y")
    story.impacts(3, "x", "y")
    story.submit(1, 2, 3)
    assert story.picture() == "main ← 1… ∥ main ← 2…"
    assert story.waiting(3) == "conflicts_with_pr_ahead"
    story.tests_fail(2)
    story.tests_pass(1)
    assert story.picture() == "main ← 3…"
