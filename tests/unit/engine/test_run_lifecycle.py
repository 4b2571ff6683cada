"""Runs start with the current settings, are repeated with a new tip, and end when they are not needed."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import RunId
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.states import IllegalTransition, PullRequestState, QueueState, RunStatus
from mergeyard.domain.timestamps import MINUTE
from mergeyard.engine import run_lifecycle
from tests.support.builders import a_config, a_parallel_world, a_queue, a_world, prs_ahead, prs_tested
from tests.support.world.world import START_TIME


def test_a_run_keeps_the_settings_that_it_started_with():
    world = a_world(
        prs=1,
        required_statuses=("lint",),
        merge_method=MergeMethod.SQUASH,
        landing=LandingMethod.PROVIDER_MERGE,
        testing_timeout_minutes=7,
    )
    world.apply(e.SettingsSaved(config=a_config(required_statuses=("lint",))))
    run = world.run_of(1)
    assert (run.required_statuses, run.merge_method, run.landing_method, run.timeout_ms) == (
        *(("lint",), MergeMethod.SQUASH),
        *(LandingMethod.PROVIDER_MERGE, 7 * MINUTE),
    )


def test_every_run_has_a_name_of_its_own():
    world = a_world(prs=2)
    assert len({run.id for run in world.queue.runs.values()}) == 2


# Repeating.


def test_a_repeated_run_keeps_all_commits_but_its_tip():
    world = a_world(prs=2, batch=2, test_retries=1)
    failed_run = world.run_of(1, 2)
    world.fails(1, 2)
    assert world.run_of(1, 2).chain == failed_run.chain[:1]


def test_a_repeated_run_has_a_tip_of_its_own():
    world = a_world(prs=1, test_retries=1)
    failed_run = world.run_of(1)
    world.fails(1)
    world.build()
    again = world.run_of(1)
    assert (again.tip != failed_run.tip, again.chain[-1].is_interchangeable_with(failed_run.chain[-1])) == (True, True)


def test_a_run_repeated_with_another_merge_method_rebuilds_all_commits():
    world = a_world(prs=3, batch=2, batching_max_wait_time_minutes=0, test_retries=1)
    world.apply(e.SettingsSaved(config=replace(world.queue.config, merge_method=MergeMethod.REBASE)))
    world.fails(3)
    again = world.run_of(3)
    assert (again.merge_method, again.chain) == (MergeMethod.REBASE, ())


def test_a_base_run_is_repeated_on_the_same_base():
    world = a_world(prs=1, base_passed=False, test_retries=1)
    for _ in range(2):
        world.fails(1)
        world.build()
    world.fails()
    run = world.run_of()
    assert (run.attempt, run.base, run.chain) == (1, world.host.tip, ())


# Slots.


def test_active_batch_runs_take_slots():
    assert run_lifecycle.free_slots(a_queue(prs=2, concurrency=5)) == 3


def test_a_run_that_is_over_takes_no_slot():
    world = a_world(prs=2, concurrency=5)
    world.passes(1)
    assert run_lifecycle.free_slots(world.queue) == 4


def test_a_base_run_takes_a_slot():
    world = a_world(prs=1, base_passed=False, concurrency=5)
    world.fails(1)
    assert run_lifecycle.free_slots(world.queue) == 4


def test_a_bisection_takes_no_slot_of_batch_runs():
    world = a_world(prs=4, batch=4, concurrency=5)
    world.fails(1, 2, 3, 4)
    assert run_lifecycle.free_slots(world.queue) == 5


def test_a_bisection_takes_from_its_own_budget():
    world = a_world(prs=4, batch=4, bisection_concurrency=5)
    world.fails(1, 2, 3, 4)
    assert run_lifecycle.free_bisection_slots(world.queue) == 2


def test_batch_runs_take_nothing_from_the_budget_of_bisections():
    assert run_lifecycle.free_bisection_slots(a_queue(prs=2, bisection_concurrency=5)) == 5


def test_more_active_runs_than_slots_leave_none_free():
    queue = replace(a_queue(prs=3), config=a_config(concurrency=1))
    assert run_lifecycle.free_slots(queue) == 0


def test_more_active_probes_than_the_budget_leave_no_room():
    world = a_world(prs=4, batch=4)
    world.fails(1, 2, 3, 4)
    queue = replace(world.queue, config=a_config(batch=4, bisection_concurrency=1))
    assert run_lifecycle.free_bisection_slots(queue) == 0


def test_a_paused_queue_has_no_slots():
    queue = replace(a_queue(), requested_state=QueueState.PAUSED)
    assert (run_lifecycle.free_slots(queue), run_lifecycle.free_bisection_slots(queue)) == (0, 0)


# The end.


def test_a_run_that_is_not_needed_is_cancelled():
    world = a_world(prs=1)
    run = world.run_of(1)
    world.cancel(1)
    assert world.queue.runs[run.id].status is RunStatus.CANCELLED


def test_a_run_that_is_not_needed_is_kept_until_its_branch_is_deleted():
    world = a_world(prs=1)
    run = world.run_of(1)
    world.cancel(1)
    world.perform(t.DeleteBranch)
    assert run.id not in world.queue.runs


def test_a_run_that_is_stopped_while_it_is_being_built_may_have_a_branch():
    world = a_world()
    world.submit(1)
    run = world.run_of(1)
    world.cancel(1)
    assert world.pending_tasks(t.DeleteBranch) == (t.DeleteBranch(run=run.id),)


def test_a_run_that_is_stopped_while_it_waits_for_another_has_no_branch():
    world = a_world()
    world.submit(1, 2)
    run = world.run_of(2)
    assert [each.id for each in world.cancel(2).finished_runs] == [run.id]


def test_a_base_run_is_not_needed_once_its_base_is_not_in_question():
    world = a_world(prs=1, base_passed=False)
    world.fails(1)
    world.build()
    base_run = world.run_of()
    world.cancel(1)
    assert world.queue.runs[base_run.id].status is RunStatus.CANCELLED


def test_the_run_of_a_landing_is_needed():
    world = a_world(prs=1)
    world.passes(1)
    assert world.run_of(1).id in run_lifecycle.needed_run_ids(replace(world.queue, active=a_queue().active))


def test_a_decided_run_cannot_be_decided_again():
    world = a_world(prs=1)
    world.passes(1)
    with pytest.raises(IllegalTransition):
        run_lifecycle.finish_run(world.queue, world.run_of(1), RunStatus.FAILED, START_TIME)


def test_after_an_illegal_change_nothing_is_changed():
    world = a_world(prs=1)
    world.passes(1)
    before = world.queue
    with pytest.raises(IllegalTransition):
        run_lifecycle.finish_run(world.queue, world.run_of(1), RunStatus.FAILED, START_TIME)
    assert (world.queue, world.run_of(1).status) == (before, RunStatus.SUCCEEDED)


def test_a_run_is_known_by_its_name():
    queue = a_queue(prs=1)
    (run,) = queue.runs.values()
    other = replace(run, id=RunId("other"))
    assert run_lifecycle.put_run(queue, other).runs == {run.id: run, other.id: other}


def test_a_run_is_based_on_the_current_tip():
    world = a_world(prs=1)
    assert world.run_of(1).base == world.host.tip


def test_a_run_contains_all_prs_ahead():
    world = a_world(prs=3)
    run = world.run_of(3)
    assert (prs_ahead(run), prs_tested(run)) == ((1, 2), (3,))


def test_a_run_tests_its_whole_batch():
    world = a_world(prs=4, batch=2)
    run = world.run_of(3, 4)
    assert (prs_ahead(run), prs_tested(run)) == ((1, 2), (3, 4))


def test_in_parallel_mode_a_run_contains_what_it_depends_on():
    world = a_parallel_world("x", "y", "x")
    assert prs_ahead(world.run_of(3)) == (1,)


def test_a_run_reuses_the_commits_of_the_run_ahead():
    world = a_world(prs=2)
    assert world.run_of(2).chain[:1] == world.run_of(1).chain


def test_only_the_batchs_own_commits_are_new():
    world = a_world(prs=2)
    (first,), (_, second) = world.run_of(1).chain, world.run_of(2).chain
    assert second.parent == first.commit


def test_a_run_whose_predecessor_is_not_built_continues_it_later():
    world = a_world()
    world.submit(1, 2)
    assert (world.run_of(2).extends, world.run_of(2).chain) == (world.run_of(1).id, ())


def test_a_run_started_later_reuses_what_is_built():
    world = a_world(prs=1)
    world.submit(2)
    run = world.run_of(2)
    assert (run.extends, run.chain) == (None, world.run_of(1).chain)


def test_a_run_that_starts_after_some_ahead_landed_reuses_the_rest():
    world = a_world(prs=2)
    world.passes(1)
    world.perform_pending_tasks()
    world.submit(3)
    world.build()
    run = world.run_of(3)
    assert (run.base, prs_ahead(run), run.chain[0]) == (world.host.tip, (2,), world.run_of(2).chain[1])


def test_on_top_of_two_lanes_a_run_reuses_the_commits_of_the_first():
    world = a_parallel_world("x", "y", "xy")
    run = world.run_of(3)
    assert (prs_ahead(run), run.chain[0], run.chain[1].parent) == (
        *((1, 2), world.run_of(1).chain[0]),
        world.run_of(1).tip,
    )


def test_a_run_does_not_reuse_a_lane_that_is_not_based_on_its_tip():
    """1 landed, so the run of 2 is not based on the tip, and a run on top of 2 starts at the tip."""
    world = a_parallel_world("x", "y")
    world.passes(1)
    world.perform_pending_tasks()
    world.submit(3, impacted_targets=world.submission(2).impacted_targets)
    world.build()
    run = world.run_of(3)
    assert (run.base, prs_ahead(run), run.chain[0].parent) == (world.host.tip, (2,), world.host.tip)


def test_a_run_does_not_reuse_a_run_that_was_cancelled():
    """The run of 2 was stopped for a restart, and its test branch may be deleted already."""
    world = a_world(prs=3)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.restart(2)
    stack = run_lifecycle.plan_stack(world.queue, world.queue.active.batches[2], world.host.tip)
    assert stack.reused_steps == world.run_of(1).chain


def test_a_run_that_waits_to_be_built_starts_again_when_a_pr_ahead_landed():
    world = a_parallel_world("x", "y")
    world.submit(3, impacted_targets=impacted_targets_from_names("x", "y"))
    world.passes(2)
    world.save_landing_intent()
    world.perform(t.Land)
    run = world.run_of(3)
    assert (run.base, prs_ahead(run)) == (world.host.tip, (1,))


def test_a_chain_whose_predecessors_landed_as_tested_stays_a_fast_forward():
    world = a_world(prs=2)
    run = world.run_of(2)
    world.passes(1)
    world.perform_pending_tasks()
    world.passes(2)
    world.perform_pending_tasks()
    assert (world.host.tip, world.state(2)) == (run.tip, PullRequestState.MERGED)
