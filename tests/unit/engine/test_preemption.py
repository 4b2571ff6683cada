"""Urgent pull requests preempt active batches, but not those that passed, and no batch more than three times."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.pull_requests import ALL_TARGETS, impacted_targets_from_names
from mergeyard.domain.states import PullRequestState, QueueState, Reason
from tests.support.builders import QueueWorld, a_parallel_world, a_wait_reason, a_world, prs_ahead


def preemptions(world: QueueWorld) -> list[int]:
    return [batch.preemptions for batch in world.queue.active.batches]


# Where an urgent pull request is placed.


def test_an_urgent_pr_is_placed_ahead_of_prs_under_test():
    world = a_world(prs=2)
    world.submit(3, priority=0)
    assert world.queue_text == "main ← 3… ← 1… ← 2…"


def test_prs_that_an_urgent_pr_preempts_are_retested_behind_it():
    world = a_world(prs=1)
    world.submit(2, priority=0)
    assert (world.state(1), world.reason(1), prs_ahead(world.run_of(1))) == (
        *(PullRequestState.PENDING, Reason.SKIP_THE_LINE_INTERRUPTED),
        (2,),
    )


def test_an_urgent_pr_is_placed_behind_an_earlier_urgent_pr():
    world = a_world(prs=1)
    world.submit(2, priority=0)
    world.submit(3, priority=0)
    assert world.queue_text == "main ← 2… ← 3… ← 1…"


def test_an_urgent_pr_is_placed_behind_passed_prs_at_the_front():
    world = a_world(prs=3)
    world.passes(1)
    world.submit(4, priority=0)
    assert world.queue_text == "main ← 1✓ ← 4… ← 2… ← 3…"


def test_an_urgent_pr_preempts_passed_prs_behind_prs_that_did_not_pass():
    world = a_world(prs=2)
    world.passes(2)
    world.submit(3, priority=0)
    assert world.queue_text == "main ← 3… ← 1… ← 2…"


def test_an_urgent_pr_is_placed_behind_cleared_prs():
    world = a_world(prs=3, depth=0)
    world.passes(2)
    world.submit(4, priority=0)
    assert world.queue_text == "main ← 1✓ ← 2✓ ← 4… ← 3…"


def test_an_urgent_pr_is_placed_behind_a_landing():
    world = a_world(prs=2)
    world.passes(1)
    world.save_landing_intent()
    world.submit(3, priority=0)
    assert world.queue_text == "main ← 1✓ ← 3… ← 2…"


def test_an_urgent_pr_is_a_batch_of_one_and_does_not_wait_for_others():
    world = a_world(batch=2)
    world.submit(1, priority=0)
    assert world.queue_text == "main ← 1…"


def test_two_urgent_prs_are_two_batches():
    world = a_world(batch=2)
    world.submit(1, 2, priority=0)
    assert world.queue_text == "main ← 1… ← 2…"


def test_an_urgent_pr_takes_the_next_free_slot():
    world = a_world(prs=2, concurrency=2)
    world.submit(3)
    world.submit(4, priority=0)
    assert world.queue_text == "main ← 4… ← 1… ← 2"


def test_an_urgent_pr_is_placed_behind_a_pr_whose_commits_it_contains():
    world = a_world(prs=2)
    world.submit(3, stacked_on=1, priority=0)
    assert world.queue_text == "main ← 1… ← 3… ← 2…"


def test_an_urgent_pr_waits_for_a_pr_whose_commits_it_contains():
    world = a_world(prs=2, concurrency=1)
    world.submit(3, stacked_on=2, priority=0)
    assert (world.queue_text, world.wait_reason(3)) == ("main ← 1…", a_wait_reason(Reason.WAITING_FOR_PRS_AHEAD, 2))


# Lanes.


def test_an_urgent_pr_does_not_preempt_other_lanes():
    world = a_parallel_world("x", "y")
    runs = [world.run_of(1), world.run_of(2)]
    world.submit(3, priority=0, impacted_targets=impacted_targets_from_names("y"))
    assert (world.run_of(1), world.run_of(2) == runs[1]) == (runs[0], False)


def test_an_urgent_pr_is_placed_ahead_of_all_prs_of_its_lane():
    world = a_parallel_world("x", "y", "xy")
    world.submit(4, priority=0, impacted_targets=impacted_targets_from_names("y"))
    assert world.queue_text == "main ← 4… ∥ main ← 1… ∥ 4 ← 2… ∥ 4, 1, 2 ← 3…"


def test_an_urgent_pr_is_not_placed_indirectly_ahead_of_a_pr_that_must_not_be_preempted():
    """2 passed on top of 1; to be ahead of 1 would mean to be ahead of 2 as well, unless 1 passed too."""
    world = a_parallel_world("x", "xy")
    world.passes(1)
    world.passes(2)
    world.submit(3, priority=0, impacted_targets=ALL_TARGETS)
    assert world.queue_text == "main ← 1✓ ∥ 1 ← 2✓ ∥ 1, 2 ← 3…"


# The limit of preemptions.


def test_every_preemption_of_a_run_is_counted():
    world = a_world(prs=1)
    world.submit(2, priority=0)
    assert preemptions(world) == [0, 1]


def test_a_pr_without_a_run_was_not_preempted():
    world = a_world(prs=2, concurrency=2)
    world.submit(3, priority=0)
    world.submit(4, priority=0)
    assert (world.queue_text, preemptions(world)) == ("main ← 3… ← 4… ← 1 ← 2", [0, 0, 2, 1])


def test_a_batch_preempted_three_times_is_not_preempted_again():
    world = a_world(prs=1)
    world.submit(2, priority=0)
    world.submit(3, priority=0)
    world.submit(4, priority=0)
    world.submit(5, priority=0)
    assert world.queue_text == "main ← 2… ← 3… ← 4… ← 1… ← 5…"


def test_prs_behind_a_pr_that_is_not_preempted_again_can_be_preempted():
    world = a_world(prs=1)
    world.submit(2, priority=0)
    world.submit(3, priority=0)
    world.submit(4, priority=0)
    world.submit(6)
    world.submit(5, priority=0)
    assert world.queue_text == "main ← 2… ← 3… ← 4… ← 1… ← 5… ← 6"


@pytest.mark.parametrize("state", [QueueState.PAUSED])
def test_while_no_run_can_start_no_pr_is_preempted(state: QueueState):
    world = a_world(prs=3, concurrency=2)
    world.apply(e.StateRequested(state=state))
    world.submit(3, priority=0)
    assert world.queue_text == "main ← 1… ← 2…"


def test_when_runs_can_start_again_the_active_batches_are_preempted():
    world = a_world(prs=3, concurrency=2)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.submit(3, priority=0)
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    assert world.queue_text == "main ← 3… ← 1… ← 2"


# Becoming urgent.


def test_a_pr_that_becomes_urgent_while_it_waits_preempts_the_active_batches():
    world = a_world(prs=2, concurrency=1)
    world.submit(2, priority=0)
    assert world.queue_text == "main ← 2… ← 1"


def test_a_pr_that_becomes_urgent_in_an_active_batch_preempts_the_prs_ahead():
    world = a_world(prs=3)
    world.submit(3, priority=0)
    assert world.queue_text == "main ← 3… ← 1… ← 2…"


def test_a_pr_that_becomes_urgent_leaves_its_batch():
    world = a_world(prs=3, batch=3)
    world.submit(2, priority=0)
    assert world.queue_text == "main ← 2… ← 1+3…"


def test_a_pr_that_becomes_urgent_at_the_front_goes_on():
    world = a_world(prs=2)
    runs = [world.run_of(1), world.run_of(2)]
    world.submit(1, priority=0)
    assert [world.run_of(1), world.run_of(2)] == runs


def test_a_pr_that_became_urgent_at_the_front_is_not_preempted():
    world = a_world(prs=2)
    world.submit(1, priority=0)
    world.submit(3, priority=0)
    assert world.queue_text == "main ← 1… ← 3… ← 2…"


def test_a_pr_that_becomes_urgent_when_it_passed_keeps_its_position():
    world = a_world(prs=2, batch=2)
    world.passes(1, 2)
    world.submit(2, priority=0)
    assert world.queue_text == "main ← 1+2✓"


def test_a_pr_that_becomes_urgent_before_it_is_ready_preempts_the_active_batches_when_it_is():
    world = a_world(prs=1)
    world.open_pull_request(2)
    world.change(2, draft=True)
    world.submit(2)
    world.submit(2, priority=0)
    world.change(2, draft=False)
    world.apply(world.observe_pull_request(2))
    assert world.queue_text == "main ← 2… ← 1…"


def test_a_pr_that_becomes_urgent_in_a_bisection_stays_there():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.submit(2, priority=0)
    assert world.queue_text == "main ⋔ 1+2 : 1…"


def test_an_urgent_pr_that_waits_again_preempts_the_active_batches_again():
    world = a_world(prs=2, batch=2)
    world.fails(1, 2)
    world.build()
    world.submit(2, priority=0)
    world.submit(3, no_batch=True)
    world.fails(1)
    assert world.queue_text == "main ← 2… ← 3…"


def test_nothing_else_of_a_batch_changes_when_a_member_becomes_urgent():
    world = a_world(prs=1)
    (before,) = world.queue.active.batches
    world.submit(1, priority=0)
    assert world.queue.active.batches == (replace(before, urgent=True),)


# Becoming urgent while no batch can be preempted.


def a_world_with_an_urgent_pr_in_a_paused_queue() -> QueueWorld:
    world = a_world(prs=3)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.submit(2, priority=0)
    return world


def test_a_pr_that_becomes_urgent_in_an_active_batch_of_a_paused_queue_preempts_no_pr():
    assert a_world_with_an_urgent_pr_in_a_paused_queue().queue_text == "main ← 1… ← 2… ← 3…"


@pytest.mark.parametrize("state", [QueueState.RUNNING, QueueState.DRAINING])
def test_a_pr_that_became_urgent_in_an_active_batch_of_a_paused_queue_preempts_when_runs_can_start(state: QueueState):
    world = a_world_with_an_urgent_pr_in_a_paused_queue()
    world.apply(e.StateRequested(state=state))
    assert world.queue_text == "main ← 2… ← 1… ← 3…"


def test_a_resumed_queue_without_urgent_prs_goes_on_as_it_was():
    world = a_world(prs=3)
    before = world.queue.active
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.apply(e.StateRequested(state=QueueState.RUNNING))
    assert world.queue.active == before
