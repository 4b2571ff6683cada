"""What lands next: the furthest batch that passed, with everything ahead of it, in one update."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode, LandingMethod, Mode
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.pull_requests import DirectMergeCheck, RequiredStatuses, impacted_targets_from_names
from mergeyard.domain.queue import Landing, LandingPhase
from mergeyard.domain.states import CheckState, PullRequestState, QueueState, Reason
from mergeyard.engine import merging
from tests.support.builders import (
    QueueWorld,
    a_config,
    a_direct_merge_check,
    a_parallel_world,
    a_plain_queue,
    a_submission,
    a_world,
)


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


def test_a_landing_that_is_still_being_read_grows_when_more_passed():
    world = a_world(prs=2)
    world.passes(1)
    world.passes(2)
    assert (lands(world), landing_of(world).number) == ((1, 2), 2)


def test_a_landing_that_was_read_does_not_grow_any_longer():
    world = a_world(prs=2)
    world.passes(1)
    (read,) = world.pending_tasks(t.ReadPullRequests)
    seen = world.host.perform_task(read, world.queue.counters.revision)
    world.apply(seen, world.observe_result(CheckState.PASSED, 2))
    assert (lands(world), landing_of(world).is_intended) == ((1,), True)


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


ALWAYS = DirectMergeMode.ALWAYS


def a_direct_merge_world(*, parallel: bool = False) -> QueueWorld:
    return QueueWorld(a_config(mode=Mode.PARALLEL if parallel else Mode.SINGLE, direct_merge_mode=ALWAYS))


def passed_on_its_head(world: QueueWorld, number: int) -> None:
    """It is open, and all required statuses passed on it."""
    world.open_pull_request(number)
    world.checks.report(world.head(number), ("unit",))


def checked_prs(world: QueueWorld) -> list[int]:
    return [task.number for task in world.pending_tasks(t.CheckDirectMerge) if isinstance(task, t.CheckDirectMerge)]


def test_the_head_of_the_first_waiting_pr_is_checked():
    world = a_direct_merge_world()
    world.submit(1, 2)
    assert checked_prs(world) == [1]


def test_a_pr_that_passed_on_the_current_tip_merges_without_a_run():
    world = a_direct_merge_world()
    passed_on_its_head(world, 1)
    world.submit(1)
    world.perform_pending_tasks()
    assert (world.state(1), world.reason(1), world.queue.runs) == (PullRequestState.MERGED, Reason.MERGED_DIRECTLY, {})


def test_what_merges_directly_has_the_tree_of_its_head():
    world = a_direct_merge_world()
    passed_on_its_head(world, 1)
    world.submit(1)
    world.perform_pending_tasks()
    commits = world.repository.commits
    assert commits[world.host.tip].tree == commits[world.head(1)].tree


def test_a_pr_that_has_not_passed_on_its_head_is_tested():
    world = a_direct_merge_world()
    world.submit(1)
    world.perform(t.CheckDirectMerge)
    assert (checked_prs(world), world.queue_text) == ([], "main ← 1…")


def test_a_pr_that_lacks_a_required_status_is_tested():
    world = a_direct_merge_world()
    passed_on_its_head(world, 1)
    world.apply(
        e.SettingsSaved(config=a_config(direct_merge_mode=ALWAYS, required_statuses=("unit", "lint"))),
        world.build_submission(1),
    )
    world.perform(t.CheckDirectMerge)
    assert world.queue_text == "main ← 1…"


def test_a_pr_that_does_not_contain_the_tip_is_tested():
    world = a_direct_merge_world()
    passed_on_its_head(world, 1)
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    world.submit(1)
    world.perform(t.CheckDirectMerge)
    assert world.queue_text == "main ← 1…"


def test_a_head_is_checked_again_when_the_target_branch_moved():
    world = a_direct_merge_world()
    passed_on_its_head(world, 1)
    world.submit(1)
    world.perform(t.CheckDirectMerge)
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    assert checked_prs(world) == [1]


def test_without_the_setting_every_pr_is_tested():
    world = a_world()
    passed_on_its_head(world, 1)
    world.submit(1)
    assert world.queue_text == "main ← 1…"


def test_while_there_are_active_batches_no_pr_merges_directly():
    world = a_direct_merge_world()
    world.submit(1)
    world.perform(t.CheckDirectMerge)
    passed_on_its_head(world, 2)
    world.submit(2)
    assert (checked_prs(world), world.queue_text) == ([], "main ← 1… ← 2…")


def test_in_parallel_mode_only_the_own_lane_must_be_empty():
    world = a_direct_merge_world(parallel=True)
    world.submit(1, impacted_targets=impacted_targets_from_names("x"))
    world.perform(t.CheckDirectMerge)
    world.submit(2, impacted_targets=impacted_targets_from_names("y"))
    assert checked_prs(world) == [2]


def test_in_parallel_mode_the_own_lane_must_be_empty():
    world = a_direct_merge_world(parallel=True)
    world.submit(1, impacted_targets=impacted_targets_from_names("x"))
    world.perform(t.CheckDirectMerge)
    world.submit(2, impacted_targets=impacted_targets_from_names("x"))
    assert checked_prs(world) == []


def test_a_bisection_prevents_a_direct_merge():
    world = QueueWorld(a_config(batch=2, direct_merge_mode=ALWAYS))
    world.submit(1, 2)
    world.perform(t.CheckDirectMerge)
    world.build()
    world.fails(1, 2)
    world.submit(3)
    assert checked_prs(world) == []


def test_a_pr_that_contains_the_commits_of_a_queued_pr_is_tested():
    world = a_direct_merge_world()
    world.open_pull_request(1)
    world.open_pull_request(2, stacked_on=world.head(1))
    world.apply(world.build_submission(1), world.build_submission(2, priority=50))
    assert (checked_prs(world), world.queue_text) == ([], "main ← 1… ← 2…")


def test_a_pr_that_contains_the_commits_of_a_pr_that_is_not_queued_is_checked():
    world = a_direct_merge_world()
    world.open_pull_request(1)
    world.open_pull_request(2, stacked_on=world.head(1))
    world.submit(2)
    assert checked_prs(world) == [2]


def test_a_pr_that_changes_nothing_does_not_merge_directly():
    world = a_direct_merge_world()
    world.open_pull_request(1, {"README": "hello"})
    world.checks.report(world.head(1), ("unit",))
    world.submit(1)
    world.perform_pending_tasks()
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.NOTHING_TO_MERGE)


def test_a_pr_that_holds_a_removed_commit_does_not_merge_directly():
    """1 landed and was removed from the target branch again; 2 is branched from the target branch with 1."""
    world = a_direct_merge_world()
    passed_on_its_head(world, 1)
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


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (a_direct_merge_check(), True),
        (a_direct_merge_check("another tip"), False),
        (a_direct_merge_check(contains_tip=False), False),
        (a_direct_merge_check(has_changes=False), False),
        (a_direct_merge_check(contains_removed_commit=True), False),
        (a_direct_merge_check(passed=()), False),
        (None, False),
    ],
    ids=[
        "fit",
        "another tip",
        "without the tip",
        "nothing changed",
        "a removed commit",
        "not passed",
        "not checked_prs",
    ],
)
def test_a_pr_qualifies_only_when_the_whole_check_passed(check: DirectMergeCheck | None, expected: bool):
    assert merging.can_merge_directly(a_plain_queue(), replace(a_submission(1), direct_merge_check=check)) is expected


def test_only_in_a_running_queue_a_pr_merges_directly():
    world = a_direct_merge_world()
    world.submit(1)
    world.apply(e.StateRequested(state=QueueState.DRAINING))
    assert (checked_prs(world), world.queue_text) == ([], "main ← 1…")


def test_without_required_statuses_no_pr_merges_directly():
    world = a_direct_merge_world()
    passed_on_its_head(world, 1)
    nothing = e.TargetBranchObserved(
        tip=world.host.tip, observed_at_revision=world.queue.counters.revision, required_statuses=RequiredStatuses()
    )
    world.apply(nothing, world.build_submission(1))
    world.perform(t.CheckDirectMerge)
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.NO_REQUIRED_STATUSES)


def test_without_a_target_branch_no_pr_is_checked():
    world = a_direct_merge_world()
    world.apply(
        e.TargetBranchObserved(
            tip=None, observed_at_revision=world.queue.counters.revision, required_statuses=world.host.required_statuses
        )
    )
    world.submit(1)
    assert checked_prs(world) == []


def test_a_direct_landing_without_intent_is_dropped_when_it_qualifies_no_longer():
    world = a_direct_merge_world()
    passed_on_its_head(world, 1)
    world.submit(1)
    world.perform(t.CheckDirectMerge)
    world.cancel(1)
    assert (world.queue.landing, world.queue.direct_merge_candidate) == (None, None)


def test_a_pr_that_was_pushed_to_before_it_merges_directly_is_cancelled():
    world = a_direct_merge_world()
    passed_on_its_head(world, 1)
    world.submit(1)
    world.perform(t.CheckDirectMerge)
    world.change(1, head=world.repository.commit((world.head(1),), {"more": "more"}, "a push"))
    world.perform(t.ReadPullRequests)
    assert (world.state(1), world.reason(1)) == (PullRequestState.CANCELLED, Reason.PR_PUSHED)


def test_from_intent_to_outcome_the_direct_merge_candidate_stays_the_same():
    world = a_direct_merge_world()
    passed_on_its_head(world, 1)
    world.submit(1)
    world.perform(t.CheckDirectMerge)
    world.save_landing_intent()
    world.submit(2, priority=50)
    assert (checked_prs(world), world.queue.direct_merge_candidate) == (
        [],
        world.queue.submission_by_number[PullRequestNumber(1)],
    )


def pause(world: QueueWorld) -> None:
    world.apply(e.StateRequested(state=QueueState.PAUSED))


def resume(world: QueueWorld) -> None:
    world.apply(e.StateRequested(state=QueueState.RUNNING))


def test_a_pr_that_waited_during_a_pause_is_checked_again():
    """A status that it needs was run once more, and failed."""
    world = a_direct_merge_world()
    passed_on_its_head(world, 1)
    world.submit(1)
    world.perform(t.CheckDirectMerge)
    pause(world)
    world.checks.results[world.head(1)] = {"unit": CheckState.FAILED}
    resume(world)
    world.perform(t.CheckDirectMerge)
    assert (world.queue.landing, world.queue_text) == (None, "main ← 1…")


def test_a_pr_that_did_not_qualify_is_not_checked_again():
    world = a_direct_merge_world()
    world.submit(1)
    world.perform(t.CheckDirectMerge)
    pause(world)
    resume(world)
    assert (checked_prs(world), world.queue_text) == ([], "main ← 1…")


def test_a_head_is_checked_again_when_a_commit_was_removed_from_the_target_branch():
    world = a_direct_merge_world()
    passed_on_its_head(world, 1)
    world.submit(1)
    world.perform(t.CheckDirectMerge)
    gone = frozenset({world.head(1)})
    seen = e.TargetBranchObserved(
        tip=world.host.tip,
        observed_at_revision=world.queue.counters.revision,
        required_statuses=world.host.required_statuses,
        removed_commits=gone,
    )
    world.apply(seen)
    world.perform_pending_tasks()
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.CONTAINS_REMOVED_COMMIT)
