"""Which pull requests a failed run blames: those in its stack for which no other cause is left."""

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import Sha
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PullRequestState, QueueState, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import blame
from mergeyard.engine.blame import BaseHealth, Blame
from tests.support.builders import (
    ROOT,
    QueueWorld,
    a_config,
    a_failed_prefix_on_an_untested_tip,
    a_parallel_world,
    a_plain_queue,
    a_run,
    a_world,
)


def blame_of(world: QueueWorld, place: int = 0) -> Blame | None:
    return blame.blame_for(world.queue, world.queue.active.batches[place])


def awaited(world: QueueWorld) -> list[tuple[int, ...]]:
    """The submissions of the batches that the first waits for."""
    return [batch.submission_ids for batch in blame.awaited_successors(world.queue, world.queue.active.batches[0])]


def test_a_failed_batch_with_nothing_ahead_is_blamed():
    world = a_world(prs=1, base_passed=False)
    failed_run = world.run_of(1)
    world.fails(1)
    found = blame_of(world)
    assert found is not None
    assert (found.run.id, found.submission_ids) == (failed_run.id, (world.submission_id(1),))


def test_a_batch_under_test_is_not_blamed():
    assert blame_of(a_world(prs=1)) is None


def test_while_something_is_ahead_no_pr_is_blamed():
    world = a_world(prs=2)
    world.fails(2)
    assert blame_of(world, place=1) is None


def test_in_parallel_mode_only_what_is_ahead_in_the_lane_counts():
    world = a_parallel_world("x", "y", base_passed=False)
    world.fails(2)
    assert blame_of(world, place=1) is not None


def test_a_run_that_is_to_be_repeated_blames_no_pr():
    world = a_world(prs=2, test_retries=1)
    world.apply(e.SettingsSaved(config=a_config(test_retries=1, concurrency=1)))
    world.fails(1)
    assert blame_of(world) is None


def test_a_cleared_pr_is_not_blamed():
    world = a_world(prs=2, depth=1)
    world.passes(2)
    world.fails(1)
    assert blame_of(world) is None


def test_a_pr_whose_successors_are_under_test_is_not_blamed_yet():
    world = a_world(prs=2, depth=1)
    world.fails(1)
    assert (blame_of(world), awaited(world)) == (None, [(2,)])


def test_successors_beyond_the_depth_are_not_awaited():
    world = a_world(prs=3, depth=1, base_passed=False)
    world.fails(2)
    world.fails(1)
    assert blame_of(world) is not None


def test_successors_within_the_depth_are_awaited():
    world = a_world(prs=3, depth=2)
    world.fails(2)
    world.fails(1)
    assert blame_of(world) is None


def test_only_those_within_the_depth_are_awaited():
    world = a_world(prs=4, depth=2)
    world.fails(1)
    assert awaited(world) == [(2,), (3,)]


def test_of_the_prs_within_the_depth_only_those_under_test_are_awaited():
    world = a_world(prs=3, depth=2)
    world.fails(2)
    world.fails(1)
    assert awaited(world) == [(3,)]


def test_without_optimistic_merging_successors_are_not_awaited():
    world = a_world(prs=2, base_passed=False)
    world.fails(1)
    assert blame_of(world) is not None


def test_an_untested_base_of_a_blame_is_in_question():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    assert blame.untested_bases(world.queue) == {world.host.tip}


def test_a_tested_base_of_a_blame_is_not_in_question():
    world = a_world(prs=1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.fails(1)
    assert [each.run for each in blame.all_blames(world.queue)] == [world.run_of(1)]
    assert blame.untested_bases(world.queue) == frozenset()


def test_one_base_run_is_for_all_prs_that_failed_on_the_base():
    world = a_parallel_world("x", "y", base_passed=False)
    world.fails(1)
    world.fails(2)
    assert world.queue_text == "main ← 1✗ ∥ main ← 2✗ ?"


def test_a_run_of_others_that_passed_does_not_show_that_the_base_passes():
    """The others can repair what is broken in the base."""
    world = a_parallel_world("x", "y", base_passed=False)
    world.fails(1)
    world.passes(2)
    assert (world.queue_text, world.state(1)) == ("main ← 1✗ ∥ main ← 2✓ ?", PullRequestState.PENDING_FAILURE)


def test_an_untested_base_of_a_confirming_run_is_in_question():
    """1 merged, a user pushed while the queue was paused, and 2 fails again on that untested commit."""
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.build()
    world.passes(1)
    world.save_landing_intent()
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.perform(t.Land)
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    world.build()
    world.fails(2)
    assert blame.untested_bases(world.queue) == {world.host.tip}


def test_a_pr_that_failed_alone_in_a_bisection_is_blamed():
    world = a_failed_prefix_on_an_untested_tip()
    assert [each.submission_ids for each in blame.all_blames(world.queue)] == [(world.submission_id(3),)]


def test_an_untested_base_of_a_failed_prefix_is_in_question():
    world = a_failed_prefix_on_an_untested_tip()
    assert blame.untested_bases(world.queue) == {world.host.tip}


def test_a_suspect_that_failed_with_others_is_not_blamed():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.build()
    world.passes(1)
    assert list(blame.all_blames(world.queue)) == []


FAILED_RUN = a_run(1, status=RunStatus.FAILED)
UNTESTED = a_plain_queue()


def test_an_untested_base_is_unknown():
    assert blame.base_health(UNTESTED, FAILED_RUN) is BaseHealth.UNKNOWN


def test_a_base_whose_base_run_passed_is_known_to_pass():
    assert blame.base_health(blame.record_passed_base(UNTESTED, ROOT), FAILED_RUN) is BaseHealth.PASSING


def test_merged_prs_ahead_of_the_blamed_pr_count_as_part_of_the_base():
    queue = blame.record_passed_base(UNTESTED, Sha("1"))
    assert blame.base_health(queue, a_run(1, 2, status=RunStatus.FAILED)) is BaseHealth.PASSING


def test_a_base_whose_base_run_failed_is_broken():
    assert blame.base_health(blame.record_broken_base(UNTESTED, ROOT, Instant(0)), FAILED_RUN) is BaseHealth.BROKEN


def test_a_broken_base_that_is_not_the_tip_is_not_tested_again_by_itself():
    assert blame.record_broken_base(UNTESTED, Sha("older"), Instant(0)).target_branch.base_retry is None


def test_a_base_whose_base_runs_passed_and_failed_is_known_to_pass():
    queue = blame.record_broken_base(blame.record_passed_base(UNTESTED, ROOT), ROOT, Instant(0))
    assert blame.base_health(queue, FAILED_RUN) is BaseHealth.PASSING


def test_of_several_base_runs_of_a_commit_the_latest_counts():
    world = a_world(prs=1, base_passed=False, test_retries=1)
    for _ in range(2):
        world.fails(1)
        world.build()
    world.fails()
    latest = blame.base_runs(world.queue)[world.host.tip]
    assert (latest.kind, latest.attempt) == (RunKind.BASE, 1)


def test_a_tip_that_landed_as_tested_is_known_to_pass():
    world = a_world(prs=1)
    world.passes(1)
    world.perform_pending_tasks()
    assert world.host.tip in world.queue.target_branch.passed_bases


def test_a_pr_that_failed_on_an_untested_base_waits_for_a_base_run():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    assert (world.state(1), world.queue_text) == (PullRequestState.PENDING_FAILURE, "main ← 1✗ ?")


def test_a_pr_that_failed_on_a_base_whose_base_run_passed_fails():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    world.build()
    world.passes()
    assert world.state(1) is PullRequestState.FAILED
