"""Which pull requests are ready, admitted, held, or not ready again."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Mode
from mergeyard.domain.pull_requests import ImpactedTargets, PullRequest, RequiredStatuses, impacted_targets_from_names
from mergeyard.domain.states import CheckState, Mergeability, PullRequestState, QueueState, Reason
from mergeyard.engine import blame
from mergeyard.engine.admission import not_ready_reason
from mergeyard.engine.blame import BaseHealth
from tests.support.builders import (
    QueueWorld,
    a_config,
    a_parallel_world,
    a_plain_queue,
    a_pull_request,
    a_submission,
    a_wait_reason,
    a_world,
)

SINGLE = a_plain_queue()
PARALLEL = a_plain_queue(config=a_config(mode=Mode.PARALLEL))


def reason_not_ready(pull: PullRequest, *, forced: bool = False) -> Reason | None:
    return not_ready_reason(SINGLE, a_submission(pull_request=pull, forced=forced))


def a_world_in_state(state: QueueState) -> QueueWorld:
    world = a_world()
    world.apply(e.StateRequested(state=state))
    world.submit(1)
    return world


def test_an_open_mergeable_pr_on_the_target_is_ready():
    assert reason_not_ready(a_pull_request()) is None


def test_a_pr_on_another_branch_is_not_ready():
    assert reason_not_ready(a_pull_request(base="elsewhere")) is Reason.BASE_BRANCH_MISMATCH


def test_a_pr_that_is_a_draft_is_not_ready():
    assert reason_not_ready(a_pull_request(draft=True)) is Reason.DRAFT


def test_a_pr_that_the_host_calls_not_mergeable_is_not_ready():
    assert reason_not_ready(a_pull_request(mergeability=Mergeability.NOT_MERGEABLE)) is Reason.NOT_MERGEABLE


@pytest.mark.parametrize("mergeability", [Mergeability.UNKNOWN, Mergeability.CHECKING])
def test_a_pr_of_unknown_mergeability_waits(mergeability: Mergeability):
    assert reason_not_ready(a_pull_request(mergeability=mergeability)) is Reason.MERGEABILITY_UNKNOWN


@pytest.mark.parametrize("mergeability", list(Mergeability))
def test_a_forced_pr_does_not_wait_for_mergeability(mergeability: Mergeability):
    assert reason_not_ready(a_pull_request(mergeability=mergeability), forced=True) is None


def test_a_forced_draft_is_not_ready():
    assert reason_not_ready(a_pull_request(draft=True), forced=True) is Reason.DRAFT


def test_a_forced_pr_on_another_branch_is_not_ready():
    assert reason_not_ready(a_pull_request(base="elsewhere"), forced=True) is Reason.BASE_BRANCH_MISMATCH


@pytest.mark.parametrize("forced", [False, True])
def test_in_parallel_mode_a_pr_without_targets_is_not_ready(forced: bool):
    assert not_ready_reason(PARALLEL, a_submission(forced=forced)) is Reason.MISSING_IMPACTED_TARGETS


@pytest.mark.parametrize("targets", [impacted_targets_from_names("a"), impacted_targets_from_names()])
def test_in_parallel_mode_a_pr_with_targets_is_ready(targets: ImpactedTargets):
    assert not_ready_reason(PARALLEL, a_submission(impacted_targets=targets)) is None


# Guarded paths.

GUARDED = (".github/workflows/ci.yml",)


def a_world_with_a_guarded_fork(*, guarded: tuple[str, ...] | None = GUARDED) -> QueueWorld:
    world = a_world()
    world.open_pull_request(1)
    world.change(1, fork=True, guarded_paths=guarded)
    return world


def push(world: QueueWorld, number: int) -> None:
    world.change(number, head=world.repository.commit((world.head(number),), {"more": "more"}, "a push"))


@pytest.mark.parametrize("forced", [False, True])
def test_a_fork_that_changes_guarded_paths_waits_for_a_maintainer(forced: bool):
    world = a_world_with_a_guarded_fork()
    world.submit(1, forced=forced)
    assert world.state(1) is PullRequestState.NOT_READY
    assert not_ready_reason(world.queue, world.submission(1)) is Reason.WAITING_FOR_MAINTAINER


@pytest.mark.parametrize("forced", [False, True])
def test_a_fork_whose_guarded_paths_are_not_known_yet_is_not_ready(forced: bool):
    world = a_world_with_a_guarded_fork(guarded=None)
    world.submit(1, forced=forced)
    assert not_ready_reason(world.queue, world.submission(1)) is Reason.MERGEABILITY_UNKNOWN


@pytest.mark.parametrize("guarded", [GUARDED, None])
def test_a_fork_that_a_maintainer_submitted_is_ready(guarded: tuple[str, ...] | None):
    world = a_world_with_a_guarded_fork(guarded=guarded)
    world.apply(replace(world.build_submission(1), by_maintainer=True))
    assert world.state(1) is PullRequestState.PENDING


def test_a_fork_that_changes_no_guarded_path_is_ready():
    world = a_world_with_a_guarded_fork(guarded=())
    world.submit(1)
    assert world.state(1) is PullRequestState.PENDING


def test_a_pr_of_the_same_repository_needs_no_maintainer():
    assert reason_not_ready(replace(a_pull_request(), guarded_paths=GUARDED)) is None


def test_a_fork_is_admitted_when_a_maintainer_submits_it_again():
    world = a_world_with_a_guarded_fork()
    world.submit(1)
    world.apply(replace(world.build_submission(1), by_maintainer=True))
    assert world.state(1) is PullRequestState.PENDING


def test_a_later_submission_by_another_person_keeps_the_approval_of_the_maintainer():
    world = a_world_with_a_guarded_fork()
    world.apply(replace(world.build_submission(1), by_maintainer=True))
    world.submit(1)
    assert world.submission(1).by_maintainer


def test_a_maintainer_who_saw_another_head_does_not_approve_this_one():
    """The observation of the maintainer's request began before the fork was pushed to and submitted again."""
    world = a_world_with_a_guarded_fork()
    late = replace(world.build_submission(1), by_maintainer=True)
    push(world, 1)
    world.submit(1)
    world.apply(replace(late, observed_at_revision=0))
    assert not world.submission(1).by_maintainer
    assert world.state(1) is PullRequestState.NOT_READY


def test_a_push_revokes_the_approval_of_the_maintainer():
    world = a_world_with_a_guarded_fork()
    world.change(1, fork=False, draft=True)
    world.apply(replace(world.build_submission(1), by_maintainer=True))
    push(world, 1)
    world.apply(world.observe_pull_request(1))
    assert not world.submission(1).by_maintainer


def test_a_pr_under_test_becomes_not_ready_when_the_target_branch_guards_what_it_changes():
    world = a_world_with_a_guarded_fork(guarded=())
    world.submit(1)
    world.build()
    world.change(1, guarded_paths=GUARDED)
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.reason(1)) == (PullRequestState.NOT_READY, Reason.WAITING_FOR_MAINTAINER)
    assert world.queue_text == "main"


def test_a_pr_that_is_about_to_land_becomes_not_ready_when_the_target_branch_guards_what_it_changes():
    world = a_world_with_a_guarded_fork(guarded=())
    world.submit(1, forced=True)
    world.build()
    world.passes(1)
    world.change(1, guarded_paths=GUARDED)
    world.perform_pending_tasks()
    assert (world.state(1), world.reason(1)) == (PullRequestState.NOT_READY, Reason.WAITING_FOR_MAINTAINER)


def test_a_pr_in_a_bisection_becomes_not_ready_and_the_others_are_tested_without_it():
    world = a_world(batch=3)
    for number in (1, 2, 3):
        world.open_pull_request(number)
    world.change(2, fork=True, guarded_paths=())
    world.submit(1, 2, 3)
    world.build()
    world.fails(1, 2, 3)
    world.build()
    assert world.queue.bisections
    world.change(2, guarded_paths=GUARDED)
    world.apply(world.observe_pull_request(2))
    assert (world.state(2), world.reason(2)) == (PullRequestState.NOT_READY, Reason.WAITING_FOR_MAINTAINER)
    assert not world.queue.bisections
    world.build()
    assert world.queue_text == "main ← 1+3…"


# Admission.


def test_a_ready_pr_is_admitted_when_it_is_submitted():
    world = a_world(concurrency=1, prs=1)
    world.submit(2)
    assert world.timeline(2) == [
        (PullRequestState.NOT_READY, Reason.SUBMITTED),
        (PullRequestState.PENDING, Reason.READY),
    ]


@pytest.mark.parametrize("state", [QueueState.PAUSED, QueueState.DRAINING])
def test_a_queue_that_does_not_run_admits_no_pr(state: QueueState):
    assert a_world_in_state(state).state(1) is PullRequestState.NOT_READY


@pytest.mark.parametrize("state", [QueueState.PAUSED, QueueState.DRAINING])
def test_ready_prs_are_admitted_when_the_queue_runs_again(state: QueueState):
    world = a_world_in_state(state)
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    assert world.state(1) is PullRequestState.PENDING


def test_prs_that_are_not_ready_are_not_admitted_when_the_queue_runs_again():
    world = a_world()
    world.open_pull_request(1)
    world.change(1, draft=True)
    world.submit(1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    assert world.state(1) is PullRequestState.NOT_READY


def test_prs_without_impacted_targets_are_admitted_when_the_queue_switches_to_single_mode():
    world = a_parallel_world()
    world.submit(1)
    world.apply(e.SettingsSaved(config=a_config()))
    assert world.state(1) is PullRequestState.PENDING


def test_admitted_prs_stay_admitted_when_the_queue_pauses():
    world = a_world(prs=1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    assert world.state(1) is PullRequestState.TESTING


# Not ready again.


def test_a_pr_that_is_no_longer_mergeable_before_it_lands_becomes_not_ready():
    world = a_world(prs=1)
    world.passes(1)
    world.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    world.perform_pending_tasks()
    assert (world.state(1), world.reason(1)) == (PullRequestState.NOT_READY, Reason.NO_LONGER_MERGEABLE)


def test_a_pr_that_became_not_ready_is_admitted_again_when_it_is_mergeable():
    world = a_world(prs=1)
    world.passes(1)
    world.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    world.perform_pending_tasks()
    world.change(1, mergeability=Mergeability.MERGEABLE)
    world.apply(world.observe_pull_request(1))
    assert world.queue_text == "main ← 1…"


def test_the_timeout_of_a_pr_that_became_not_ready_starts_again():
    world = a_world(prs=1, not_ready_timeout_hours=1)
    world.passes(1)
    world.advance_time(2 * 3_600_000)
    world.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    world.perform_pending_tasks()
    assert world.state(1) is PullRequestState.NOT_READY


def a_world_with_a_conflict(number: int = 2) -> QueueWorld:
    """This pull request changes what pull request 1, in an active batch, changes too."""
    world = a_world(prs=1)
    world.open_pull_request(number, {"file1": "otherwise"})
    world.submit(number)
    world.build()
    return world


def a_world_with_a_pr_on_a_draft() -> QueueWorld:
    """2 is branched from 1, which is a draft."""
    world = a_world()
    world.open_pull_request(1)
    world.change(1, draft=True)
    world.submit(1)
    world.submit(2, stacked_on=1)
    return world


def a_world_with_a_broken_base() -> QueueWorld:
    """1 failed, and so did the base run of the target branch."""
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    world.build()
    world.fails()
    return world


# Conflicts.


def test_a_pr_that_conflicts_with_the_active_batches_is_held():
    world = a_world_with_a_conflict()
    assert (world.queue_text, world.state(2)) == ("main ← 1…", PullRequestState.PENDING)


def test_a_pr_that_conflicts_names_the_prs_ahead():
    assert a_world_with_a_conflict().wait_reason(2) == a_wait_reason(
        Reason.CONFLICTS_WITH_PR_AHEAD,
        1,
    )


def a_world_with_a_conflict_with_one_of_two() -> QueueWorld:
    """3 changes what 1 changes too, and 2 is between them."""
    world = a_world(prs=2)
    world.open_pull_request(3, {"file1": "otherwise"})
    world.submit(3)
    world.build()
    return world


def test_a_pr_that_conflicts_names_only_its_blockers():
    assert a_world_with_a_conflict_with_one_of_two().wait_reason(3) == a_wait_reason(Reason.CONFLICTS_WITH_PR_AHEAD, 1)


def test_a_pr_that_conflicts_rejoins_when_its_blockers_are_gone():
    world = a_world_with_a_conflict_with_one_of_two()
    world.cancel(1)
    assert world.queue_text == "main ← 2… ← 3…"


def test_a_pr_that_conflicts_stays_held_when_other_prs_are_gone():
    world = a_world_with_a_conflict_with_one_of_two()
    world.cancel(2)
    assert world.queue_text == "main ← 1…"


def test_a_pr_that_conflicts_rejoins_when_the_prs_ahead_failed():
    world = a_world_with_a_conflict()
    world.fails(1)
    assert world.queue_text == "main ← 2…"


def test_a_pr_that_conflicts_rejoins_when_the_prs_ahead_merged():
    world = a_world_with_a_conflict()
    world.passes(1)
    world.perform_pending_tasks()
    assert (world.state(2), world.reason(2)) == (PullRequestState.FAILED, Reason.MERGE_CONFLICT)


def test_a_pr_that_conflicts_rejoins_behind_the_active_batches():
    world = a_world_with_a_conflict()
    world.submit(3)
    world.build()
    world.fails(1)
    assert world.queue_text == "main ← 3… ← 2…"


def test_a_pr_that_conflicts_with_a_batchmate_is_held():
    world = a_world(batch=2)
    world.open_pull_request(1, {"shared": "one"})
    world.open_pull_request(2, {"shared": "two"})
    world.submit(1, 2)
    world.build()
    assert (world.queue_text, world.wait_reason(2)) == (
        "main ← 1…",
        a_wait_reason(
            Reason.CONFLICTS_WITH_PR_AHEAD,
            1,
        ),
    )


def test_if_two_prs_ahead_conflict_every_pr_stacked_on_both_waits():
    world = a_world()
    world.open_pull_request(1, {"shared": "one"})
    world.open_pull_request(2, {"shared": "two"})
    world.submit(1, 2, 3)
    refused = e.RunBuildRefused(
        run=world.run_of(3).id, submission_id=world.submission_id(2), refusal=e.BuildRefusal.CONFLICTS_WITH_STACK
    )
    world.apply(refused)
    assert world.wait_reason(3) == a_wait_reason(Reason.CONFLICTS_WITH_PR_AHEAD, 1, 2)


def test_a_pr_whose_blockers_left_meanwhile_rejoins_at_once():
    world = a_world(prs=1)
    world.open_pull_request(2, {"file1": "otherwise"})
    world.submit(2)
    (build,) = world.pending_tasks(t.BuildRun)
    refused = world.host.perform_task(build, 0)
    world.apply(world.observe_result(CheckState.FAILED, 1), refused)
    assert world.queue_text == "main ← 2…"


# Stacked pull requests.


def test_a_pr_branched_from_another_that_is_not_in_an_active_batch_waits_for_it():
    world = a_world_with_a_pr_on_a_draft()
    assert (world.queue_text, world.wait_reason(2)) == (
        "main",
        a_wait_reason(
            Reason.WAITING_FOR_PRS_AHEAD,
            1,
        ),
    )


def test_a_pr_branched_from_another_rejoins_when_that_one_is_in_an_active_batch():
    world = a_world_with_a_pr_on_a_draft()
    world.change(1, draft=False)
    world.apply(world.observe_pull_request(1))
    assert world.queue_text == "main ← 1… ← 2…"


def test_a_pr_branched_from_another_rejoins_when_that_one_left():
    world = a_world_with_a_pr_on_a_draft()
    world.cancel(1)
    assert world.queue_text == "main ← 2…"


def test_a_pr_branched_from_another_that_is_before_it_in_the_batch_joins_the_batch():
    world = a_world(batch=2)
    world.open_pull_request(1)
    world.open_pull_request(2, stacked_on=world.head(1))
    world.submit(1, 2)
    assert world.queue_text == "main ← 1+2…"


def test_a_pr_branched_from_another_that_is_after_it_waits():
    world = a_world(batch=2)
    world.open_pull_request(1)
    world.open_pull_request(2, stacked_on=world.head(1))
    world.submit(1)
    world.submit(2, priority=50)
    assert world.wait_reason(2) == a_wait_reason(
        Reason.WAITING_FOR_PRS_AHEAD,
        1,
    )


def test_a_pr_branched_from_a_member_of_a_bisection_leaves_the_active_batches_too():
    world = a_world(prs=2, batch=2)
    world.submit(3, stacked_on=1, no_batch=True)
    world.build()
    world.fails(1, 2)
    assert (world.queue_text, world.reason(3), world.wait_reason(3)) == (
        *("main ⋔ 1+2 : 1…", Reason.PREREQUISITE_REMOVED),
        a_wait_reason(Reason.WAITING_FOR_PRS_AHEAD, 1),
    )


def test_a_pr_branched_from_another_leaves_the_active_batches_when_that_one_is_no_longer_mergeable():
    world = a_world(prs=1)
    world.submit(2, stacked_on=1)
    world.build()
    world.passes(1)
    world.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    world.perform(t.ReadPullRequests)
    assert (world.queue_text, world.wait_reason(2)) == ("main", a_wait_reason(Reason.WAITING_FOR_PRS_AHEAD, 1))


def test_a_pr_branched_from_another_stays_in_an_active_batch_when_that_one_failed():
    world = a_world(prs=1)
    world.submit(2, stacked_on=1)
    world.build()
    world.fails(1)
    assert world.queue_text == "main ← 2…"


# A broken base.


def test_a_pr_that_failed_on_a_broken_base_is_held():
    world = a_world_with_a_broken_base()
    assert (world.queue_text, world.state(1), world.wait_reason(1)) == (
        "main",
        PullRequestState.PENDING,
        a_wait_reason(Reason.BASE_BROKEN),
    )


def test_a_pr_that_failed_on_a_broken_base_waits_until_the_base_passes():
    world = a_world_with_a_broken_base()
    world.advance_time(3_600_000)
    assert world.queue_text == "main ?"


def test_a_pr_that_failed_on_a_broken_base_rejoins_when_the_target_moved():
    world = a_world_with_a_broken_base()
    world.push_to_target_branch({"repair": "repair"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    assert world.queue_text == "main ← 1…"


def test_others_are_tested_on_a_broken_base_since_one_may_be_the_repair():
    world = a_world_with_a_broken_base()
    world.submit(2)
    assert world.queue_text == "main ← 2…"


def test_a_pr_branched_from_another_that_waits_for_a_repair_is_tested_since_it_may_be_the_repair():
    world = a_world_with_a_broken_base()
    world.submit(2, stacked_on=1)
    assert world.queue_text == "main ← 2…"


def test_a_pr_branched_from_another_stays_in_an_active_batch_when_that_one_failed_on_a_broken_base():
    world = a_world(prs=1, base_passed=False)
    world.submit(2, stacked_on=1)
    world.build()
    world.fails(1)
    world.build()
    world.fails()
    assert world.queue_text == "main ← 2…"


BOTH, UNIT = ("unit", "lint"), ("unit",)


def require(world: QueueWorld, *statuses: str) -> None:
    world.host.required_statuses = RequiredStatuses(statuses)
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    world.build()


def lint_fails(world: QueueWorld, *numbers: int) -> None:
    run = world.run_of(*numbers)
    world.apply(world.observe_checks(run, {"unit": CheckState.PASSED, "lint": CheckState.FAILED}))
    world.build()


def test_no_pr_is_blamed_for_a_status_that_the_base_never_passed():
    world = a_world(prs=1)
    world.passes(1)
    world.perform_pending_tasks()
    require(world, *BOTH)
    world.submit(2)
    world.build()
    lint_fails(world, 2)
    assert world.state(2) is PullRequestState.PENDING_FAILURE
    lint_fails(world)
    assert (world.state(2), world.wait_reason(2).reason) == (PullRequestState.PENDING, Reason.BASE_BROKEN)


def test_the_queue_s_own_statuses_count_as_well():
    world = a_world(prs=1)
    world.apply(e.SettingsSaved(config=a_config(required_statuses=BOTH)))
    assert blame.base_health(world.queue, world.run_of(1)) is BaseHealth.UNKNOWN


def test_a_base_that_passed_more_statuses_is_known_to_pass_fewer():
    world = a_world(prs=1, required_statuses=BOTH)
    world.apply(e.SettingsSaved(config=a_config(required_statuses=UNIT)))
    assert blame.base_health(world.queue, world.run_of(1)) is BaseHealth.PASSING


def test_prs_that_a_broken_base_held_back_are_tested_again():
    world = a_world(prs=1)
    require(world, *BOTH)
    lint_fails(world, 1)
    lint_fails(world)
    assert world.wait_reason(1).reason is Reason.BASE_BROKEN
    require(world, *UNIT)
    assert world.queue_text == "main ← 1…"


def test_a_base_run_with_fewer_statuses_does_not_show_that_the_base_passes():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    world.build()
    base_run = world.run_of()
    require(world, *BOTH)
    assert blame.record_passed_base_run(world.queue, base_run) is world.queue


def test_a_landing_with_fewer_statuses_is_not_a_base_that_is_known_to_pass():
    world = a_world(prs=1)
    world.passes(1)
    world.save_landing_intent()
    world.apply(e.SettingsSaved(config=a_config(required_statuses=BOTH)))
    world.perform_pending_tasks()
    assert world.state(1) is PullRequestState.MERGED
    assert world.queue.target_branch.passed_bases == frozenset()
