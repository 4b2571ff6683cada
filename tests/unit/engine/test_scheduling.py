"""Free slots go to what should be tested next."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import Mode, Speculation
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.pull_requests import Hold, RequiredStatuses, impacted_targets_from_names
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import CheckState, PullRequestState, QueueState, Reason
from mergeyard.engine import entries
from tests.support.builders import QueueWorld, a_config, a_parallel_world, a_wait_reason, a_world


def require(world: QueueWorld, required: RequiredStatuses) -> None:
    world.host.required_statuses = required
    world.apply(
        e.TargetBranchObserved(
            tip=world.host.tip, observed_at_revision=world.queue.counters.revision, required_statuses=required
        )
    )


def test_no_run_starts_while_all_slots_are_taken():
    world = a_world(prs=3, concurrency=2)
    assert world.queue_text == "main ← 1… ← 2…"


def test_a_free_slot_goes_to_the_next_waiting_pr():
    world = a_world(prs=3, concurrency=2)
    world.passes(1)
    assert world.queue_text == "main ← 1✓ ← 2… ← 3…"


def test_a_free_slot_goes_first_to_active_batches_without_a_run():
    world = a_world(prs=3, concurrency=2)
    world.submit(4, priority=0)
    assert world.queue_text == "main ← 4… ← 1… ← 2"
    world.build()
    world.passes(4)
    assert world.queue_text == "main ← 4✓ ← 1… ← 2…"


def test_lowered_concurrency_lets_nothing_start_until_fewer_run():
    world = a_world(prs=4, concurrency=3)
    world.apply(e.SettingsSaved(config=a_config(concurrency=2)))
    world.passes(1)
    assert world.queue_text == "main ← 1✓ ← 2… ← 3…"


@pytest.mark.parametrize("state", [QueueState.PAUSED])
def test_in_a_paused_queue_nothing_starts(state: QueueState):
    world = a_world(prs=2, concurrency=1)
    world.apply(e.StateRequested(state=state))
    world.passes(1)
    assert world.queue_text == "main ← 1✓"


def test_in_a_draining_queue_admitted_prs_start():
    world = a_world(prs=2, concurrency=1)
    world.apply(e.StateRequested(state=QueueState.DRAINING))
    world.passes(1)
    assert world.queue_text == "main ← 1✓ ← 2…"


def test_without_a_target_branch_nothing_starts():
    world = a_world()
    world.apply(
        e.TargetBranchObserved(
            tip=None, observed_at_revision=world.queue.counters.revision, required_statuses=world.host.required_statuses
        )
    )
    world.submit(1)
    assert (world.queue_text, world.state(1)) == ("main", PullRequestState.PENDING)


def test_a_failed_run_is_run_again_as_often_as_the_settings_say():
    world = a_world(prs=1, test_retries=2)
    attempts = list[int]()
    for _ in range(3):
        attempts.append(world.run_of(1).attempt)
        world.fails(1)
        world.build()
    assert (attempts, world.state(1)) == ([0, 1, 2], PullRequestState.FAILED)


def test_a_pr_is_in_test_while_its_failed_run_is_run_again():
    world = a_world(prs=1, test_retries=1)
    world.fails(1)
    assert world.state(1) is PullRequestState.TESTING


def test_a_failed_run_waits_for_a_slot_to_be_run_again():
    world = a_world(prs=2, test_retries=1)
    world.apply(e.SettingsSaved(config=a_config(test_retries=1, concurrency=1)))
    world.fails(2)
    run = world.run_of(2)
    assert (run.attempt, run.is_active) == (0, False)


def test_a_cleared_pr_is_not_run_again():
    world = a_world(prs=2, depth=1, test_retries=1)
    world.passes(2)
    world.fails(1)
    assert (world.run_of(1).attempt, world.queue_text) == (0, "main ← 1✓ ← 2✓")


def test_of_several_batches_that_are_due_only_as_many_start_as_there_are_slots():
    world = a_parallel_world("x", "y", batch=2, concurrency=1)
    world.submit(3, impacted_targets=impacted_targets_from_names("x", "y"), no_batch=True)
    assert world.queue_text == "main ← 1…"


def test_targets_uploaded_during_a_run_count_when_the_next_run_starts():
    world = a_parallel_world("x", "y")
    world.apply(
        e.ImpactedTargetsUploaded(
            number=PullRequestNumber(2), head=world.head(2), impacted_targets=impacted_targets_from_names("x")
        )
    )
    assert world.queue_text == "main ← 1… ∥ main ← 2…"
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    assert world.queue_text == "main ← 1… ∥ 1 ← 2…"


# Pull requests that cannot be tested.


def test_without_required_statuses_prs_wait_as_not_ready():
    world = a_world()
    require(world, RequiredStatuses())
    world.submit(1)
    assert world.state(1) is PullRequestState.NOT_READY
    assert world.wait_reason(1) == a_wait_reason(Reason.NO_REQUIRED_STATUSES)


def test_without_required_statuses_what_waits_or_is_held_becomes_not_ready_even_without_a_free_slot():
    world = a_world(prs=1, concurrency=1)
    world.submit(2, 3)
    held, hold = world.submission_id(3), Hold(Reason.BASE_BROKEN, tip=world.queue.target_branch.tip)
    world.queue = entries.move_to_held(entries.remove_entry(world.queue, held), held, hold)
    require(world, RequiredStatuses())
    for number in (2, 3):
        assert world.timeline(number)[-1] == (PullRequestState.NOT_READY, Reason.NO_REQUIRED_STATUSES)
    assert (world.state(1), world.submission(3).hold) == (PullRequestState.TESTING, None)


def test_when_a_status_is_required_again_they_return_in_the_order_of_submission():
    world = a_world(prs=1, concurrency=1)
    world.submit(2, 3)
    require(world, RequiredStatuses())
    world.submit(4)
    require(world, RequiredStatuses(("unit",)))
    world.passes(1)
    world.perform_pending_tasks()
    assert [world.state(number) for number in (2, 3, 4)] == [
        PullRequestState.TESTING,
        PullRequestState.PENDING,
        PullRequestState.PENDING,
    ]


def test_without_required_statuses_a_draining_queue_keeps_its_prs_and_starts_none():
    world = a_world(prs=2, concurrency=1)
    world.apply(e.StateRequested(state=QueueState.DRAINING))
    require(world, RequiredStatuses())
    world.passes(1)
    assert world.state(2) is PullRequestState.PENDING
    assert world.wait_reason(2) == a_wait_reason(Reason.NO_REQUIRED_STATUSES)


def test_with_a_broken_configuration_prs_that_would_start_fail_with_its_message():
    world = a_world()
    require(world, RequiredStatuses(config_error="line 3: no"))
    world.submit(1)
    assert (world.reason(1), world.submission(1).detail) == (Reason.CONFIG_INVALID, "line 3: no")


def test_without_required_statuses_active_batches_without_a_run_become_not_ready():
    world = a_world(prs=1, concurrency=1)
    world.submit(2, priority=0)
    world.build()
    require(world, RequiredStatuses())
    world.passes(2)
    assert (world.state(1), world.reason(1)) == (PullRequestState.NOT_READY, Reason.NO_REQUIRED_STATUSES)


def test_without_required_statuses_prs_under_test_go_on():
    world = a_world(prs=1)
    require(world, RequiredStatuses())
    assert world.state(1) is PullRequestState.TESTING


def test_without_required_statuses_a_cleared_pr_whose_merge_is_being_pushed_is_not_touched():
    world = a_world(prs=2, depth=1, required_statuses=("unit",))
    require(world, RequiredStatuses())
    world.fails(1)
    world.passes(2)
    world.save_landing_intent()
    world.apply(e.SettingsSaved(config=a_config()))
    world.perform(t.Land)
    assert [world.reason(number) for number in (1, 2)] == [Reason.MERGED_BY_QUEUE] * 2


def test_without_required_statuses_a_cleared_pr_does_not_fail():
    """1 failed and 2 passed in a paused queue, and 1 has no slot to be tested again."""
    world = a_world(prs=3, depth=2, concurrency=3)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.fails(1)
    world.passes(2)
    world.apply(e.SettingsSaved(config=a_config(depth=2, concurrency=1)), e.StateRequested(state=QueueState.RUNNING))
    require(world, RequiredStatuses())
    world.passes(3)
    assert world.state(1) is PullRequestState.TESTS_PASSED


# What starts first because others wait for it.


def test_a_base_in_question_is_tested_before_any_pr():
    world = a_world(prs=1, base_passed=False, concurrency=1)
    world.submit(2)
    world.fails(1)
    assert world.queue_text == "main ← 1✗ ?"


def test_a_base_in_question_waits_for_a_slot():
    world = a_world(prs=2, base_passed=False)
    world.apply(e.SettingsSaved(config=a_config(concurrency=1)))
    world.fails(1)
    assert world.queue_text == "main ← 1✗ ← 2…"


def test_of_two_bases_in_question_one_waits_for_a_slot():
    """1 fails on a base that was never tested, 4 on a tip to which 3 was rebased."""
    world = a_parallel_world("w", "x", "y", base_passed=False)
    for number in 2, 3:
        world.passes(number)
        world.perform_pending_tasks()
    world.submit(4, impacted_targets=impacted_targets_from_names("z"))
    world.build()
    bases = sorted({world.run_of(1).base, world.run_of(4).base})
    world.apply(e.SettingsSaved(config=a_config(mode=Mode.PARALLEL, concurrency=1)))
    world.apply(world.observe_result(CheckState.FAILED, 1), world.observe_result(CheckState.FAILED, 4))
    tested = [run.base for run in world.queue.runs.values() if run.kind is RunKind.BASE]
    assert (len(bases), tested) == (2, bases[:1])


def test_a_failed_base_run_is_run_again_as_often_as_the_settings_say():
    world = a_world(prs=1, base_passed=False, test_retries=2)
    for _ in range(3):
        world.fails(1)
        world.build()
    attempts = list[int]()
    for _ in range(3):
        attempts.append(world.run_of().attempt)
        world.fails()
        world.build()
    assert (attempts, world.reason(1)) == ([0, 1, 2], Reason.BASE_BROKEN)


def test_with_optimistic_merging_prs_behind_start_before_a_pr_fails():
    world = a_world(prs=2, depth=1, concurrency=1)
    world.fails(1)
    assert world.queue_text == "main ← 1✗ ← 2…"


def test_without_depth_no_pr_waits_for_the_prs_behind():
    world = a_world(prs=2, depth=0, concurrency=1)
    world.fails(1)
    assert world.queue_text == "main ← 2…"


@pytest.mark.parametrize("speculation", Speculation)
def test_all_batches_without_a_run_are_in_their_new_lanes_before_one_starts(speculation: Speculation):
    world = a_parallel_world("x", "y", speculation=speculation)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.push_to_target_branch({"other": "other"})
    world.apply(e.TargetBranchDirty())
    world.perform(t.ReadTargetBranch)
    for number in 1, 2:
        world.apply(
            e.ImpactedTargetsUploaded(
                number=PullRequestNumber(number),
                head=world.head(number),
                impacted_targets=impacted_targets_from_names("z"),
            )
        )
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    assert world.queue_text == "main ← 1… ∥ 1 ← 2…"
