"""Parallel mode: PRs that share an impacted target are in one lane; lanes are tested and land independently."""

from mergeyard.domain import tasks as t
from mergeyard.domain.config import Mode
from tests.support.story import Story


def parallel_story(**targets: str) -> Story:
    """`pr1="x y"` says that pull request 1 impacts the targets x and y."""
    story = Story(mode=Mode.PARALLEL)
    for name, impacted in targets.items():
        story.impacts(int(name.removeprefix("pr")), *impacted.split())
    return story


def test_prs_that_share_no_target_are_tested_separately():
    story = parallel_story(pr1="x", pr2="y")
    story.submit(1, 2)
    assert story.queue_text() == "main ← 1… ∥ main ← 2…"
    story.tests_pass(2)
    assert story.merged_prs() == (2,)


def test_prs_that_share_a_target_are_stacked():
    story = parallel_story(pr1="x y", pr2="y z")
    story.submit(1, 2)
    assert story.queue_text() == "main ← 1… ∥ 1 ← 2…"
    assert story.runs() == ((1,), (1, 2))
    story.tests_pass(2)
    assert (story.state(2), story.wait_reason(2), story.waiting_for(2)) == (
        "tests_passed",
        "waiting_for_prs_ahead",
        (1,),
    )


def test_dependencies_between_batches_are_transitive():
    story = parallel_story(pr1="x", pr2="x y", pr3="y")
    story.submit(1, 2, 3)
    assert story.queue_text() == "main ← 1… ∥ 1 ← 2… ∥ 1, 2 ← 3…"
    assert story.prs_ahead(3) == (1, 2)


def test_all_overlaps_with_every_pr():
    story = parallel_story(pr1="x", pr3="y")
    story.impacts_everything(2)
    story.submit(1, 2, 3)
    assert story.queue_text() == "main ← 1… ∥ 1 ← 2… ∥ 1, 2 ← 3…"


def test_a_pr_without_impacted_targets_overlaps_only_with_all():
    story = parallel_story(pr1="x", pr2="", pr3="")
    story.impacts_everything(4)
    story.submit(1, 2, 3, 4)
    assert story.queue_text() == "main ← 1… ∥ main ← 2… ∥ main ← 3… ∥ 1, 2, 3 ← 4…"


def test_a_failure_disturbs_only_its_own_lane():
    story = parallel_story(pr1="x", pr2="y", pr3="x")
    story.submit(1, 2, 3)
    untouched = story.run_of(2).id
    story.tests_fail(1)
    assert story.queue_text() == "main ← 2… ∥ main ← 3…"
    assert story.run_of(2).id == untouched
    assert story.runs() == ((2,), (3,))


def test_a_failed_pr_waits_only_for_prs_ahead_in_its_lane():
    story = parallel_story(pr1="x", pr2="y")
    story.submit(1, 2)
    story.tests_fail(2)
    assert (story.state(2), story.failed_on(2)) == ("failed", ())
    assert story.state(1) == "testing"


def test_targets_uploaded_during_a_run_do_not_disturb_it():
    story = parallel_story(pr1="x", pr2="y")
    story.submit(1, 2)
    story.upload_targets(2, "x")
    assert story.queue_text() == "main ← 1… ∥ main ← 2…"
    assert story.runs() == ((1,), (2,))


def test_a_foreign_push_invalidates_the_runs_of_every_lane():
    story = parallel_story(pr1="x", pr2="y")
    story.submit(1, 2)
    before = story.run_of(1).id, story.run_of(2).id
    story.external_push()
    assert story.run_of(1).id != before[0]
    assert story.run_of(2).id != before[1]
    assert story.reasons(2)[-2:] == ("target_branch_moved", "test_run_started")


def parallel_batching_story(**targets: str) -> Story:
    story = parallel_story(**targets)
    story.settings(batch=2, batching_max_wait_time_minutes=5)
    return story


def test_only_prs_that_share_a_target_are_batched():
    story = parallel_batching_story(pr1="x", pr2="y", pr3="x")
    story.submit(1, 2, 3)
    assert story.queue_text() == "main ← 1+3…"
    assert story.wait_reason(2) == "waiting_for_batch"
    story.pass_minutes(5)
    assert story.queue_text() == "main ← 1+3… ∥ main ← 2…"


def test_a_pr_joins_no_batch_while_a_pr_it_depends_on_waits_for_another_batch():
    story = parallel_batching_story(pr1="x", pr2="y", pr3="x y")
    story.submit(1, 2, 3)
    assert story.queue_text() == "main"
    assert story.states(1, 2, 3) == ("pending", "pending", "pending")


def test_a_full_batch_behind_starts_in_its_own_lane_at_once():
    story = parallel_batching_story(pr1="x", pr2="y", pr3="y")
    story.submit(1, 2, 3)
    assert story.queue_text() == "main ← 2+3…"


def test_concurrency_counts_the_runs_of_all_lanes():
    story = parallel_story(pr1="x", pr2="y", pr3="z")
    story.settings(concurrency=2)
    story.submit(1, 2, 3)
    assert story.runs() == ((1,), (2,))
    assert story.wait_reason(3) == "waiting_for_slot"


def test_a_pr_that_enters_the_lane_of_a_landing_is_not_overtaken_by_later_prs():
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
    assert story.queue_text() == "main ← 2… ∥ 2 ← 4…"
