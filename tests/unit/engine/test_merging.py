"""What lands next: the furthest batch that passed, with everything ahead of it, in one update."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode, LandingMethod, MergeMethod
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.queue import Landing, LandingPhase
from mergeyard.domain.states import CheckState, PullRequestState, QueueState, Reason
from tests.support.builders import QueueWorld, a_config, a_parallel_world, a_world


def landing_of(world: QueueWorld) -> Landing:
    assert world.queue.landing is not None
    return world.queue.landing


def lands(world: QueueWorld) -> tuple[int, ...]:
    """The numbers of those that are about to land."""
    landing = world.queue.landing
    return () if landing is None else tuple(member.number for member in landing.members)


def all_pass(world: QueueWorld, *numbers: int) -> None:
    world.apply(*[world.observe_result(CheckState.PASSED, number) for number in numbers])


# What lands.


def test_a_pr_that_passed_at_the_front_lands():
    world = a_world(prs=2)
    world.passes(1)
    assert lands(world) == (1,)


def test_a_pr_that_passed_behind_others_waits_for_them():
    world = a_world(prs=2)
    world.passes(2)
    assert lands(world) == ()


def test_everything_up_to_the_furthest_that_passed_lands_in_one_update():
    world = a_world(prs=3)
    world.passes(2)
    world.passes(1)
    assert lands(world) == (1, 2)


def test_prs_that_passed_in_the_same_decision_land_in_one_update():
    world = a_world(prs=3)
    tip = world.run_of(3).tip
    all_pass(world, 1, 2, 3)
    world.perform_pending_tasks()
    assert (world.host.tip, set(world.concluded_submissions)) == (tip, {1, 2, 3})


def test_prs_merge_in_whatever_order_the_results_come():
    world = a_world(prs=3)
    for number in 3, 1, 2:
        world.passes(number)
        world.perform_pending_tasks()
    assert [world.state(number) for number in (1, 2, 3)] == [PullRequestState.MERGED] * 3


def test_with_optimistic_merging_a_pr_that_passed_lands_with_all_prs_ahead():
    world = a_world(prs=2, depth=0)
    world.passes(2)
    assert lands(world) == (1, 2)


def test_in_parallel_mode_only_what_it_depends_on_comes_along():
    world = a_parallel_world("x", "y", "x")
    all_pass(world, 1, 2, 3)
    assert lands(world) == (1, 3)


def test_a_landing_moves_the_target_from_the_tip_that_we_know_to_the_tip_that_was_tested():
    world = a_world(prs=2)
    run = world.run_of(2)
    all_pass(world, 1, 2)
    landing = landing_of(world)
    assert (landing.expected_tip, landing.steps, landing.run, landing.test_branch_tip) == (
        *(world.host.tip, run.chain),
        *(run.id, run.tip),
    )


def test_a_landing_of_the_rest_goes_on_from_what_landed():
    world = a_world(prs=2)
    run = world.run_of(2)
    world.passes(1)
    world.perform_pending_tasks()
    world.passes(2)
    assert (landing_of(world).expected_tip, landing_of(world).steps) == (run.chain[0].commit, run.chain[1:])


def test_a_landing_uses_the_method_of_its_run():
    world = a_world(prs=1, landing=LandingMethod.PROVIDER_MERGE)
    world.apply(e.SettingsSaved(config=a_config(landing=LandingMethod.TESTED_COMMIT)))
    world.passes(1)
    assert landing_of(world).landing_method is LandingMethod.PROVIDER_MERGE


def test_landings_are_numbered():
    world = a_world(prs=2)
    world.passes(1)
    world.perform_pending_tasks()
    world.passes(2)
    assert landing_of(world).number == 2


def test_of_interchangeable_commits_the_one_lands_that_other_runs_contain():
    world = a_world(prs=2)
    behind = world.run_of(2)
    world.restart(1)
    world.build()
    world.passes(1)
    assert landing_of(world).steps == behind.chain[:1]


def test_of_interchangeable_commits_of_another_merge_method_none_lands():
    world = a_world(prs=1)
    before = world.run_of(1)
    world.apply(e.SettingsSaved(config=replace(world.queue.config, merge_method=MergeMethod.SQUASH)))
    world.submit(2)
    world.build()
    behind = world.run_of(2)
    assert behind.chain[0].is_interchangeable_with(before.chain[0])
    assert behind.chain[0] != before.chain[0]
    world.passes(1)
    assert landing_of(world).steps == before.chain


def test_without_others_the_tested_commit_itself_lands():
    world = a_world(prs=1)
    world.restart(1)
    world.build()
    world.passes(1)
    assert landing_of(world).steps == world.run_of(1).chain


# From the choice to the intent.


def test_before_the_intent_is_saved_its_prs_are_read():
    world = a_world(prs=1)
    world.passes(1)
    assert (landing_of(world).phase, world.pending_tasks(t.Land)) == (LandingPhase.READING, ())


def test_the_intent_is_saved_when_its_prs_were_read():
    world = a_world(prs=1)
    world.passes(1)
    world.perform(t.ReadPullRequests)
    assert landing_of(world).phase is LandingPhase.INTENDED


def test_a_landing_that_is_being_read_is_kept_when_more_passed():
    world = a_world(prs=2)
    world.passes(1)
    before = landing_of(world)
    world.passes(2)
    assert landing_of(world) == before
    world.perform_pending_tasks()
    assert [push.task.members[-1].number for push in world.host.pushes] == [1, 2]


def test_a_landing_that_is_still_being_read_is_kept_when_another_lane_passed():
    world = a_parallel_world("x", "y")
    world.passes(1)
    before = landing_of(world)
    world.passes(2)
    assert landing_of(world) == before


def test_a_landing_without_intent_is_dropped_when_a_member_leaves():
    world = a_world(prs=2)
    all_pass(world, 1, 2)
    world.cancel(2)
    assert (lands(world), landing_of(world).number) == ((1,), 2)


def test_a_landing_without_intent_is_dropped_when_its_run_is_no_longer_valid():
    world = a_world(prs=1)
    world.passes(1)
    world.apply(e.SettingsSaved(config=a_config(required_statuses=("unit", "lint"))))
    assert lands(world) == ()


def test_a_landing_without_intent_is_dropped_when_the_queue_pauses():
    world = a_world(prs=1)
    world.passes(1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    assert lands(world) == ()


def test_a_landing_without_intent_is_dropped_when_the_target_must_be_read_again():
    world = a_world(prs=1)
    world.passes(1)
    world.apply(e.TargetBranchDirty())
    assert lands(world) == ()


def test_while_the_target_must_be_read_again_nothing_lands():
    world = a_world(prs=1)
    world.apply(e.TargetBranchDirty())
    world.passes(1)
    assert lands(world) == ()


def test_when_the_target_was_read_and_has_not_moved_it_lands():
    world = a_world(prs=1)
    world.apply(e.TargetBranchDirty())
    world.passes(1)
    world.perform_pending_tasks()
    assert world.state(1) is PullRequestState.MERGED


@pytest.mark.parametrize("state", [QueueState.PAUSED])
def test_in_a_paused_queue_nothing_lands(state: QueueState):
    world = a_world(prs=1)
    world.apply(e.StateRequested(state=state))
    world.passes(1)
    assert lands(world) == ()


def test_in_a_draining_queue_what_passed_lands():
    world = a_world(prs=1)
    world.apply(e.StateRequested(state=QueueState.DRAINING))
    world.passes(1)
    assert lands(world) == (1,)


def test_an_intended_landing_stays_when_the_queue_pauses():
    world = a_world(prs=1)
    world.passes(1)
    world.save_landing_intent()
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    assert landing_of(world).is_intended


def test_there_is_one_landing_at_a_time():
    world = a_parallel_world("x", "y")
    world.passes(1)
    world.save_landing_intent()
    world.passes(2)
    assert lands(world) == (1,)


# Rebased landings.


def test_a_landing_is_rebased_when_the_tip_moved_in_another_lane():
    world = a_parallel_world("x", "y")
    world.passes(1)
    world.perform_pending_tasks()
    world.passes(2)
    landing = landing_of(world)
    assert (landing.phase, landing.rebased, landing.tested_steps) == (
        LandingPhase.REBASING,
        True,
        world.run_of(2).chain,
    )


def test_a_rebased_landing_puts_the_tested_contents_on_the_tip():
    world = a_parallel_world("x", "y")
    all_pass(world, 1, 2)
    world.perform_pending_tasks()
    assert world.repository.commits[world.host.tip].files == {
        "README": "hello",
        "file1": "pr1",
        "file2": "pr2",
    }


def test_a_rebased_landing_whose_target_moves_again_is_rebased_again():
    world = a_parallel_world("x", "y")
    world.passes(1)
    world.perform_pending_tasks()
    world.passes(2)
    before = landing_of(world)
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    assert (landing_of(world).phase, landing_of(world).number) == (LandingPhase.REBASING, before.number + 1)


def test_a_run_on_top_of_two_lanes_is_still_a_fast_forward_when_both_landed():
    world = a_parallel_world("x", "y", "xy")
    run = world.run_of(3)
    for number in 1, 2, 3:
        world.passes(number)
        world.perform_pending_tasks()
    assert world.host.tip == run.tip


def test_without_a_target_branch_nothing_lands():
    world = a_parallel_world("x")
    world.submit(2, impacted_targets=impacted_targets_from_names("y"))
    world.build()
    world.apply(
        e.TargetBranchObserved(
            tip=None, observed_at_revision=world.queue.counters.revision, required_statuses=world.host.required_statuses
        )
    )
    assert (lands(world), world.queue_text) == ((), "main ← 1 ∥ main ← 2")


# Direct merges.


def a_world_with_a_passed_head() -> QueueWorld:
    """1 is open on the tip, and all required checks passed on its head."""
    world = a_world(direct_merge_mode=DirectMergeMode.ALWAYS)
    world.open_pull_request(1)
    world.checks.report(world.head(1), ("unit",))
    return world


def test_what_merges_directly_is_the_tip_of_its_run():
    world = a_world_with_a_passed_head()
    world.submit(1)
    world.build()
    run = world.run_of(1)
    landing = landing_of(world)
    assert (landing.run, landing.steps, landing.test_branch_tip) == (run.id, run.chain, run.tip)
    commits = world.repository.commits
    assert commits[run.tip].tree == commits[world.head(1)].tree


def test_a_pr_that_changes_nothing_does_not_merge_directly():
    world = a_world(direct_merge_mode=DirectMergeMode.ALWAYS)
    world.open_pull_request(1, {"README": "hello"})
    world.checks.report(world.head(1), ("unit",))
    world.submit(1)
    world.perform_pending_tasks()
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.NOTHING_TO_MERGE)


def test_a_pr_that_contains_a_removed_commit_does_not_merge_directly():
    """1 landed and was removed from the target branch again; 2 is branched from the target branch with 1."""
    world = a_world_with_a_passed_head()
    before = world.host.tip
    world.submit(1)
    world.perform_pending_tasks()
    world.open_pull_request(2)
    world.checks.report(world.head(2), ("unit",))
    world.repository.refs["main"] = before
    world.apply(e.TargetBranchDirty())
    world.perform_pending_tasks()
    world.submit(2)
    world.perform_pending_tasks()
    assert (world.state(2), world.reason(2)) == (PullRequestState.FAILED, Reason.CONTAINS_REMOVED_COMMIT)


def test_a_pr_that_passed_on_its_head_is_tested_again_when_a_commit_is_removed_from_the_target_branch():
    world = a_world_with_a_passed_head()
    world.submit(1)
    world.build()
    seen = e.TargetBranchObserved(
        tip=world.host.tip,
        observed_at_revision=world.queue.counters.revision,
        required_statuses=world.host.required_statuses,
        removed_commits=frozenset({world.head(1)}),
    )
    world.apply(seen)
    world.perform_pending_tasks()
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.CONTAINS_REMOVED_COMMIT)
