"""Failed batches: the culprit fails, several members are bisected, on a broken base no pull request fails."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.states import CheckState, PullRequestState, QueueState, Reason
from tests.support.builders import QueueWorld, a_config, a_parallel_world, a_wait_reason, a_world, prs_ahead


def states(world: QueueWorld, *numbers: int) -> list[PullRequestState]:
    return [world.state(number) for number in numbers]


# Failing.


def test_a_pr_that_failed_on_a_base_that_is_known_to_pass_fails():
    world = a_world(prs=1)
    world.fails(1)
    assert (world.state(1), world.reason(1)) == (PullRequestState.FAILED, Reason.TEST_RUN_FAILED)


def test_prs_behind_a_failed_pr_are_retested_without_it():
    world = a_world(prs=3)
    world.fails(1)
    assert (world.queue_text, world.reason(2), prs_ahead(world.run_of(3))) == (
        *("main ← 2… ← 3…", Reason.PREREQUISITE_REMOVED),
        (2,),
    )


def test_a_pr_that_failed_behind_others_waits_until_they_have_merged():
    world = a_world(prs=2)
    world.fails(2)
    assert world.state(2) is PullRequestState.PENDING_FAILURE


def test_a_pr_that_failed_behind_others_fails_when_they_have_merged():
    world = a_world(prs=2)
    world.fails(2)
    world.passes(1)
    world.perform_pending_tasks()
    assert (world.state(2), world.reason(2)) == (PullRequestState.FAILED, Reason.TEST_RUN_FAILED)


def test_a_pr_that_fails_names_the_prs_that_it_failed_with():
    world = a_world(prs=2)
    world.fails(2)
    world.passes(1)
    world.perform_pending_tasks()
    assert world.submission(2).stacked_on == (1,)


def test_a_pr_that_failed_on_top_of_a_pr_that_left_is_retested_before_it_is_blamed():
    world = a_world(prs=2)
    world.fails(2)
    world.fails(1)
    assert (world.queue_text, world.reason(2)) == ("main ← 2…", Reason.PREREQUISITE_REMOVED)


def test_a_pr_whose_run_timed_out_fails_with_that_reason():
    world = a_world(prs=1, testing_timeout_minutes=1)
    world.advance_time(60_000)
    world.perform(t.ReadChecks)
    assert world.reason(1) is Reason.TEST_RUN_TIMEOUT


def test_prs_that_failed_together_are_bisected():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    assert world.queue_text == "main ⋔ 1+2 : 1…"


def test_in_a_paused_queue_no_pr_fails_because_of_a_run():
    world = a_world(prs=1)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.fails(1)
    assert world.state(1) is PullRequestState.PENDING_FAILURE


def test_of_two_prs_that_break_each_other_the_second_fails():
    """Each passes alone; together they fail, so the first merges and the second fails, naming the first."""
    world = a_world(prs=2)
    world.apply(world.observe_result(CheckState.PASSED, 1), world.observe_result(CheckState.FAILED, 2))
    world.perform_pending_tasks()
    assert (states(world, 1, 2), world.submission(2).stacked_on) == (
        [PullRequestState.MERGED, PullRequestState.FAILED],
        (1,),
    )


# An untested base.


def test_on_a_broken_base_no_pr_fails():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    world.build()
    world.fails()
    assert (world.state(1), world.reason(1)) == (PullRequestState.PENDING, Reason.BASE_BROKEN)


def test_on_a_broken_base_a_pr_that_repairs_it_merges():
    world = a_world(prs=2, base_passed=False)
    world.fails(1)
    world.build()
    world.fails()
    world.build()
    world.passes(2)
    world.perform_pending_tasks()
    assert (world.state(2), world.queue_text) == (PullRequestState.MERGED, "main ← 1…")


def test_a_pass_on_a_broken_base_fails_no_other_pr():
    world = a_parallel_world("x", base_passed=False)
    world.fails(1)
    world.build()
    world.fails()
    world.submit(2, impacted_targets=impacted_targets_from_names("y"))
    world.submit(3, impacted_targets=impacted_targets_from_names("z"))
    world.build()
    world.passes(2)
    world.fails(3)
    assert (world.state(3), world.wait_reason(3)) == (PullRequestState.PENDING, a_wait_reason(Reason.BASE_BROKEN))


def test_a_pr_that_repairs_a_broken_base_does_not_fail_the_pr_it_repaired():
    """1 fails alone and passes with 2, which says nothing about the base without either."""
    world = a_world(prs=2, base_passed=False)
    world.passes(2)
    world.fails(1)
    assert (world.state(1), world.queue_text) == (PullRequestState.PENDING_FAILURE, "main ← 1✗ ← 2✓ ?")


# Optimistic merging.


def test_a_failed_pr_that_a_run_behind_clears_merges_with_it():
    world = a_world(prs=2, depth=1)
    world.fails(1)
    world.passes(2)
    world.perform_pending_tasks()
    assert states(world, 1, 2) == [PullRequestState.MERGED, PullRequestState.MERGED]


def test_a_failed_pr_that_a_run_behind_clears_is_never_in_state_failed():
    world = a_world(prs=2, depth=1)
    world.fails(1)
    world.passes(2)
    assert world.timeline(1)[-2:] == [
        (PullRequestState.PENDING_FAILURE, Reason.CAUSE_UNKNOWN),
        (PullRequestState.TESTS_PASSED, Reason.SUCCESSOR_PASSED),
    ]


def test_a_failed_pr_whose_successors_failed_too_fails():
    world = a_world(prs=2, depth=1)
    world.fails(1)
    world.fails(2)
    assert (world.state(1), world.queue_text) == (PullRequestState.FAILED, "main ← 2…")


def test_a_failed_pr_fails_at_once_when_no_pr_is_behind():
    world = a_world(prs=1, depth=1)
    world.fails(1)
    assert world.state(1) is PullRequestState.FAILED


def test_a_clearance_is_withdrawn_when_the_run_that_gave_it_is_no_longer_valid():
    world = a_world(prs=3, depth=2)
    world.fails(1)
    world.passes(2)
    world.cancel(2)
    assert (world.state(1), world.reason(1)) == (PullRequestState.PENDING, Reason.CLEARANCE_WITHDRAWN)


def test_a_clearance_ends_when_optimistic_merging_is_turned_off():
    world = a_world(prs=3, depth=2)
    world.fails(1)
    world.passes(2)
    off = replace(world.queue.config, can_optimistically_merge=False)
    world.apply(e.SettingsSaved(config=off))
    assert Reason.OPTIMISTIC_MERGING_OFF in [reason for _, reason in world.timeline(1)]


def test_a_pr_that_failed_is_tested_again_when_its_clearance_is_withdrawn():
    world = a_world(prs=2, depth=1)
    world.fails(1)
    failed_run = world.run_of(1)
    world.passes(2)
    world.cancel(2)
    assert (world.queue_text, world.run_of(1).id != failed_run.id) == ("main ← 1…", True)


def test_a_pr_under_test_goes_on_when_its_clearance_is_withdrawn():
    world = a_world(prs=2, depth=1)
    run = world.run_of(1)
    world.passes(2)
    world.cancel(2)
    assert (world.state(1), world.run_of(1)) == (PullRequestState.TESTING, run)


def test_a_clearance_is_withdrawn_when_optimistic_merging_is_turned_off():
    world = a_world(prs=2, depth=1)
    world.passes(2)
    world.apply(e.SettingsSaved(config=a_config()))
    assert world.state(1) is PullRequestState.TESTING


def test_a_pr_that_passed_by_itself_needs_no_clearance():
    world = a_world(prs=2, depth=1)
    world.passes(2)
    world.passes(1)
    world.cancel(2)
    assert world.state(1) is PullRequestState.TESTS_PASSED


@pytest.mark.parametrize("depth", [0, 1])
def test_the_clearance_of_a_pr_that_lost_its_run_is_withdrawn_with_the_run_behind(depth: int):
    """The only run of 1 was invalidated on resume, and the one behind it is cancelled: nothing clears 1."""
    world = a_world(prs=2, depth=depth, concurrency=2)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.fails(1)
    world.passes(2)
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    world.cancel(2)
    assert (world.state(1), world.queue_text) == (PullRequestState.PENDING, "main ← 1…")
