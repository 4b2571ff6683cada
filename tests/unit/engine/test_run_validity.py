"""Whether a run is still valid: what it tested is what would merge now."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import URGENT, LandingMethod, Mode
from mergeyard.domain.ids import RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import ALL_TARGETS, RequiredSource, RequiredStatuses, impacted_targets_from_names
from mergeyard.domain.queue import Batch, LandedCommit, Queue, TargetBranch
from mergeyard.domain.runs import Run, Step
from mergeyard.domain.states import PullRequestState, Reason, RunStatus
from mergeyard.engine import lanes, run_validity
from mergeyard.engine.run_validity import memoize_on
from tests.support.builders import (
    ROOT,
    QueueWorld,
    a_batch,
    a_config,
    a_parallel_world,
    a_plain_queue,
    a_run,
    a_submission,
    a_target_branch,
    a_world,
)


def a_queue_of(*batches: Batch, runs: tuple[Run, ...] = ()) -> Queue:
    """A queue with these active batches; every run belongs to the batch of its last member."""
    submission_ids = [submission_id for batch in batches for submission_id in batch.submission_ids]
    queue = replace(a_plain_queue(*map(a_submission, submission_ids)), waiting={}, runs={run.id: run for run in runs})
    with_runs = (
        replace(batch, runs=tuple(run.id for run in runs if run.stack[-1].submission_id == batch.submission_ids[-1]))
        for batch in batches
    )
    return replace(queue, active=lanes.build_active(with_runs))


def first(queue: Queue) -> Batch:
    return queue.active.batches[0]


def last(queue: Queue) -> Batch:
    return queue.active.batches[-1]


# Validity in a plain queue.


def test_a_run_with_all_prs_ahead_is_valid():
    run = a_run(1, 2)
    queue = a_queue_of(a_batch(1), a_batch(2), runs=(run,))
    assert run_validity.invalidation_reason(queue, last(queue), run) is None


def test_an_invalidated_run_is_not_valid():
    run = replace(a_run(1), invalidated=Reason.QUEUE_RESUMED)
    queue = a_queue_of(a_batch(1), runs=(run,))
    assert run_validity.invalidation_reason(queue, first(queue), run) is Reason.QUEUE_RESUMED


def test_a_run_on_another_base_is_not_valid():
    run = a_run(1, base="another")
    queue = a_queue_of(a_batch(1), runs=(run,))
    assert run_validity.invalidation_reason(queue, first(queue), run) is Reason.TARGET_BRANCH_MOVED


def test_a_run_with_a_pr_that_left_the_batch_is_not_valid():
    run = a_run(1, 2, tests=2)
    queue = a_queue_of(a_batch(1, 2), runs=(run,))
    assert run_validity.invalidation_reason(queue, first(queue), run) is Reason.BATCHMATE_REMOVED


def test_a_run_on_top_of_a_pr_that_left_is_not_valid():
    run = a_run(1, 2)
    queue = a_queue_of(a_batch(2), runs=(run,))
    assert run_validity.invalidation_reason(queue, first(queue), run) is Reason.PREREQUISITE_REMOVED


def test_a_run_without_a_pr_ahead_is_not_valid():
    run = a_run(2)
    queue = a_queue_of(a_batch(1), a_batch(2), runs=(run,))
    assert run_validity.invalidation_reason(queue, last(queue), run) is Reason.DEPENDENCIES_CHANGED


def test_a_run_without_an_urgent_pr_ahead_was_overtaken():
    run = a_run(2)
    queue = a_queue_of(a_batch(1), a_batch(2), runs=(run,))
    urgent = replace(queue.submissions[SubmissionId(1)], priority=URGENT)
    queue = replace(queue, submissions=queue.submissions.put(urgent.id, urgent))
    assert run_validity.invalidation_reason(queue, last(queue), run) is Reason.SKIP_THE_LINE_INTERRUPTED


def test_a_run_on_top_of_the_same_prs_in_another_order_is_not_valid():
    run = a_run(1, 2, 3)
    queue = a_queue_of(a_batch(2), a_batch(1), a_batch(3), runs=(run,))
    assert run_validity.invalidation_reason(queue, last(queue), run) is Reason.ORDER_CHANGED


def test_a_run_can_leave_out_a_pr_ahead():
    run = a_run(2, left_out=frozenset({SubmissionId(1)}))
    queue = a_queue_of(a_batch(1), a_batch(2), runs=(run,))
    assert run_validity.invalidation_reason(queue, last(queue), run) is None


def test_a_run_that_lacks_a_required_status_is_not_valid():
    run = replace(a_run(1), required_statuses=())
    queue = a_queue_of(a_batch(1), runs=(run,))
    assert run_validity.invalidation_reason(queue, first(queue), run) is Reason.REQUIRED_STATUSES_CHANGED


# Validity in a simulated world.


def test_a_foreign_push_starts_every_run_again():
    world = a_world(prs=2)
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    assert [(world.reason(number), world.run_of(number).base) for number in (1, 2)] == [
        (Reason.TARGET_BRANCH_MOVED, world.host.tip)
    ] * 2


def test_runs_behind_a_landing_go_on():
    world = a_world(prs=2)
    behind = world.run_of(2)
    world.passes(1)
    world.perform_pending_tasks()
    assert world.run_of(2) == behind


def test_runs_behind_a_provider_merge_with_the_tested_tree_go_on():
    world = a_world(prs=2, landing=LandingMethod.PROVIDER_MERGE)
    behind = world.run_of(2)
    world.passes(1)
    world.perform_pending_tasks()
    assert (world.run_of(2), world.host.tip != behind.chain[0].commit) == (behind, True)


def test_in_parallel_mode_a_landing_in_another_lane_does_not_invalidate():
    world = a_parallel_world("x", "y")
    other = world.run_of(2)
    world.passes(1)
    world.perform_pending_tasks()
    assert world.run_of(2) == other


def test_in_parallel_mode_another_pr_that_landed_in_the_lane_invalidates():
    run = a_run(2)
    queue = a_queue_of(a_batch(2, impacted_targets=impacted_targets_from_names("x")), runs=(run,))
    history = (
        LandedCommit(ROOT, None),
        LandedCommit(Sha("1"), Sha("tree"), SubmissionId(1), impacted_targets_from_names("x")),
    )
    queue = replace(
        queue, mode=Mode.PARALLEL, target_branch=replace(queue.target_branch, tip=Sha("1"), history=history)
    )
    assert run_validity.invalidation_reason(queue, first(queue), run) is Reason.TARGET_BRANCH_MOVED


def test_in_parallel_mode_another_pr_that_landed_in_another_lane_does_not_invalidate():
    run = a_run(2)
    queue = a_queue_of(a_batch(2, impacted_targets=impacted_targets_from_names("x")), runs=(run,))
    history = (
        LandedCommit(ROOT, None),
        LandedCommit(Sha("1"), Sha("tree"), SubmissionId(1), impacted_targets_from_names("y")),
    )
    queue = replace(
        queue, mode=Mode.PARALLEL, target_branch=replace(queue.target_branch, tip=Sha("1"), history=history)
    )
    assert run_validity.invalidation_reason(queue, first(queue), run) is None


def test_in_parallel_mode_a_pr_ahead_that_landed_before_the_run_was_built_invalidates():
    """Also when it shares no target: the run would be built on top of it a second time."""
    run = replace(a_run(1, 2), chain=())
    queue = a_queue_of(a_batch(2, impacted_targets=impacted_targets_from_names("x")), runs=(run,))
    history = (
        LandedCommit(ROOT, None),
        LandedCommit(Sha("1"), Sha("tree"), SubmissionId(1), impacted_targets_from_names("y")),
    )
    queue = replace(
        queue, mode=Mode.PARALLEL, target_branch=replace(queue.target_branch, tip=Sha("1"), history=history)
    )
    assert run_validity.invalidation_reason(queue, first(queue), run) is Reason.TARGET_BRANCH_MOVED


def test_in_single_mode_only_that_exact_chain_lands():
    """1 landed as another commit than the one that 2 was tested on."""
    run = a_run(1, 2)
    queue = a_queue_of(a_batch(2), runs=(run,))
    history = (LandedCommit(ROOT, None), LandedCommit(Sha("another 1"), Sha("tree of 1"), SubmissionId(1)))
    queue = replace(queue, target_branch=replace(queue.target_branch, tip=Sha("another 1"), history=history))
    assert run_validity.invalidation_reason(queue, first(queue), run) is Reason.TARGET_BRANCH_MOVED


# The target and a run.


def landed(*commits: tuple[int, str]) -> TargetBranch:
    """The target branch after these submissions landed on its root, as these commits."""
    history = [
        LandedCommit(Sha(commit), Sha(f"tree of {commit}"), SubmissionId(submission_id))
        for submission_id, commit in commits
    ]
    return replace(a_target_branch(), tip=history[-1].commit, history=(LandedCommit(ROOT, None), *history))


def test_a_run_is_based_on_a_tip_that_is_its_base():
    assert run_validity.is_on_tip(a_target_branch(), a_run(1))


def test_a_run_is_not_based_on_a_tip_that_moved():
    assert not run_validity.is_on_tip(replace(a_target_branch(), tip=Sha("elsewhere")), a_run(1))


def test_a_run_is_based_on_its_own_steps_that_landed():
    assert run_validity.is_on_tip(landed((1, "1")), a_run(1, 2))


def test_a_run_is_not_based_on_its_steps_that_landed_as_another_commit():
    assert not run_validity.is_on_tip(landed((1, "another 1")), a_run(1, 2))


def with_the_tree_of(step: Step, target: TargetBranch) -> TargetBranch:
    return replace(target, history=(*target.history[:-1], replace(target.history[-1], tree=step.tree)))


def test_a_run_is_not_based_on_another_commit_with_the_same_tree():
    run = replace(a_run(1, 2), landing_method=LandingMethod.PROVIDER_MERGE)
    assert not run_validity.is_on_tip(with_the_tree_of(run.chain[0], landed((1, "another 1"))), run)


def test_a_provider_merge_can_land_on_its_landed_steps_with_the_same_tree():
    run = replace(a_run(1, 2), landing_method=LandingMethod.PROVIDER_MERGE)
    assert run_validity.can_land_unchanged(with_the_tree_of(run.chain[0], landed((1, "another 1"))), run)


def test_a_provider_merge_cannot_land_on_its_landed_steps_with_another_tree():
    run = replace(a_run(1, 2), landing_method=LandingMethod.PROVIDER_MERGE)
    assert not run_validity.can_land_unchanged(landed((1, "another 1")), run)


def test_a_provider_merge_can_land_on_its_base():
    assert run_validity.can_land_unchanged(
        a_target_branch(), replace(a_run(1), landing_method=LandingMethod.PROVIDER_MERGE)
    )


def test_a_tested_commit_can_land_only_on_that_exact_commit():
    run = a_run(1, 2)
    same_tree = with_the_tree_of(run.chain[0], landed((1, "another 1")))
    verdicts = [run_validity.can_land_unchanged(target, run) for target in (landed((1, "1")), same_tree)]
    assert verdicts == [True, False]


def test_a_run_is_not_based_on_what_landed_of_others():
    assert not run_validity.is_on_tip(landed((7, "1")), a_run(1, 2))


def test_a_run_that_is_not_built_is_based_on_nothing_that_landed():
    assert not run_validity.is_on_tip(landed((1, "1")), replace(a_run(1, 2), chain=()))


def test_nothing_has_landed_since_the_tip():
    assert run_validity.landed_since(a_target_branch(), ROOT) == ()


def test_what_the_queue_landed_since_a_base_is_known():
    target = landed((1, "1"), (2, "1+2"))
    assert run_validity.landed_since(target, ROOT) == target.history[1:]


def test_nothing_is_known_of_what_landed_since_a_foreign_base():
    assert run_validity.landed_since(a_target_branch(), Sha("elsewhere")) is None


# Results.


def test_a_run_that_left_out_a_pr_is_not_valid_while_that_pr_is_ahead():
    run = a_run(2, left_out=frozenset({SubmissionId(1)}), status=RunStatus.SUCCEEDED)
    queue = a_queue_of(a_batch(1), a_batch(2), runs=(run,))
    assert not run_validity.has_passed(queue, last(queue))


def test_a_run_that_left_out_a_pr_is_valid_when_that_pr_left():
    run = a_run(2, left_out=frozenset({SubmissionId(1)}), status=RunStatus.SUCCEEDED)
    queue = a_queue_of(a_batch(2), runs=(run,))
    assert run_validity.has_passed(queue, first(queue))


@pytest.mark.parametrize("status", [RunStatus.PREPARING, RunStatus.IN_PROGRESS, RunStatus.FAILED, RunStatus.CANCELLED])
def test_a_batch_whose_run_did_not_succeed_has_not_passed(status: RunStatus):
    queue = a_queue_of(a_batch(1), runs=(a_run(1, status=status),))
    assert not run_validity.has_passed(queue, first(queue))


def test_any_passed_valid_run_counts():
    failed = replace(a_run(1, status=RunStatus.FAILED), id=RunId("failed"))
    passed = replace(a_run(1, status=RunStatus.SUCCEEDED), id=RunId("passed"))
    queue = a_queue_of(a_batch(1), runs=(failed, passed))
    assert run_validity.passed_run(queue, first(queue)) == passed


def test_a_batch_without_a_run_has_no_current_one():
    queue = a_queue_of(a_batch(1))
    assert (run_validity.current_run(queue, first(queue)), run_validity.failed_run(queue, first(queue))) == (None, None)


def test_a_batch_is_cleared_by_a_passed_batch_behind_it():
    queue = a_queue_of(a_batch(1), a_batch(2), runs=(a_run(1, 2, status=RunStatus.SUCCEEDED),))
    assert run_validity.is_cleared(replace(queue, config=a_config(depth=0)), first(queue))


def test_without_optimistic_merging_no_batch_is_cleared():
    queue = a_queue_of(a_batch(1), a_batch(2), runs=(a_run(1, 2, status=RunStatus.SUCCEEDED),))
    assert not run_validity.is_cleared(queue, first(queue))


def test_a_batch_is_not_cleared_by_a_batch_that_does_not_depend_on_it():
    queue = a_queue_of(
        a_batch(1, impacted_targets=impacted_targets_from_names("x")),
        a_batch(2, impacted_targets=impacted_targets_from_names("y")),
        runs=(a_run(2, status=RunStatus.SUCCEEDED),),
    )
    assert not run_validity.is_cleared(replace(queue, config=a_config(depth=0)), first(queue))


def test_a_failed_run_is_repeated_while_there_are_retries():
    queue = replace(a_queue_of(), config=a_config(test_retries=1))
    assert run_validity.must_be_repeated(queue, a_run(1, status=RunStatus.FAILED))


def test_a_failed_run_is_not_repeated_when_the_retries_are_used_up():
    queue = replace(a_queue_of(), config=a_config(test_retries=1))
    assert not run_validity.must_be_repeated(queue, replace(a_run(1, status=RunStatus.FAILED), attempt=1))


def test_a_restarted_run_is_repeated_in_any_case():
    assert run_validity.must_be_repeated(
        a_queue_of(), replace(a_run(1, status=RunStatus.CANCELLED), restart_requested=True)
    )


def test_a_run_that_is_repeated_has_not_failed_for_good():
    queue = replace(a_queue_of(), config=a_config(test_retries=1))
    assert not run_validity.has_failed_finally(queue, a_run(1, status=RunStatus.FAILED))


# Bound by a landing.


def a_world_with_an_intended_landing() -> QueueWorld:
    """1 is being merged, 2 is behind."""
    world = a_world(prs=2)
    world.passes(1)
    world.save_landing_intent()
    return world


def test_from_intent_to_outcome_a_landing_binds_its_own():
    world = a_world_with_an_intended_landing()
    assert run_validity.is_locked_by_landing(world.queue, world.submission_id(1))


def test_a_landing_does_not_bind_others():
    world = a_world_with_an_intended_landing()
    assert not run_validity.is_locked_by_landing(world.queue, world.submission_id(2))


def test_a_landing_without_intent_binds_no_pr():
    world = a_world(prs=1)
    world.passes(1)
    assert not run_validity.is_locked_by_landing(world.queue, world.submission_id(1))


def test_settings_do_not_touch_prs_that_are_being_merged():
    world = a_world_with_an_intended_landing()
    world.apply(e.SettingsSaved(config=a_config(required_statuses=("unit", "lint"))))
    world.perform(t.Land)
    assert world.state(1) is PullRequestState.MERGED


def test_a_run_of_a_pr_that_impacts_everything_goes_on_when_the_prs_ahead_have_landed():
    world = a_parallel_world("x")
    world.submit(2, impacted_targets=ALL_TARGETS)
    world.build()
    run = world.run_of(2)
    world.passes(1)
    world.perform_pending_tasks()
    assert world.state(1) is PullRequestState.MERGED
    assert world.run_of(2) == run


def asking_for(required: RequiredStatuses, *, settings: tuple[str, ...] | None = None) -> Queue:
    queue = a_plain_queue(config=a_config(required_statuses=settings))
    return replace(queue, target_branch=replace(queue.target_branch, required_statuses=required))


def test_the_queue_setting_comes_first():
    queue = asking_for(RequiredStatuses(("unit",)), settings=("lint",))
    assert run_validity.required_statuses(queue) == RequiredStatuses(("lint",), RequiredSource.MERGE_INSTANCE)


def test_without_a_queue_setting_the_repository_counts():
    required = RequiredStatuses(("unit",), RequiredSource.BRANCH_PROTECTION)
    assert run_validity.required_statuses(asking_for(required)) == required


def test_a_repository_with_statuses_lacks_nothing():
    assert run_validity.untestable_reason(asking_for(RequiredStatuses(("unit",)))) is None


def test_without_required_statuses_nothing_is_tested():
    assert run_validity.untestable_reason(asking_for(RequiredStatuses())) is Reason.NO_REQUIRED_STATUSES


def test_an_unreadable_configuration_prevents_testing():
    broken = RequiredStatuses(("unit",), config_error="line 3")
    assert run_validity.untestable_reason(asking_for(broken)) is Reason.CONFIG_INVALID


def test_the_queue_setting_replaces_an_unreadable_configuration():
    broken = RequiredStatuses(config_error="line 3")
    assert run_validity.untestable_reason(asking_for(broken, settings=("lint",))) is None


def test_a_run_with_the_current_statuses_counts():
    assert run_validity.outgrown_reason(asking_for(RequiredStatuses(("unit",))), a_run(1)) is None


def test_a_run_with_more_than_the_current_statuses_counts():
    run = replace(a_run(1), required_statuses=("unit", "lint"))
    assert run_validity.outgrown_reason(asking_for(RequiredStatuses(("unit",))), run) is None


def test_a_run_with_fewer_than_the_current_statuses_counts_no_longer():
    queue = asking_for(RequiredStatuses(("unit", "lint")))
    assert run_validity.outgrown_reason(queue, a_run(1)) is Reason.REQUIRED_STATUSES_CHANGED


def test_when_more_statuses_are_required_an_active_run_starts_again():
    world = a_world(prs=1)
    world.apply(e.SettingsSaved(config=a_config(required_statuses=("unit", "lint"))))
    assert (world.reason(1), world.run_of(1).required_statuses) == (Reason.REQUIRED_STATUSES_CHANGED, ("unit", "lint"))


def test_when_more_statuses_are_required_a_passed_pr_is_retested():
    world = a_world(prs=2)
    world.passes(2)
    world.apply(e.SettingsSaved(config=a_config(required_statuses=("unit", "lint"))))
    assert (world.state(2), world.reason(2)) == (PullRequestState.PENDING, Reason.REQUIRED_STATUSES_CHANGED)


def test_when_fewer_statuses_are_required_an_active_run_goes_on_without_the_others():
    world = a_world(prs=1, required_statuses=("unit", "lint"))
    run = world.run_of(1)
    world.apply(e.SettingsSaved(config=a_config(required_statuses=("unit",))))
    assert world.run_of(1) == replace(run, required_statuses=("unit",))


def counting_runs() -> tuple[Callable[[Queue], int], list[Queue]]:
    calls = list[Queue]()

    @memoize_on("active", "runs")
    def count(queue: Queue) -> int:
        calls.append(queue)
        return len(queue.runs)

    return count, calls


def test_a_memoized_function_runs_once_for_the_same_parts():
    count, calls = counting_runs()
    queue = a_plain_queue()
    assert [count(queue), count(replace(queue, state_reason="else"))] == [0, 0]
    assert calls == [queue]


def test_a_memoized_function_runs_again_when_a_part_is_another_object():
    count, calls = counting_runs()
    queue = a_plain_queue()
    other = replace(queue, runs={})
    assert [count(queue), count(other)] == [0, 0]
    assert len(calls) == 2
