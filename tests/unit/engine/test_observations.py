"""Observations are recorded; what may be outdated is read again."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import RequiredStatuses, impacted_targets_from_names
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.domain.states import CheckState, Mergeability, PullRequestState, QueueState, Reason, RunStatus
from mergeyard.domain.timestamps import HOUR, MINUTE
from mergeyard.engine import observations, run_lifecycle
from mergeyard.engine.tasks import pending_tasks
from tests.support.builders import (
    QueueWorld,
    a_parallel_world,
    a_plain_queue,
    a_run,
    a_submission,
    a_wait_reason,
    a_world,
)
from tests.support.world.world import REQUIRED_STATUSES, START_TIME

PASSED, FAILED, PENDING = CheckState.PASSED, CheckState.FAILED, CheckState.PENDING


def reads_pull_request(world: QueueWorld, number: int) -> bool:
    return t.ReadPullRequest(number=PullRequestNumber(number)) in pending_tasks(world.queue)


def a_world_with_one_not_ready() -> QueueWorld:
    world = a_world()
    world.open_pull_request(1)
    world.change(1, mergeability=Mergeability.UNKNOWN)
    world.submit(1)
    return world


def push(world: QueueWorld, number: int) -> None:
    world.change(number, head=world.repository.commit((world.head(number),), {"more": "more"}, "a push"))


# Pull requests.


def test_a_dirty_pr_is_read():
    world = a_world(prs=1)
    world.apply(e.PullRequestDirty(number=PullRequestNumber(1)))
    assert reads_pull_request(world, 1)


def test_a_pr_that_was_read_is_not_read_again():
    world = a_world(prs=1)
    world.apply(e.PullRequestDirty(number=PullRequestNumber(1)))
    world.apply(world.observe_pull_request(1))
    assert not reads_pull_request(world, 1)


def test_a_second_dirty_event_in_the_same_decision_changes_nothing():
    world, again = a_world(prs=1), a_world(prs=1)
    world.apply(e.PullRequestDirty(number=PullRequestNumber(1)))
    again.apply(e.PullRequestDirty(number=PullRequestNumber(1)), e.PullRequestDirty(number=PullRequestNumber(1)))
    assert again.queue == world.queue


def test_a_dirty_event_during_a_read_requests_another_read():
    world = a_world(prs=1)
    world.apply(e.PullRequestDirty(number=PullRequestNumber(1)))
    begun_before = world.observe_pull_request(1)
    world.apply(e.PullRequestDirty(number=PullRequestNumber(1)))
    world.apply(begun_before)
    assert reads_pull_request(world, 1)
    world.apply(world.observe_pull_request(1))
    assert not reads_pull_request(world, 1)


def test_an_observation_of_a_pr_that_is_not_queued_changes_nothing():
    world = a_world(prs=1)
    world.open_pull_request(2)
    before = world.queue
    world.apply(world.observe_pull_request(2))
    assert world.queue is before


def test_an_observation_that_began_before_the_last_one_was_recorded_is_ignored():
    world = a_world_with_one_not_ready()
    outdated = world.observe_pull_request(1)
    world.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    world.apply(world.observe_pull_request(1))
    world.apply(outdated)
    assert world.submission(1).pull_request.mergeability is Mergeability.NOT_MERGEABLE


def test_an_observation_that_may_be_outdated_is_requested_again():
    world = a_world_with_one_not_ready()
    outdated = world.observe_pull_request(1)
    world.change(1, mergeability=Mergeability.NOT_MERGEABLE)
    world.apply(world.observe_pull_request(1))
    world.apply(outdated)
    assert reads_pull_request(world, 1)


def test_a_closed_pr_is_cancelled():
    world = a_world(prs=1)
    world.change(1, is_open=False)
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.reason(1)) == (PullRequestState.CANCELLED, Reason.PR_CLOSED)


def test_a_closed_pr_is_cancelled_also_before_it_is_ready():
    world = a_world_with_one_not_ready()
    world.change(1, is_open=False)
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.reason(1)) == (PullRequestState.CANCELLED, Reason.PR_CLOSED)


def test_a_pr_merged_into_another_branch_is_closed():
    world = a_world(prs=1)
    world.change(1, is_open=False, merged_into="elsewhere")
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.reason(1)) == (PullRequestState.CANCELLED, Reason.PR_CLOSED)


def test_a_pr_merged_into_the_target_by_hand_is_merged():
    world = a_world(prs=1)
    world.change(1, is_open=False, merged_into="main")
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.reason(1)) == (PullRequestState.MERGED, Reason.MERGED_MANUALLY)


def test_a_pr_whose_head_the_target_branch_contains_is_merged():
    world = a_world(prs=1)
    world.repository.refs["main"] = world.head(1)
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.reason(1)) == (PullRequestState.MERGED, Reason.MERGED_MANUALLY)


def test_the_target_branch_is_read_when_a_pr_was_merged_by_hand():
    world = a_world(prs=1)
    world.change(1, is_open=False, merged_into="main")
    world.apply(world.observe_pull_request(1))
    assert world.queue.target_branch.refresh_requested


def test_an_admitted_pr_with_new_commits_is_cancelled():
    world = a_world(prs=1)
    push(world, 1)
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.reason(1)) == (PullRequestState.CANCELLED, Reason.PR_PUSHED)


def test_an_admitted_pr_that_points_elsewhere_is_cancelled():
    world = a_world(prs=1)
    world.change(1, base_branch="elsewhere")
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.reason(1)) == (PullRequestState.CANCELLED, Reason.PR_BASE_CHANGED)


def test_an_admitted_pr_that_becomes_a_draft_is_cancelled():
    world = a_world(prs=1)
    world.change(1, draft=True)
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.reason(1)) == (PullRequestState.CANCELLED, Reason.PR_CONVERTED_TO_DRAFT)


def test_a_pr_that_is_not_ready_takes_new_commits():
    world = a_world_with_one_not_ready()
    push(world, 1)
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.submission(1).pull_request.head) == (PullRequestState.NOT_READY, world.head(1))


def test_a_pr_of_a_fork_that_is_not_ready_is_cancelled_by_a_push():
    world = a_world_with_one_not_ready()
    world.change(1, fork=True)
    push(world, 1)
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.reason(1)) == (PullRequestState.CANCELLED, Reason.PR_PUSHED)


def test_a_pinned_pr_is_cancelled_by_a_push_also_before_it_is_ready():
    world = a_world()
    world.open_pull_request(1)
    world.change(1, mergeability=Mergeability.UNKNOWN)
    world.apply(replace(world.build_submission(1), head_pinned=True))
    push(world, 1)
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.reason(1)) == (PullRequestState.CANCELLED, Reason.PR_PUSHED)


@pytest.mark.parametrize("change", [{"base_branch": "elsewhere"}, {"draft": True}])
def test_a_pr_that_is_not_ready_stays_so_when_it_changes(change: dict[str, object]):
    world = a_world_with_one_not_ready()
    world.change(1, **change)
    world.apply(world.observe_pull_request(1))
    assert world.state(1) is PullRequestState.NOT_READY


def test_a_pr_that_became_mergeable_is_admitted():
    world = a_world_with_one_not_ready()
    world.change(1, mergeability=Mergeability.MERGEABLE)
    world.apply(world.observe_pull_request(1))
    assert world.state(1) is PullRequestState.PENDING


def test_impacted_targets_of_an_earlier_head_count_no_longer():
    world = a_parallel_world()
    world.open_pull_request(1)
    world.change(1, mergeability=Mergeability.UNKNOWN)
    world.apply(world.build_submission(1, impacted_targets=impacted_targets_from_names("x")))
    push(world, 1)
    world.apply(world.observe_pull_request(1))
    assert world.submission(1).impacted_targets is None


def test_impacted_targets_observed_with_a_new_head_count():
    world = a_parallel_world()
    world.open_pull_request(1)
    world.change(1, mergeability=Mergeability.UNKNOWN)
    world.apply(world.build_submission(1, impacted_targets=impacted_targets_from_names("x")))
    push(world, 1)
    world.apply(replace(world.observe_pull_request(1), impacted_targets=impacted_targets_from_names("y")))
    assert world.submission(1).impacted_targets == impacted_targets_from_names("y")


def test_from_intent_to_outcome_observations_of_a_pr_wait():
    world = a_world(prs=1)
    world.passes(1)
    world.save_landing_intent()
    world.change(1, is_open=False)
    world.apply(world.observe_pull_request(1))
    assert world.state(1) is PullRequestState.TESTS_PASSED


def test_a_pr_that_changed_during_a_landing_is_read_after_it():
    world = a_world(prs=1)
    world.passes(1)
    world.save_landing_intent()
    world.change(1, is_open=False)
    world.apply(world.observe_pull_request(1))
    world.apply(e.LandingMissed(landing=1))
    assert reads_pull_request(world, 1)


# The target branch.


def test_a_dirty_target_branch_is_read():
    world = a_world()
    world.apply(e.TargetBranchDirty())
    assert t.ReadTargetBranch(known_tip=world.host.tip) in pending_tasks(world.queue)


def test_a_second_dirty_event_of_the_target_branch_changes_nothing():
    world = a_world()
    world.apply(e.TargetBranchDirty())
    before = world.queue
    world.apply(e.TargetBranchDirty())
    assert world.queue is before


def test_an_unchanged_target_branch_changes_nothing():
    world = a_world()
    before = world.queue
    world.apply(
        e.TargetBranchObserved(
            tip=world.host.tip,
            observed_at_revision=before.counters.revision,
            required_statuses=before.target_branch.required_statuses,
        )
    )
    assert world.queue is before


def test_a_moved_target_branch_is_recorded():
    world = a_world()
    commit = world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform_pending_tasks()
    assert (world.queue.target_branch.tip, [landed.commit for landed in world.queue.target_branch.history]) == (
        commit,
        [commit],
    )


def test_a_missing_target_branch_is_recorded():
    world = a_world()
    world.apply(e.TargetBranchObserved(tip=None, observed_at_revision=world.queue.counters.revision))
    assert (world.queue.target_branch.tip, world.queue.target_branch.history) == (None, ())


def test_other_required_statuses_are_recorded():
    world = a_world()
    world.apply(
        e.TargetBranchObserved(
            tip=world.host.tip,
            observed_at_revision=world.queue.counters.revision,
            required_statuses=RequiredStatuses(("lint",)),
        )
    )
    assert world.queue.target_branch.required_statuses.statuses == ("lint",)


def test_commits_removed_from_the_target_branch_are_recorded():
    world = a_world()
    for gone in "one", "two":
        world.apply(
            e.TargetBranchObserved(
                tip=world.host.tip,
                observed_at_revision=world.queue.counters.revision,
                removed_commits=frozenset({Sha(gone)}),
            )
        )
    assert world.queue.target_branch.removed_commits == {"one", "two"}


def test_an_observation_of_the_target_branch_that_began_before_a_landing_is_ignored():
    world = a_world(prs=1)
    outdated = e.TargetBranchObserved(
        tip=world.host.tip,
        observed_at_revision=world.queue.counters.revision,
        required_statuses=world.queue.target_branch.required_statuses,
    )
    world.passes(1)
    world.perform_pending_tasks()
    world.apply(outdated)
    assert (world.queue.target_branch.tip, world.queue.target_branch.refresh_requested) == (world.host.tip, True)


def test_from_intent_to_outcome_observations_of_the_target_branch_wait():
    world = a_world(prs=1)
    world.passes(1)
    world.save_landing_intent()
    world.apply(e.TargetBranchObserved(tip=Sha("elsewhere"), observed_at_revision=world.queue.counters.revision))
    assert (world.queue.target_branch.tip, world.queue.target_branch.refresh_requested) == (world.host.tip, True)


# Checks.


def observe(world: QueueWorld, checks: dict[str, CheckState], *, decisions_ago: int = 0) -> None:
    seen = world.observe_checks(world.run_of(1), checks)
    world.apply(replace(seen, observed_at_revision=seen.observed_at_revision - decisions_ago))


def a_world_with_two_statuses() -> QueueWorld:
    return a_world(prs=1, required_statuses=("lint", "unit"))


@pytest.mark.parametrize("unit", [PENDING, None])
def test_a_run_goes_on_while_a_required_status_has_not_reported(unit: CheckState | None):
    world = a_world_with_two_statuses()
    observe(world, {"lint": PASSED} | ({} if unit is None else {"unit": unit}))
    assert world.run_of(1).status is RunStatus.IN_PROGRESS


def test_a_run_passes_when_all_required_statuses_passed():
    world = a_world_with_two_statuses()
    observe(world, {"lint": PASSED, "unit": PASSED})
    assert world.run_of(1).status is RunStatus.SUCCEEDED


def test_a_run_that_requires_nothing_never_passes():
    run = replace(a_run(1), required_statuses=())
    queue = run_lifecycle.put_run(a_plain_queue(a_submission(1)), run)
    seen = e.ChecksObserved(run=run.id, checks={"unit": PASSED}, observed_at_revision=0)
    assert observations.record_checks(queue, seen, START_TIME).runs[run.id].status is RunStatus.IN_PROGRESS


def test_a_run_fails_as_soon_as_one_required_status_failed():
    world = a_world_with_two_statuses()
    observe(world, {"lint": FAILED})
    assert world.run_of(1).status is RunStatus.FAILED


def test_statuses_that_are_not_required_do_not_count():
    world = a_world_with_two_statuses()
    observe(world, {"lint": PASSED, "unit": PASSED, "docs": FAILED})
    assert world.run_of(1).status is RunStatus.SUCCEEDED


def test_observed_checks_are_recorded():
    world = a_world_with_two_statuses()
    observe(world, {"lint": PASSED})
    assert world.run_of(1).checks == {"lint": PASSED}


def test_the_same_checks_again_change_nothing():
    world = a_world_with_two_statuses()
    observe(world, {"lint": PASSED})
    before = world.queue
    observe(world, {"lint": PASSED})
    assert world.queue is before


def test_checks_observed_before_the_last_ones_were_recorded_are_ignored():
    world = a_world_with_two_statuses()
    observe(world, {"lint": PASSED})
    observe(world, {"lint": FAILED}, decisions_ago=1)
    assert world.run_of(1).status is RunStatus.IN_PROGRESS


def test_a_decided_run_never_changes():
    world = a_world(prs=2)
    run = world.run_of(2)
    world.passes(2)
    before = world.queue
    world.apply(world.observe_checks(run, {"unit": FAILED}))
    assert world.queue is before


def test_checks_of_a_run_that_is_not_built_are_ignored():
    world = a_world()
    world.submit(1)
    run = world.run_of(1)
    world.apply(
        e.ChecksObserved(run=run.id, checks={"unit": PASSED}, observed_at_revision=world.queue.counters.revision)
    )
    assert world.run_of(1) == run


def test_an_overdue_run_is_decided_by_a_new_read():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.advance_time(10 * MINUTE)
    observe(world, {})
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.TEST_RUN_TIMEOUT)


def test_an_overdue_run_is_not_decided_by_a_read_that_began_before():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.advance_time(10 * MINUTE)
    observe(world, {}, decisions_ago=1)
    assert world.state(1) is PullRequestState.TESTING


def test_an_overdue_run_that_passed_passes():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.advance_time(10 * MINUTE)
    observe(world, {"unit": PASSED})
    assert world.state(1) is PullRequestState.TESTS_PASSED


def test_an_overdue_run_that_failed_fails_because_of_its_tests():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.advance_time(10 * MINUTE)
    observe(world, {"unit": FAILED})
    assert world.reason(1) is Reason.TEST_RUN_FAILED


def test_a_failed_base_run_shows_that_its_base_is_broken():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    world.build()
    world.fails()
    assert world.queue.target_branch.broken_bases == {world.host.tip}


def test_a_failed_base_run_that_is_repeated_shows_nothing_yet():
    world = a_world(prs=1, base_passed=False, test_retries=1)
    for _ in range(2):
        world.fails(1)
        world.build()
    world.fails()
    assert world.queue.target_branch.broken_bases == frozenset()


def test_a_base_run_that_fails_in_a_paused_queue_is_ignored():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    world.build()
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.fails()
    assert world.queue.target_branch.broken_bases == frozenset()


def test_a_base_run_that_failed_in_a_paused_queue_is_run_again():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    world.build()
    failed_run = world.run_of()
    world.advance_time(MINUTE)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.fails()
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    assert (world.queue_text, world.run_of().id != failed_run.id) == ("main ← 1✗ ?", True)


def test_a_failed_run_of_a_batch_does_not_show_that_its_base_is_broken():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    assert world.queue.target_branch.broken_bases == frozenset()


def test_when_a_commit_was_removed_from_the_target_branch_every_run_starts_again():
    world = a_world(prs=1)
    before = world.run_of(1).id
    seen = e.TargetBranchObserved(
        tip=world.host.tip,
        observed_at_revision=world.queue.counters.revision,
        required_statuses=REQUIRED_STATUSES,
        removed_commits=frozenset({Sha("gone")}),
    )
    world.apply(seen)
    assert world.queue.runs[before].status is RunStatus.CANCELLED


def test_when_a_commit_was_removed_from_the_target_branch_a_bisection_goes_on():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.build()
    probe = world.run_of(1).id
    seen = e.TargetBranchObserved(
        tip=world.host.tip,
        observed_at_revision=world.queue.counters.revision,
        required_statuses=REQUIRED_STATUSES,
        removed_commits=frozenset({Sha("gone")}),
    )
    world.apply(seen)
    assert world.queue.runs[probe].status is RunStatus.IN_PROGRESS


def test_removed_commits_are_found_from_the_last_known_tip():
    world = a_world()
    before = world.host.tip
    for _ in range(2):
        world.apply(e.TargetBranchObserved(tip=None, observed_at_revision=world.queue.counters.revision))
    world.apply(e.TargetBranchDirty())
    assert t.ReadTargetBranch(known_tip=before) in pending_tasks(world.queue)
    world.apply(e.TargetBranchObserved(tip=Sha("new"), observed_at_revision=world.queue.counters.revision))
    assert (world.queue.target_branch.deleted_tip, world.queue.target_branch.last_tip) == (None, "new")


def test_pushed_checks_cannot_time_out_a_run():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.advance_time(10 * MINUTE)
    world.apply(replace(world.observe_checks(world.run_of(1), {"lint": PENDING}), pushed=True))
    assert world.state(1) is PullRequestState.TESTING
    world.perform(t.ReadChecks)
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.TEST_RUN_TIMEOUT)


def test_when_processing_resumes_prs_whose_mergeability_is_being_checked_are_read():
    world = a_world()
    for number, known in enumerate((Mergeability.CHECKING, Mergeability.UNKNOWN), 1):
        world.open_pull_request(number)
        world.change(number, mergeability=known)
        world.submit(number)
    world.queue = replace(world.queue, refresh_requested=SortedMap())
    world.apply(e.ProcessingResumed())
    assert world.pending_tasks(t.ReadPullRequest) == (t.ReadPullRequest(number=PullRequestNumber(1)),)


PAUSED, RUNNING = QueueState.PAUSED, QueueState.RUNNING


def a_world_with_prs_not_ready(count: int, hours: int = 2) -> QueueWorld:
    world = a_world(not_ready_timeout_hours=hours)
    for number in range(1, count + 1):
        world.open_pull_request(number)
        world.change(number, mergeability=Mergeability.UNKNOWN)
        world.submit(number)
        world.advance_time(MINUTE)
    return world


def test_a_pr_that_was_not_ready_for_too_long_is_cancelled():
    world = a_world_with_prs_not_ready(1)
    world.advance_time(2 * HOUR)
    assert (world.state(1), world.reason(1)) == (PullRequestState.CANCELLED, Reason.NOT_READY_TIMEOUT)


def test_no_pr_is_cancelled_before_the_timeout():
    world = a_world_with_prs_not_ready(1)
    world.advance_time(2 * HOUR - MINUTE - 1)
    assert world.state(1) is PullRequestState.NOT_READY


def test_the_timeout_of_every_pr_starts_when_it_became_not_ready():
    world = a_world_with_prs_not_ready(3)
    world.advance_time(2 * HOUR - 2 * MINUTE)
    assert [world.state(number) for number in (1, 2, 3)] == [
        PullRequestState.CANCELLED,
        PullRequestState.CANCELLED,
        PullRequestState.NOT_READY,
    ]


def test_several_prs_can_be_cancelled_at_once():
    world = a_world_with_prs_not_ready(3)
    world.advance_time(3 * HOUR)
    assert set(world.concluded_submissions) == {1, 2, 3}


def test_with_a_timeout_of_zero_no_pr_is_cancelled():
    world = a_world_with_prs_not_ready(1, hours=0)
    world.advance_time(1000 * HOUR)
    assert world.state(1) is PullRequestState.NOT_READY


def test_time_in_a_paused_queue_does_not_count():
    world = a_world_with_prs_not_ready(1)
    world.apply(e.StateRequested(state=PAUSED))
    world.advance_time(100 * HOUR)
    world.apply(e.StateRequested(state=RUNNING))
    world.advance_time(HOUR)
    assert world.state(1) is PullRequestState.NOT_READY


def test_a_pr_submitted_to_a_paused_queue_has_the_whole_timeout_after_the_pause():
    world = a_world(not_ready_timeout_hours=2)
    world.apply(e.StateRequested(state=PAUSED))
    world.open_pull_request(1)
    world.change(1, draft=True)
    world.submit(1)
    world.advance_time(HOUR)
    world.apply(e.StateRequested(state=RUNNING))
    world.advance_time(2 * HOUR - 1)
    assert world.state(1) is PullRequestState.NOT_READY


def test_an_admitted_pr_has_no_not_ready_timeout():
    world = a_world(prs=1, not_ready_timeout_hours=1)
    world.advance_time(2 * HOUR)
    assert world.state(1) is PullRequestState.TESTING


# Limits of git.


def exceed_limit(world: QueueWorld, number: int) -> None:
    observed = world.observe_pull_request(number)
    pull_request = replace(
        observed.pull_request, mergeability=Mergeability.UNKNOWN, exceeded_limit="git needs too much memory."
    )
    world.apply(replace(observed, pull_request=pull_request))


def test_a_pr_for_which_git_exceeds_a_limit_is_read_again():
    world = a_world_with_one_not_ready()
    exceed_limit(world, 1)
    assert (world.state(1), reads_pull_request(world, 1)) == (PullRequestState.NOT_READY, True)
    assert world.wait_reason(1) == a_wait_reason(Reason.MERGEABILITY_UNKNOWN)


def test_a_pr_for_which_git_exceeds_a_limit_twice_fails_and_says_which():
    world = a_world_with_one_not_ready()
    exceed_limit(world, 1)
    exceed_limit(world, 1)
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.PR_TOO_LARGE)
    assert world.submission(1).detail == "git needs too much memory."


def test_a_pr_for_which_git_exceeds_a_limit_once_is_tested_if_the_next_read_succeeds():
    world = a_world_with_one_not_ready()
    exceed_limit(world, 1)
    world.change(1, mergeability=Mergeability.MERGEABLE)
    world.apply(world.observe_pull_request(1))
    assert world.state(1) is PullRequestState.PENDING


def test_each_head_gets_a_second_attempt():
    world = a_world_with_one_not_ready()
    exceed_limit(world, 1)
    push(world, 1)
    exceed_limit(world, 1)
    assert world.state(1) is PullRequestState.NOT_READY
    exceed_limit(world, 1)
    assert (world.state(1), world.submission(1).pull_request.head) == (PullRequestState.FAILED, world.head(1))


@pytest.mark.parametrize("steps", ["pending", "testing", "passed"])
def test_an_admitted_pr_for_which_git_exceeds_a_limit_twice_fails(steps: str):
    """Git cannot tell whether it may still merge, for example whether it changes paths that are guarded now."""
    world = a_world()
    world.submit(1, 2)
    if steps != "pending":
        world.build()
    if steps == "passed":
        world.passes(2)
    exceed_limit(world, 2)
    assert world.state(2) is not PullRequestState.FAILED
    exceed_limit(world, 2)
    assert (world.state(2), world.reason(2)) == (PullRequestState.FAILED, Reason.PR_TOO_LARGE)


def test_a_forced_pr_for_which_git_exceeds_a_limit_when_it_is_submitted_gets_one_more_attempt():
    world = a_world()
    world.open_pull_request(1)
    world.change(1, exceeded_limit="git needs too much memory.")
    world.submit(1, forced=True)
    assert (world.state(1), reads_pull_request(world, 1)) == (PullRequestState.NOT_READY, True)
    world.apply(world.observe_pull_request(1))
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.PR_TOO_LARGE)


def test_a_closed_pr_is_cancelled_although_git_exceeds_a_limit():
    world = a_world_with_one_not_ready()
    world.change(1, is_open=False)
    exceed_limit(world, 1)
    assert world.reason(1) is Reason.PR_CLOSED
