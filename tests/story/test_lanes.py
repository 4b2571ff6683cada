"""Parallel mode: whoever shares a target stands in one lane, whoever shares none is tested and lands by itself."""

from mergeyard.domain import tasks as t
from mergeyard.domain.config import Mode
from tests.support.story import Story


def a_parallel_story(**targets: str) -> Story:
    """`pr1="x y"` says that pull request 1 impacts the targets x and y."""
    story = Story(mode=Mode.PARALLEL)
    for name, words in targets.items():
        story.impacts(int(name.removeprefix("pr")), *words.split())
    return story


def test_those_that_share_no_target_are_tested_apart_and_do_not_wait_for_each_other():
    story = a_parallel_story(pr1="x", pr2="y")
    story.submit(1, 2)
    assert story.picture() == "main ← 1… ∥ main ← 2…"
    story.tests_pass(2)
    assert story.merged() == (2,)


def test_those_that_share_a_target_stand_behind_each_other():
    story = a_parallel_story(pr1="x y", pr2="y z")
    story.submit(1, 2)
    assert story.picture() == "main ← 1… ∥ 1 ← 2…"
    assert story.runs() == ((1,), (1, 2))
    story.tests_pass(2)
    assert (story.state(2), story.waiting(2), story.waiting_for(2)) == (
        "tests_passed",
        "waiting_for_prs_ahead",
        (1,),
    )


def test_a_batch_depends_on_those_that_the_ones_ahead_depend_on():
    story = a_parallel_story(pr1="x", pr2="x y", pr3="y")
    story.submit(1, 2, 3)
    assert story.picture() == "main ← 1… ∥ 1 ← 2… ∥ 1, 2 ← 3…"
    assert story.dependent_prs(3) == (1, 2)


def test_all_shares_with_everybody():
    story = a_parallel_story(pr1="x", pr3="y")
    story.impacts_everything(2)
    story.submit(1, 2, 3)
    assert story.picture() == "main ← 1… ∥ 1 ← 2… ∥ 1, 2 ← 3…"


def test_one_that_impacts_nothing_shares_only_with_all():
    story = a_parallel_story(pr1="x", pr2="", pr3="")
    story.impacts_everything(4)
    story.submit(1, 2, 3, 4)
    assert story.picture() == "main ← 1… ∥ main ← 2… ∥ main ← 3… ∥ 1, 2, 3 ← 4…"


def test_a_failure_disturbs_only_its_own_lane():
    story = a_parallel_story(pr1="x", pr2="y", pr3="x")
    story.submit(1, 2, 3)
    untouched = story.run_of(2).id
    story.tests_fail(1)
    assert story.picture() == "main ← 2… ∥ main ← 3…"
    assert story.run_of(2).id == untouched
    assert story.runs() == ((2,), (3,))


def test_a_red_one_waits_only_for_those_ahead_in_its_lane():
    story = a_parallel_story(pr1="x", pr2="y")
    story.submit(1, 2)
    story.tests_fail(2)
    assert (story.state(2), story.failed_upon(2)) == ("failed", ())
    assert story.state(1) == "testing"


def test_targets_uploaded_during_a_run_do_not_disturb_it():
    story = a_parallel_story(pr1="x", pr2="y")
    story.submit(1, 2)
    story.upload_targets(2, "x")
    assert story.picture() == "main ← 1… ∥ main ← 2…"
    assert story.runs() == ((1,), (2,))


def test_a_foreign_push_concerns_every_lane():
    story = a_parallel_story(pr1="x", pr2="y")
    story.submit(1, 2)
    before = story.run_of(1).id, story.run_of(2).id
    story.foreign_push()
    assert story.run_of(1).id != before[0]
    assert story.run_of(2).id != before[1]
    assert story.reasons(2)[-2:] == ("target_branch_moved", "test_run_started")


def a_story_of_batches(**targets: str) -> Story:
    story = a_parallel_story(**targets)
    story.settings(batch=2, batching_max_wait_time_minutes=5)
    return story


def test_only_those_that_share_a_target_go_into_one_batch():
    story = a_story_of_batches(pr1="x", pr2="y", pr3="x")
    story.submit(1, 2, 3)
    assert story.picture() == "main ← 1+3…"
    assert story.waiting(2) == "waiting_for_batch"
    story.pass_minutes(5)
    assert story.picture() == "main ← 1+3… ∥ main ← 2…"


def test_a_pr_joins_no_batch_while_somebody_that_it_depends_on_still_waits_elsewhere():
    story = a_story_of_batches(pr1="x", pr2="y", pr3="x y")
    story.submit(1, 2, 3)
    assert story.picture() == "main"
    assert story.states(1, 2, 3) == ("pending", "pending", "pending")


def test_a_full_batch_behind_starts_in_its_own_lane_at_once():
    story = a_story_of_batches(pr1="x", pr2="y", pr3="y")
    story.submit(1, 2, 3)
    assert story.picture() == "main ← 2+3…"


def test_concurrency_counts_the_runs_of_all_lanes():
    story = a_parallel_story(pr1="x", pr2="y", pr3="z")
    story.settings(concurrency=2)
    story.submit(1, 2, 3)
    assert story.runs() == ((1,), (2,))
    assert story.waiting(3) == "waiting_for_slot"


def test_one_that_comes_into_the_lane_of_a_landing_is_not_overtaken_by_those_after_it():
    story = Story(mode=Mode.PARALLEL, batch=2, batching_max_wait_time_minutes=0, concurrency=9)
    for number, target in ((1, "a"), (2, "a"), (3, "b"), (4, "b")):
        story.impacts(number, target)
    story.submit(1, 2)
    story.submit(3)
    story.withhold(t.Land)
    story.tests_pass(3)
    story.upload_targets(2, "b")
    story.cancel(1)
    story.stop_withholding()
    story.submit(4)
    assert story.picture() == "main ← 2… ∥ 2 ← 4…"
