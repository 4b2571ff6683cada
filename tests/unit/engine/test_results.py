"""Results of tasks: runs built or refused, branches deleted, landings and their outcomes, audit mismatches."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode, LandingMethod, MergeMethod
from mergeyard.domain.events import Mismatch, MismatchKind
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.queue import Landing
from mergeyard.domain.runs import Step
from mergeyard.domain.states import CheckState, Mergeability, PullRequestState, QueueState, Reason, RunStatus
from mergeyard.engine import run_lifecycle
from mergeyard.engine.blame import base_runs
from mergeyard.engine.results import MAX_REPORTED_MISMATCHES, record_run_built
from mergeyard.engine.tasks import pending_tasks
from tests.support.builders import (
    QueueWorld,
    a_config,
    a_failed_prefix_on_an_untested_tip,
    a_parallel_world,
    a_plain_queue,
    a_run,
    a_step,
    a_wait_reason,
    a_world,
)
from tests.support.world.world import START_TIME


def refuse(world: QueueWorld, number: int, refusal: e.BuildRefusal) -> None:
    """The run of this pull request cannot be built, because of itself."""
    run = world.run_of(number)
    world.apply(
        e.RunBuildRefused(
            run=run.id, submission_id=world.submission_id(number), refusal=refusal, detail="the host says no"
        )
    )


# Built.


def test_a_run_is_in_progress_once_its_branch_is_pushed():
    world = a_world()
    world.submit(1)
    world.advance_time(500)
    world.build()
    run = world.run_of(1)
    assert (run.status, run.started_at, run.pushed) == (RunStatus.IN_PROGRESS, world.now, True)


def test_its_prs_are_in_test_once_its_branch_is_pushed():
    world = a_world()
    world.submit(1)
    assert world.state(1) is PullRequestState.PENDING
    world.build()
    assert (world.state(1), world.submission(1).run) == (PullRequestState.TESTING, world.run_of(1).id)


def test_runs_that_continue_a_chain_can_be_built_when_it_is_built():
    world = a_world()
    world.submit(1, 2, 3)
    world.perform(t.BuildRun)
    runs = [world.run_of(2), world.run_of(3)]
    assert [(run.extends, run.chain) for run in runs] == [
        (None, world.run_of(1).chain),
        (world.run_of(2).id, world.run_of(1).chain),
    ]


def test_runs_that_continue_a_chain_take_only_the_steps_of_prs_ahead():
    world = a_world(prs=2)
    world.restart(2)
    world.submit(3)
    world.passes(1)
    world.perform(t.ReadPullRequests)
    world.perform(t.Land)
    world.build()
    world.submit(4)
    world.build()
    assert world.run_of(4).chain[0].parent == world.host.tip


def test_a_run_that_is_built_twice_stays_as_it_was():
    world = a_world(prs=1)
    run = world.run_of(1)
    before = world.queue
    world.apply(e.RunBuilt(run=run.id, steps=run.chain))
    assert world.queue is before


def test_a_branch_that_was_pushed_for_a_run_that_is_over_is_deleted():
    """Restarted while its next run was being built, in a queue that was paused in between."""
    world = a_world(prs=1, test_retries=1)
    world.fails(1)
    run = world.run_of(1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.restart(1)
    world.apply(e.RunBuilt(run=run.id, steps=(a_step("too late"),)))
    assert t.DeleteBranch(run=run.id) in world.pending_tasks(t.DeleteBranch)


# Built, with the checks of the head.


def build_with_head_checks(required: tuple[str, ...] = ("unit",), **checks: CheckState) -> QueueWorld:
    """1 is on the tip, and its head has these checks."""
    world = a_world(direct_merge_mode=DirectMergeMode.ALWAYS, required_statuses=required)
    world.open_pull_request(1)
    world.checks.results[world.head(1)] = checks
    world.submit(1)
    world.build()
    return world


@pytest.mark.parametrize("state", [CheckState.PASSED, CheckState.NEUTRAL])
def test_a_run_passes_with_the_satisfied_checks_of_the_head(state: CheckState):
    world = build_with_head_checks(unit=state)
    run = world.run_of(1)
    assert (run.status, run.used_head_checks, run.checks) == (RunStatus.SUCCEEDED, True, {"unit": state})
    assert world.state(1) is PullRequestState.TESTS_PASSED


@pytest.mark.parametrize("state", [CheckState.PENDING, CheckState.FAILED])
def test_a_run_whose_head_has_an_unsatisfied_check_is_tested(state: CheckState):
    world = build_with_head_checks(unit=state)
    run = world.run_of(1)
    assert (run.status, run.used_head_checks, run.checks) == (RunStatus.IN_PROGRESS, False, {})


def test_a_run_whose_head_lacks_a_required_check_is_tested():
    world = build_with_head_checks(("unit", "lint"), unit=CheckState.PASSED)
    assert world.state(1) is PullRequestState.TESTING


def test_a_run_whose_head_has_another_tree_is_tested():
    world = a_world(direct_merge_mode=DirectMergeMode.ALWAYS)
    world.open_pull_request(1)
    world.checks.report(world.head(1), ("unit",))
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    world.submit(1)
    world.build()
    assert world.state(1) is PullRequestState.TESTING


def test_a_run_without_required_checks_does_not_pass_with_those_of_the_head():
    run = replace(a_run(1, status=RunStatus.PREPARING), chain=(), required_statuses=())
    built = e.RunBuilt(run=run.id, steps=(a_step("1"),), head_checks={"unit": CheckState.PASSED})
    queue = record_run_built(run_lifecycle.put_run(a_plain_queue(), run), built, START_TIME)
    assert queue.runs[run.id].status is RunStatus.IN_PROGRESS


def test_a_run_that_passed_with_the_checks_of_the_head_leaves_no_duration_for_estimates():
    assert build_with_head_checks(unit=CheckState.PASSED).queue.durations == ()


def test_a_pr_that_passed_with_the_checks_of_its_head_is_merged_directly():
    world = build_with_head_checks(unit=CheckState.PASSED)
    run = world.run_of(1)
    world.save_landing_intent()
    world.perform(t.Land)
    assert (world.state(1), world.reason(1)) == (PullRequestState.MERGED, Reason.MERGED_DIRECTLY)
    assert (world.submission(1).verified_by, world.submission(1).merged_sha) == (run.id, run.tip)


def test_a_pr_that_lands_with_a_tested_pr_behind_it_is_merged_by_the_queue():
    world = build_with_head_checks(unit=CheckState.PASSED)
    world.apply(e.TargetBranchDirty())
    world.submit(2)
    world.build()
    world.passes(2)
    world.perform_pending_tasks()
    assert [world.reason(number) for number in (1, 2)] == [Reason.MERGED_BY_QUEUE] * 2


# Refused.

FOR_GOOD = {
    e.BuildRefusal.CONFLICTS_WITH_TARGET: Reason.MERGE_CONFLICT,
    e.BuildRefusal.CONTAINS_REMOVED_COMMIT: Reason.CONTAINS_REMOVED_COMMIT,
    e.BuildRefusal.NOTHING_TO_MERGE: Reason.NOTHING_TO_MERGE,
    e.BuildRefusal.TOO_LARGE: Reason.PR_TOO_LARGE,
    e.BuildRefusal.INVALID_TREE: Reason.INVALID_TREE,
    e.BuildRefusal.BREAKS_CONFIG: Reason.BREAKS_CONFIG,
    e.BuildRefusal.REBASE_DIFFERS: Reason.REBASE_DIFFERS,
    e.BuildRefusal.REFUSED: Reason.START_REFUSED,
}


@pytest.mark.parametrize(("refusal", "reason"), FOR_GOOD.items())
def test_a_pr_that_cannot_be_built_fails(refusal: e.BuildRefusal, reason: Reason):
    world = a_world()
    world.submit(1)
    refuse(world, 1, refusal)
    assert (world.state(1), world.reason(1), world.submission(1).detail) == (
        PullRequestState.FAILED,
        reason,
        "the host says no",
    )


def test_a_pr_whose_build_exceeds_a_limit_is_built_again_and_fails_the_second_time():
    world = a_world()
    world.submit(1)
    before = pending_tasks(world.queue)
    refuse(world, 1, e.BuildRefusal.LIMIT_EXCEEDED)
    assert (world.state(1), pending_tasks(world.queue)) == (PullRequestState.PENDING, before)
    refuse(world, 1, e.BuildRefusal.LIMIT_EXCEEDED)
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.PR_TOO_LARGE)


def test_a_pr_whose_build_exceeds_a_limit_has_a_second_attempt_again_after_a_build_within_the_limits():
    world = a_world()
    world.submit(1)
    refuse(world, 1, e.BuildRefusal.LIMIT_EXCEEDED)
    world.build()
    assert world.state(1) is PullRequestState.TESTING
    world.apply(e.RestartRequested(number=world.submission(1).number))
    refuse(world, 1, e.BuildRefusal.LIMIT_EXCEEDED)
    assert world.state(1) is PullRequestState.PENDING


def test_prs_behind_a_pr_that_cannot_be_built_go_on_without_it():
    world = a_world()
    world.submit(1, 2)
    refuse(world, 1, e.BuildRefusal.NOTHING_TO_MERGE)
    assert world.queue_text == "main ← 2…"


def test_batchmates_of_a_pr_that_cannot_be_built_go_on_without_it():
    world = a_world(batch=2)
    world.submit(1, 2)
    run = world.run_of(1, 2)
    world.apply(
        e.RunBuildRefused(run=run.id, submission_id=world.submission_id(1), refusal=e.BuildRefusal.NOTHING_TO_MERGE)
    )
    assert world.queue_text == "main ← 2…"


def test_a_pr_that_the_target_contains_is_merged():
    world = a_world()
    world.submit(1)
    refuse(world, 1, e.BuildRefusal.ALREADY_CONTAINED)
    assert (world.state(1), world.reason(1), world.queue.target_branch.refresh_requested) == (
        *(PullRequestState.MERGED, Reason.MERGED_MANUALLY),
        True,
    )


def test_a_run_that_the_host_does_not_let_start_pauses_the_queue_and_fails_no_pr():
    world = a_world()
    world.submit(1)
    decision = world.apply(e.RunStartRefused(run=world.run_of(1).id, detail="no drafts here"))
    assert (world.queue.state, world.queue.state_reason) == (QueueState.PAUSED, "no drafts here")
    assert [entry.reason for entry in decision.journal] == [Reason.TEST_BRANCH_REFUSED]
    assert world.state(1) is PullRequestState.PENDING


def test_a_run_that_the_host_does_not_let_start_is_built_when_the_queue_is_resumed():
    world = a_world()
    world.submit(1)
    run = world.run_of(1).id
    world.apply(e.RunStartRefused(run=run, detail="no drafts here"))
    assert (pending_tasks(world.queue), world.wait_reason(1)) == ((), a_wait_reason(Reason.QUEUE_PAUSED))
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    assert [task.run for task in pending_tasks(world.queue) if isinstance(task, t.BuildRun)] == [run]


def test_a_run_that_has_started_is_not_refused_any_more():
    world = a_world(prs=1)
    world.apply(e.RunStartRefused(run=world.run_of(1).id, detail="too late"))
    assert world.queue.state is QueueState.RUNNING


def test_a_pr_under_test_whose_next_run_cannot_be_built_fails():
    world = a_world(prs=1, test_retries=1)
    world.fails(1)
    refuse(world, 1, e.BuildRefusal.REFUSED)
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.START_REFUSED)


def test_a_pr_that_a_run_behind_cleared_fails_when_its_next_run_cannot_be_built():
    world = a_world(prs=2, depth=1, test_retries=1)
    world.fails(1)
    world.passes(2)
    refuse(world, 1, e.BuildRefusal.REFUSED)
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.START_REFUSED)


def test_a_pr_under_test_whose_next_run_conflicts_with_the_active_batches_is_held():
    """Its retry uses another method, by which it conflicts."""
    world = a_world(prs=2, test_retries=1)
    world.apply(e.SettingsSaved(config=a_config(test_retries=1, merge_method=MergeMethod.REBASE)))
    world.fails(2)
    refuse(world, 2, e.BuildRefusal.CONFLICTS_WITH_STACK)
    assert (world.queue_text, world.wait_reason(2)) == ("main ← 1…", a_wait_reason(Reason.CONFLICTS_WITH_PR_AHEAD, 1))


def test_a_refusal_does_not_touch_prs_that_are_being_merged():
    world = a_world(prs=2, depth=1, test_retries=1)
    world.fails(1)
    world.passes(2)
    world.save_landing_intent()
    before = world.queue
    refuse(world, 1, e.BuildRefusal.REFUSED)
    assert world.queue is before
    world.perform(t.Land)
    assert world.state(1) is PullRequestState.MERGED


def test_when_a_pr_ahead_cannot_be_built_the_prs_on_top_of_it_wait_for_its_own_run():
    world = a_world()
    world.submit(1, 2)
    refused = e.RunBuildRefused(
        run=world.run_of(2).id, submission_id=world.submission_id(1), refusal=e.BuildRefusal.NOTHING_TO_MERGE
    )
    world.apply(refused)
    assert (world.queue_text, world.state(1), world.wait_reason(2)) == (
        *("main ← 1…", PullRequestState.PENDING),
        a_wait_reason(Reason.CONFLICTS_WITH_PR_AHEAD, 1),
    )


def test_a_refusal_of_a_run_that_is_built_is_ignored():
    world = a_world(prs=1)
    before = world.queue
    refuse(world, 1, e.BuildRefusal.REFUSED)
    assert world.queue is before


@pytest.mark.parametrize("refusal", e.BuildRefusal)
def test_a_refusal_because_of_a_pr_that_left_in_the_same_decision_is_ignored(refusal: e.BuildRefusal):
    world = a_world(batch=2)
    world.submit(1, 2)
    refused = e.RunBuildRefused(run=world.run_of(1, 2).id, submission_id=world.submission_id(2), refusal=refusal)
    world.apply(e.CancelRequested(number=PullRequestNumber(2)), refused)
    assert (world.queue_text, world.reason(2)) == ("main ← 1…", Reason.CANCELLED_BY_USER)


@pytest.mark.parametrize("refusal", e.BuildRefusal)
def test_prs_whose_run_was_refused_because_of_a_pr_ahead_that_left_are_retested(refusal: e.BuildRefusal):
    world = a_world()
    world.submit(1, 2)
    run = world.run_of(2)
    refused = e.RunBuildRefused(run=run.id, submission_id=world.submission_id(1), refusal=refusal)
    world.apply(e.CancelRequested(number=PullRequestNumber(1)), refused)
    assert (world.queue_text, world.run_of(2).id != run.id) == ("main ← 2…", True)


def test_a_commit_removed_from_the_target_never_comes_back():
    world = a_world(prs=1)
    leaked = world.head(1)
    world.passes(1)
    before = world.host.tip
    world.perform_pending_tasks()
    world.repository.refs["main"] = before
    world.apply(e.TargetBranchDirty())
    world.perform_pending_tasks()
    world.open_pull_request(2, stacked_on=leaked)
    world.submit(2)
    world.perform_pending_tasks()
    assert (world.state(2), world.reason(2)) == (PullRequestState.FAILED, Reason.CONTAINS_REMOVED_COMMIT)


# Deleted.


def test_a_branch_that_was_deleted_is_not_deleted_again():
    world = a_world(prs=1)
    world.cancel(1)
    world.perform(t.DeleteBranch)
    assert (world.pending_tasks(t.DeleteBranch), world.queue.runs) == ((), {})


def test_a_branch_that_never_existed_cannot_be_deleted():
    world = a_world()
    world.submit(1)
    before = world.queue
    world.apply(e.BranchDeleted(run=world.run_of(1).id), e.BranchDeleted(run=RunId("a strange one")))
    assert world.queue is before


def test_deleting_a_branch_does_not_change_the_result_of_its_run():
    world = a_world(prs=2)
    world.fails(2)
    failed_run = world.run_of(2)
    world.perform(t.DeleteBranch)
    assert world.run_of(2) == replace(failed_run, pushed=False)


# Base commit missing.


def test_a_run_whose_base_commit_is_missing_is_built_again_from_its_base():
    world = a_world(prs=1)
    world.submit(2)
    world.apply(e.BaseCommitMissing(run=world.run_of(2).id))
    (task,) = [task for task in pending_tasks(world.queue) if isinstance(task, t.BuildRun)]
    assert (task.onto, task.built_members) == (task.base, ())
    assert [member.number for member in task.members] == [1, 2]


def test_a_bisection_whose_base_commit_is_missing_is_over():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    probe = world.queue.bisections[0].runs[0]
    world.apply(e.BaseCommitMissing(run=probe))
    assert (world.queue.bisections, world.state(1), world.reason(1)) == (
        (),
        PullRequestState.PENDING,
        Reason.BASE_COMMIT_MISSING,
    )


def test_no_pr_fails_on_a_base_commit_that_is_missing():
    world = a_failed_prefix_on_an_untested_tip()
    (base_run,) = base_runs(world.queue).values()
    preparing = replace(base_run, status=RunStatus.PREPARING, chain=())
    world.queue = replace(world.queue, runs={**world.queue.runs, base_run.id: preparing})
    world.apply(e.BaseCommitMissing(run=base_run.id))
    assert (world.queue.bisections, world.state(3), world.reason(3)) == (
        (),
        PullRequestState.PENDING,
        Reason.BASE_COMMIT_MISSING,
    )


def test_a_run_whose_base_commit_is_missing_waits_for_a_read_of_the_target_branch():
    world = a_world()
    world.submit(1)
    world.apply(e.BaseCommitMissing(run=world.run_of(1).id))
    assert t.ReadTargetBranch in map(type, pending_tasks(world.queue))


def test_a_bisection_on_another_base_goes_on():
    world = a_world(prs=2, batch=2, depth=None)
    world.fails(1, 2)
    world.build()
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    world.submit(3, no_batch=True)
    world.apply(e.BaseCommitMissing(run=world.run_of(3).id))
    assert len(world.queue.bisections) == 1


def test_a_missing_base_commit_does_not_matter_for_a_run_that_is_built():
    world = a_world(prs=2)
    before = world.queue
    world.apply(e.BaseCommitMissing(run=world.run_of(2).id))
    assert world.queue is before


def landing_of(world: QueueWorld) -> Landing:
    assert world.queue.landing is not None
    return world.queue.landing


def a_world_with_a_landing_being_read(prs: int = 2) -> QueueWorld:
    """All of these passed, and are to be read before they land."""
    world = a_world(prs=prs)
    world.apply(*[world.observe_result(CheckState.PASSED, number) for number in range(1, prs + 1)])
    return world


def a_world_with_an_intended_landing(prs: int = 1) -> QueueWorld:
    world = a_world_with_a_landing_being_read(prs)
    world.save_landing_intent()
    return world


def a_world_with_provider_merges(prs: int = 2, *, refusing: int) -> QueueWorld:
    """The provider merges pull requests one by one and refuses this one."""
    world = a_world(prs=prs, landing=LandingMethod.PROVIDER_MERGE)
    world.host.refused_numbers.add(PullRequestNumber(refusing))
    world.apply(*[world.observe_result(CheckState.PASSED, number) for number in range(1, prs + 1)])
    world.save_landing_intent()
    world.perform(t.Land)
    return world


def a_world_with_a_landing_being_rebased(*, clash: bool = False) -> QueueWorld:
    """1 landed, and 2 of another lane has to be rebased onto it; both change the same file if they clash."""
    world = a_parallel_world()
    for number, lane in (1, "x"), (2, "y"):
        world.open_pull_request(number, {"shared": "same"} if clash else None)
        world.apply(world.build_submission(number, impacted_targets=impacted_targets_from_names(lane)))
    world.build()
    world.passes(1)
    world.perform_pending_tasks()
    world.passes(2)
    return world


def with_other_trees(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(replace(step, tree=Sha("another tree")) for step in steps)


# Read.


def test_a_pr_that_was_closed_before_landing_leaves():
    world = a_world_with_a_landing_being_read()
    world.change(2, is_open=False)
    world.perform(t.ReadPullRequests)
    assert (world.reason(2), [member.number for member in landing_of(world).members]) == (Reason.PR_CLOSED, [1])


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"base_branch": "elsewhere"}, Reason.PR_BASE_CHANGED), ({"draft": True}, Reason.PR_CONVERTED_TO_DRAFT)],
)
def test_a_pr_that_changed_before_landing_leaves(change: dict[str, object], reason: Reason):
    world = a_world_with_a_landing_being_read(1)
    world.change(1, **change)
    world.perform(t.ReadPullRequests)
    assert (world.state(1), world.reason(1)) == (PullRequestState.CANCELLED, reason)


def test_a_pr_that_is_no_longer_mergeable_is_not_ready():
    world = a_world_with_a_landing_being_read()
    world.change(2, mergeability=Mergeability.NOT_MERGEABLE)
    world.perform(t.ReadPullRequests)
    assert (world.state(2), world.reason(2)) == (PullRequestState.NOT_READY, Reason.NO_LONGER_MERGEABLE)


def test_the_others_land_without_a_pr_that_is_no_longer_mergeable():
    world = a_world_with_a_landing_being_read()
    world.change(2, mergeability=Mergeability.NOT_MERGEABLE)
    world.perform_pending_tasks()
    assert world.state(1) is PullRequestState.MERGED


def test_a_pr_that_was_forced_lands_also_when_not_mergeable():
    world = a_world()
    world.submit(1, forced=True)
    world.build()
    world.passes(1)
    world.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    world.perform_pending_tasks()
    assert world.state(1) is PullRequestState.MERGED


def test_while_mergeability_is_unknown_nothing_lands():
    world = a_world_with_a_landing_being_read(1)
    world.change(1, mergeability=Mergeability.UNKNOWN)
    world.perform(t.ReadPullRequests)
    assert (landing_of(world).is_intended, world.state(1)) == (False, PullRequestState.TESTS_PASSED)


def test_a_pr_whose_last_read_exceeds_a_limit_does_not_land_and_fails_the_second_time():
    world = a_world_with_a_landing_being_read(1)
    world.change(1, exceeded_limit="git needs too much memory.")
    world.perform(t.ReadPullRequests)
    assert (landing_of(world).is_intended, world.state(1)) == (False, PullRequestState.TESTS_PASSED)
    world.perform(t.ReadPullRequests)
    assert (world.queue.landing, world.state(1)) == (None, PullRequestState.FAILED)


def test_a_read_of_other_prs_is_ignored():
    world = a_world_with_a_landing_being_read()
    pulls = (world.host.read_pull_request(PullRequestNumber(1)),)
    world.apply(
        e.LandingPullRequestsRead(
            landing=landing_of(world).number, pull_requests=pulls, observed_at_revision=world.queue.counters.revision
        )
    )
    assert not landing_of(world).is_intended


def test_a_read_that_began_before_the_last_observation_was_recorded_is_ignored():
    world = a_world_with_a_landing_being_read(1)
    (read,) = world.pending_tasks(t.ReadPullRequests)
    outdated = world.host.perform_task(read, world.queue.counters.revision)
    world.change(1, title="another title")
    world.apply(world.observe_pull_request(1))
    world.apply(outdated)
    assert not landing_of(world).is_intended


def test_a_read_during_which_a_pr_changed_is_repeated():
    world = a_world_with_a_landing_being_read(1)
    (read,) = world.pending_tasks(t.ReadPullRequests)
    outdated = world.host.perform_task(read, world.queue.counters.revision)
    world.apply(e.PullRequestDirty(number=PullRequestNumber(1)))
    world.apply(outdated)
    assert not landing_of(world).is_intended
    world.perform(t.ReadPullRequests)
    assert landing_of(world).is_intended


def test_a_pr_that_left_in_the_same_decision_does_not_land():
    world = a_world_with_a_landing_being_read()
    (read,) = world.pending_tasks(t.ReadPullRequests)
    seen = world.host.perform_task(read, world.queue.counters.revision)
    world.apply(e.CancelRequested(number=PullRequestNumber(2)), seen)
    assert (world.state(2), [member.number for member in landing_of(world).members]) == (
        PullRequestState.CANCELLED,
        [1],
    )


def test_a_pr_that_is_no_longer_mergeable_can_be_read_twice_in_one_decision():
    world = a_world_with_a_landing_being_read(1)
    world.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    world.apply(world.observe_pull_request(1))
    (read,) = world.pending_tasks(t.ReadPullRequests)
    seen = world.host.perform_task(read, world.queue.counters.revision)
    world.apply(seen, seen)
    assert (world.state(1), world.reason(1)) == (PullRequestState.NOT_READY, Reason.NO_LONGER_MERGEABLE)


def test_a_second_read_changes_nothing():
    world = a_world_with_a_landing_being_read(1)
    (read,) = world.pending_tasks(t.ReadPullRequests)
    seen = world.host.perform_task(read, world.queue.counters.revision)
    world.apply(seen)
    before = world.queue
    world.apply(seen)
    assert world.queue is before


# Rebased.


def test_a_rebased_landing_is_read_next():
    world = a_world_with_a_landing_being_rebased()
    world.perform(t.RebaseLanding)
    assert world.pending_tasks(t.ReadPullRequests) == (
        t.ReadPullRequests(landing=landing_of(world).number, numbers=(PullRequestNumber(2),)),
    )


def test_a_second_rebase_changes_nothing():
    world = a_world_with_a_landing_being_rebased()
    (rebase,) = world.pending_tasks(t.RebaseLanding)
    rebased = world.host.perform_task(rebase, 0)
    world.apply(rebased)
    before = world.queue
    world.apply(rebased)
    assert world.queue is before


def test_if_the_new_tip_changed_the_same_paths_the_pr_is_retested_on_it():
    world = a_world_with_a_landing_being_rebased(clash=True)
    world.perform(t.RebaseLanding)
    assert (world.reason(2), world.queue.landing, world.run_of(2).base) == (
        *(Reason.TARGET_BRANCH_MOVED, None),
        world.host.tip,
    )


def test_a_refused_rebase_of_a_landing_that_is_rebased_is_ignored():
    world = a_world_with_a_landing_being_rebased()
    world.perform(t.RebaseLanding)
    before = world.queue
    world.apply(e.LandingRebaseRefused(landing=landing_of(world).number))
    assert world.queue is before


def test_a_rebased_landing_shows_nothing_about_the_new_tip():
    world = a_world_with_a_landing_being_rebased()
    world.perform_pending_tasks()
    assert world.state(2) is PullRequestState.MERGED
    assert world.host.tip not in world.queue.target_branch.passed_bases


# Succeeded.


def test_prs_that_landed_are_merged():
    world = a_world_with_an_intended_landing(2)
    world.perform(t.Land)
    assert [(world.state(number), world.reason(number)) for number in (1, 2)] == [
        (PullRequestState.MERGED, Reason.MERGED_BY_QUEUE)
    ] * 2


def test_merged_prs_name_their_commit_and_run():
    world = a_world_with_an_intended_landing(2)
    run = world.run_of(2)
    world.perform(t.Land)
    assert [(world.submission(number).merged_sha, world.submission(number).verified_by) for number in (1, 2)] == [
        (step.commit, run.id) for step in run.chain
    ]


def test_only_a_landing_on_a_moved_tip_is_called_rebased():
    world = a_world_with_a_landing_being_rebased()
    world.perform_pending_tasks()
    assert [world.submission(number).rebased for number in (1, 2)] == [False, True]


def test_the_target_branch_is_at_the_landed_commit():
    world = a_world_with_an_intended_landing()
    world.perform(t.Land)
    assert (world.queue.target_branch.tip, world.queue.landing) == (world.host.tip, None)


def test_the_history_contains_what_landed():
    world = a_world(prs=3)
    submission_id, run = world.submission_id(1), world.run_of(1)
    world.passes(1)
    world.perform_pending_tasks()
    landed = world.queue.target_branch.history[-1]
    assert (landed.commit, landed.tree, landed.submission_id) == (run.tip, run.chain[-1].tree, submission_id)


def test_what_landed_as_tested_is_a_base_that_is_known_to_pass():
    world = a_world_with_an_intended_landing()
    world.perform(t.Land)
    assert world.host.tip in world.queue.target_branch.passed_bases


def test_a_landing_that_was_withdrawn_has_its_run_repeated():
    world = a_world_with_an_intended_landing()
    before = world.run_of(1).id
    world.apply(e.LandingMissed(landing=landing_of(world).number, test_branch_moved=True))
    assert world.run_of(1).id != before


@pytest.mark.parametrize("kind", [e.LandingSucceeded, e.LandingMissed, e.LandingRefused, e.LandingOutcomeUnknown])
def test_without_an_intent_nothing_can_have_landed(kind: type[e.Event]):
    world = a_world_with_a_landing_being_read()
    number, steps = landing_of(world).number, landing_of(world).steps
    outcomes: dict[type[e.Event], e.Event] = {
        e.LandingSucceeded: e.LandingSucceeded(landing=number, steps=steps),
        e.LandingMissed: e.LandingMissed(landing=number),
        e.LandingRefused: e.LandingRefused(landing=number, detail="no"),
        e.LandingOutcomeUnknown: e.LandingOutcomeUnknown(landing=number),
    }
    before = world.queue
    world.apply(outcomes[kind])
    assert world.queue is before


def test_a_landing_with_another_tree_is_merged_and_reported():
    world = a_world_with_an_intended_landing()
    landing = landing_of(world)
    world.apply(e.LandingSucceeded(landing=landing.number, steps=with_other_trees(landing.steps)))
    assert (world.state(1), world.reason(1)) == (PullRequestState.MERGED, Reason.TREE_MISMATCH)


def test_a_landing_with_another_tree_pauses_the_queue():
    world = a_world_with_an_intended_landing()
    landing = landing_of(world)
    decision = world.apply(e.LandingSucceeded(landing=landing.number, steps=with_other_trees(landing.steps)))
    reasons = [entry.reason for entry in decision.journal if isinstance(entry, QueueChanged)]
    assert (world.queue.state, reasons) == (QueueState.PAUSED, [Reason.TREE_MISMATCH])


def test_a_landing_with_another_tree_is_not_a_base_that_is_known_to_pass():
    world = a_world_with_an_intended_landing()
    landing = landing_of(world)
    world.apply(e.LandingSucceeded(landing=landing.number, steps=with_other_trees(landing.steps)))
    assert world.queue.target_branch.tip not in world.queue.target_branch.passed_bases


def test_prs_behind_a_landing_with_another_tree_are_retested():
    world = a_parallel_world("x", "x", landing=LandingMethod.PROVIDER_MERGE)
    world.apply(world.observe_result(CheckState.PASSED, 1), world.observe_result(CheckState.PASSED, 2))
    world.save_landing_intent()
    landing = landing_of(world)
    world.apply(e.LandingMissed(landing=landing.number, steps=with_other_trees(landing.steps[:1])))
    assert (world.state(1), world.reason(1)) == (PullRequestState.MERGED, Reason.TREE_MISMATCH)
    assert (world.state(2), world.reason(2)) == (PullRequestState.PENDING, Reason.TARGET_BRANCH_MOVED)


def test_when_the_tip_was_removed_before_a_merge_a_read_shows_the_removed_commits():
    world = a_world_with_an_intended_landing()
    landing, known = landing_of(world), world.queue.target_branch.tip
    elsewhere = tuple(replace(step, parent=Sha("elsewhere")) for step in landing.steps)
    world.apply(e.LandingSucceeded(landing=landing.number, steps=elsewhere))
    assert (world.reason(1), world.queue.state) == (Reason.TREE_MISMATCH, QueueState.PAUSED)
    assert world.pending_tasks(t.ReadTargetBranch) == (t.ReadTargetBranch(known_tip=known),)


def test_when_a_merge_was_removed_before_the_next_a_read_shows_the_removed_commits():
    world = a_world(prs=2, landing=LandingMethod.PROVIDER_MERGE)
    world.apply(world.observe_result(CheckState.PASSED, 1), world.observe_result(CheckState.PASSED, 2))
    world.save_landing_intent()
    landing = landing_of(world)
    first, second = landing.steps
    world.apply(e.LandingSucceeded(landing=landing.number, steps=(first, replace(second, parent=first.parent))))
    assert (world.reason(2), world.queue.state) == (Reason.TREE_MISMATCH, QueueState.PAUSED)
    assert world.pending_tasks(t.ReadTargetBranch) == (t.ReadTargetBranch(known_tip=first.commit),)


# Missed.


def test_a_missed_landing_changes_no_pr():
    world = a_world_with_an_intended_landing()
    world.apply(e.LandingMissed(landing=landing_of(world).number))
    assert (world.state(1), world.queue.landing) == (PullRequestState.TESTS_PASSED, None)


def test_after_a_missed_landing_the_target_branch_is_read():
    world = a_world_with_an_intended_landing()
    world.apply(e.LandingMissed(landing=landing_of(world).number))
    assert world.queue.target_branch.refresh_requested


def test_a_landing_that_missed_a_foreign_push_is_retested_on_it():
    world = a_world_with_an_intended_landing()
    world.push_to_target_branch({"other": "other"})
    world.perform(t.Land)
    world.perform(t.ReadTargetBranch)
    assert (world.reason(1), world.run_of(1).base) == (Reason.TARGET_BRANCH_MOVED, world.host.tip)


def test_what_landed_before_the_landing_missed_is_merged():
    world = a_world(prs=2, landing=LandingMethod.PROVIDER_MERGE)
    world.apply(world.observe_result(CheckState.PASSED, 1), world.observe_result(CheckState.PASSED, 2))
    world.save_landing_intent()
    landing = landing_of(world)
    world.apply(e.LandingMissed(landing=landing.number, steps=landing.steps[:1]))
    assert (world.state(1), world.state(2)) == (PullRequestState.MERGED, PullRequestState.TESTS_PASSED)


# Refused.


def test_a_refused_landing_pauses_the_queue_with_the_message_of_the_host():
    world = a_world_with_an_intended_landing()
    world.apply(e.LandingRefused(landing=landing_of(world).number, detail="protected branch"))
    assert (world.queue.state, world.queue.state_reason) == (QueueState.PAUSED, "protected branch")


def test_a_refused_landing_fails_no_pr():
    world = a_world_with_an_intended_landing()
    world.apply(e.LandingRefused(landing=landing_of(world).number, detail="protected branch"))
    assert (world.state(1), world.queue.landing) == (PullRequestState.TESTS_PASSED, None)


def test_a_refused_landing_is_tried_again_when_the_queue_is_resumed():
    world = a_world_with_an_intended_landing()
    world.apply(e.LandingRefused(landing=landing_of(world).number, detail="protected branch"))
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    world.perform_pending_tasks()
    assert world.state(1) is PullRequestState.MERGED


def test_a_resumed_queue_has_no_message():
    world = a_world_with_an_intended_landing()
    world.apply(e.LandingRefused(landing=landing_of(world).number, detail="protected branch"))
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    assert world.queue.state_reason == ""


def test_a_landing_refused_in_a_paused_queue_records_the_message():
    world = a_world_with_an_intended_landing()
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    decision = world.apply(e.LandingRefused(landing=landing_of(world).number, detail="protected branch"))
    assert (world.queue.state_reason, [entry.reason for entry in decision.journal]) == (
        "protected branch",
        [Reason.LANDING_REFUSED],
    )


def test_a_pr_that_the_host_names_fails_with_the_message_of_the_host():
    world = a_world_with_an_intended_landing()
    world.apply(
        e.LandingRefused(landing=landing_of(world).number, detail="not you", submission_id=world.submission_id(1))
    )
    assert (world.state(1), world.reason(1), world.submission(1).detail) == (
        PullRequestState.FAILED,
        Reason.MERGE_REFUSED,
        "not you",
    )


def test_a_refusal_that_names_a_pr_does_not_pause_the_queue():
    world = a_world_with_an_intended_landing()
    world.apply(
        e.LandingRefused(landing=landing_of(world).number, detail="not you", submission_id=world.submission_id(1))
    )
    assert world.queue.state is QueueState.RUNNING


# The provider's merge.


def test_a_provider_merges_one_by_one():
    world = a_world_with_provider_merges(refusing=99)
    assert [(world.state(number), world.reason(number)) for number in (1, 2)] == [
        (PullRequestState.MERGED, Reason.MERGED_BY_QUEUE)
    ] * 2


def test_a_refusal_at_the_second_keeps_the_first():
    world = a_world_with_provider_merges(refusing=2)
    assert (world.state(1), world.state(2), world.reason(2)) == (
        *(PullRequestState.MERGED, PullRequestState.FAILED),
        Reason.MERGE_REFUSED,
    )


def test_prs_behind_the_refused_pr_are_retested():
    world = a_world_with_provider_merges(3, refusing=2)
    assert (world.queue_text, world.state(3)) == ("main ← 3…", PullRequestState.PENDING)


def test_the_rest_of_a_batch_that_the_provider_merged_in_part_is_tested_again():
    world = a_world(prs=3, batch=3, landing=LandingMethod.PROVIDER_MERGE)
    world.host.refused_numbers.add(PullRequestNumber(2))
    world.passes(1, 2, 3)
    world.save_landing_intent()
    world.perform(t.Land)
    assert ([world.state(number) for number in (1, 2, 3)], world.queue_text) == (
        [PullRequestState.MERGED, PullRequestState.FAILED, PullRequestState.PENDING],
        "main ← 3…",
    )


def test_a_partly_landed_batch_is_not_a_base_that_is_known_to_pass():
    world = a_world(prs=2, batch=2, landing=LandingMethod.PROVIDER_MERGE)
    world.host.refused_numbers.add(PullRequestNumber(2))
    world.passes(1, 2)
    world.save_landing_intent()
    world.perform(t.Land)
    assert world.host.tip not in world.queue.target_branch.passed_bases


# Outcome unknown.


def test_when_the_outcome_is_unknown_the_prs_are_cancelled():
    world = a_world_with_an_intended_landing(2)
    world.apply(e.LandingOutcomeUnknown(landing=landing_of(world).number))
    assert [(world.state(number), world.reason(number)) for number in (1, 2)] == [
        (PullRequestState.CANCELLED, Reason.LANDING_UNKNOWN)
    ] * 2


def test_when_the_outcome_is_unknown_the_target_branch_is_read():
    world = a_world_with_an_intended_landing()
    world.apply(e.LandingOutcomeUnknown(landing=landing_of(world).number))
    assert (world.queue.target_branch.refresh_requested, world.queue.landing) == (True, None)


def test_a_landing_whose_test_branch_is_gone_is_not_pushed_again():
    world = a_world_with_an_intended_landing()
    world.repository.refs.pop(world.run_of(1).id)
    world.perform(t.Land)
    assert (world.reason(1), world.host.tip) == (Reason.LANDING_UNKNOWN, world.repository.root)


# Audit mismatches.


def a_mismatch(number: int, message: str = "Compare it.") -> Mismatch:
    return Mismatch(
        kind=MismatchKind.OTHER_TREE, commit=Sha(f"commit {number}"), number=PullRequestNumber(number), message=message
    )


def audit_mismatch_found(*numbers: int) -> e.AuditMismatchFound:
    return e.AuditMismatchFound(mismatches=tuple(map(a_mismatch, numbers)))


def reported_reasons(world: QueueWorld, event: e.Event) -> list[Reason]:
    return [entry.reason for entry in world.apply(event).journal if isinstance(entry, QueueChanged)]


@pytest.mark.parametrize("state", [QueueState.RUNNING, QueueState.DRAINING])
def test_a_mismatch_pauses_the_queue_with_its_reason(state: QueueState):
    world = a_world()
    world.apply(e.StateRequested(state=state))
    assert reported_reasons(world, audit_mismatch_found(1)) == [Reason.AUDIT_MISMATCH]
    assert (world.queue.state, world.queue.state_reason) == (QueueState.PAUSED, "Compare it.")


def test_a_mismatch_in_a_paused_queue_is_reported_too():
    world = a_world()
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    assert reported_reasons(world, audit_mismatch_found(1)) == [Reason.AUDIT_MISMATCH]
    assert world.queue.state_reason == "Compare it."


def test_the_same_mismatch_is_reported_once_whatever_its_message():
    world = a_world()
    world.apply(audit_mismatch_found(1))
    before = world.queue
    world.apply(e.AuditMismatchFound(mismatches=(a_mismatch(1, "Another message."),)))
    assert world.queue is before


def test_a_resumed_queue_is_not_paused_again_by_the_same_mismatch():
    world = a_world()
    world.apply(audit_mismatch_found(1))
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    world.apply(audit_mismatch_found(1))
    assert (world.queue.state, world.queue.state_reason) == (QueueState.RUNNING, "")


def test_another_mismatch_pauses_it_again():
    world = a_world()
    world.apply(audit_mismatch_found(1))
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    world.apply(audit_mismatch_found(1, 2))
    assert world.queue.state is QueueState.PAUSED


def test_of_many_mismatches_the_first_are_reported_and_the_others_counted():
    world = a_world()
    world.apply(audit_mismatch_found(1, 2, 3, 4, 5))
    assert (
        world.queue.state_reason == "Compare it. Compare it. Compare it. 2 more: run `mergeyard verify` to list them."
    )


def test_the_recorded_mismatches_do_not_grow_without_limit():
    world = a_world()
    world.apply(audit_mismatch_found(*range(1, MAX_REPORTED_MISMATCHES + 10)))
    assert len(world.queue.target_branch.reported_mismatches) == MAX_REPORTED_MISMATCHES
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    world.apply(audit_mismatch_found(MAX_REPORTED_MISMATCHES))
    assert world.queue.state is QueueState.RUNNING


def test_a_mismatch_moves_no_pr():
    world = a_world(prs=2)
    before = world.queue_text
    world.apply(audit_mismatch_found(1))
    assert world.queue_text == before
