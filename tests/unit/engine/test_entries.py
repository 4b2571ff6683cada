"""Pull requests move between the parts of the queue and are in one at a time; their states follow from there."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import BatchId, PullRequestNumber, SubmissionId
from mergeyard.domain.pull_requests import Hold, impacted_targets_from_names
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import CheckState, IllegalTransition, PullRequestState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import entries
from tests.support.builders import (
    QueueWorld,
    a_config,
    a_parallel_world,
    a_plain_queue,
    a_submission,
    a_world,
    prs_tested,
)
from tests.support.world.world import START_TIME

ONE, TWO, THREE = SubmissionId(1), SubmissionId(2), SubmissionId(3)
HOLD = Hold(Reason.CONFLICTS_WITH_PR_AHEAD, blockers=(TWO,))


def waiting(queue: Queue) -> dict[int, list[SubmissionId]]:
    return {priority: list(bucket) for priority, bucket in queue.waiting.items()}


def a_batch_of_three() -> Queue:
    return a_world(prs=3, batch=3).queue


def test_an_update_that_changes_nothing_returns_the_same_queue():
    queue = a_plain_queue(a_submission(1))
    assert entries.update_submission(queue, a_submission(1)) is queue


def test_waiting_prs_are_ordered_by_priority():
    queue = a_plain_queue(a_submission(1, priority=7), a_submission(2), a_submission(3))
    assert waiting(queue) == {7: [1], 100: [2, 3]}


def test_a_pr_that_is_removed_from_waiting_is_no_longer_there():
    queue = entries.remove_entry(a_plain_queue(a_submission(1), a_submission(2)), ONE)
    assert waiting(queue) == {100: [2]}


def test_a_priority_without_prs_is_dropped():
    assert entries.remove_entry(a_plain_queue(a_submission(1)), ONE).waiting == {}


def test_a_held_pr_has_its_hold():
    queue = entries.remove_entry(a_plain_queue(a_submission(1)), ONE)
    held = entries.move_to_held(queue, ONE, HOLD)
    assert (list(held.held), held.submissions[ONE].hold) == ([1], HOLD)


def test_a_pr_that_waits_again_is_no_longer_held():
    held = entries.move_to_held(entries.remove_entry(a_plain_queue(a_submission(1)), ONE), ONE, HOLD)
    queue = entries.move_to_waiting(entries.remove_entry(held, ONE), ONE)
    assert (list(queue.held), queue.submissions[ONE].hold, waiting(queue)) == ([], None, {100: [1]})


def test_prs_that_are_not_ready_are_ordered_by_running_time():
    queue = entries.move_to_not_ready(entries.remove_entry(a_plain_queue(a_submission(1)), ONE), ONE, 500)
    assert list(queue.not_ready) == [(500, 1)]


def test_a_ready_pr_is_removed_from_not_ready():
    queue = entries.move_to_not_ready(entries.remove_entry(a_plain_queue(a_submission(1)), ONE), ONE, 500)
    assert list(entries.remove_entry(queue, ONE).not_ready) == []


def test_a_batch_that_loses_a_member_keeps_its_position():
    queue = entries.remove_entry(a_batch_of_three(), TWO)
    assert [(batch.id, batch.submission_ids) for batch in queue.active.batches] == [(1, (1, 3))]


def test_a_batch_that_loses_its_last_member_is_removed():
    queue = a_world(prs=1).queue
    assert entries.remove_entry(queue, ONE).active.batches == ()


def test_a_batch_that_loses_a_member_impacts_only_what_the_others_do():
    world = a_parallel_world("x", "xy", batch=2)
    queue = entries.remove_entry(world.queue, TWO)
    assert queue.active.batches[0].impacted_targets == impacted_targets_from_names("x")


def test_a_batch_whose_targets_changed_keeps_its_position_in_a_new_lane():
    world = a_parallel_world("x", "y", "x")
    uploaded = entries.update_submission(
        world.queue, replace(world.submission(2), impacted_targets=impacted_targets_from_names("x"))
    )
    batch = entries.batch_of(uploaded, TWO)
    assert batch is not None
    assert entries.recompute_lane(uploaded, batch).active.ahead == {1: (), 2: (1,), 3: (1, 2)}


def test_a_batch_whose_targets_changed_impacts_what_its_members_do_now():
    world = a_parallel_world("x")
    uploaded = entries.update_submission(
        world.queue, replace(world.submission(1), impacted_targets=impacted_targets_from_names("y"))
    )
    (renewed,) = entries.recompute_lane(uploaded, world.queue.active.batches[0]).active.batches
    assert renewed == replace(world.queue.active.batches[0], impacted_targets=impacted_targets_from_names("y"))


def test_a_batch_is_found_by_any_of_its_members():
    batch = entries.batch_of(a_batch_of_three(), THREE)
    assert batch is not None
    assert batch.submission_ids == (1, 2, 3)


def test_a_waiting_pr_is_in_no_batch():
    assert entries.batch_of(a_plain_queue(a_submission(1)), ONE) is None


def test_batches_are_numbered():
    queue, batch = entries.create_batch(a_batch_of_three(), (ONE,))
    assert (batch.id, queue.counters.batches) == (2, 2)


def test_a_batch_that_is_removed_leaves_the_others():
    queue = a_world(prs=3).queue
    batch = entries.batch_of(queue, TWO)
    assert batch is not None
    assert entries.remove_batch(queue, batch).active.ahead == {1: (), 3: (BatchId(1),)}


def test_prs_that_are_moved_back_wait_again():
    world = a_world(prs=2)
    queue = entries.return_to_waiting(entries.remove_entry(world.queue, ONE), (ONE,), Reason.BISECTION, START_TIME)
    assert (waiting(queue), queue.submissions[ONE].state) == ({100: [1]}, PullRequestState.PENDING)


def test_held_prs_are_to_be_tested_again():
    world = a_world(prs=2)
    hold = Hold(Reason.BASE_BROKEN, tip=world.host.tip)
    queue = entries.return_to_held(entries.remove_entry(world.queue, ONE), (ONE,), hold, START_TIME)
    assert (list(queue.held), queue.submissions[ONE].reason) == ([1], Reason.BASE_BROKEN)


def test_prs_that_are_kept_together_name_each_other():
    queue = entries.keep_together(a_plain_queue(a_submission(1), a_submission(2)), (ONE, TWO))
    assert [each.keep_together for each in queue.submissions.values()] == [(1, 2), (1, 2)]


NOON = Instant(12)


def in_one_decision(world: QueueWorld, verdict: CheckState) -> None:
    """The only run is built and decided in one decision."""
    (build,) = world.pending_tasks(t.BuildRun)
    built = world.host.perform_task(build, 0)
    (run,) = world.queue.runs
    state = {"unit": verdict}
    world.apply(built, e.ChecksObserved(run=run, checks=state, observed_at_revision=world.queue.counters.revision))


# Transitions.


def test_a_new_state_has_its_reason_and_time():
    queue = entries.set_state(
        a_plain_queue(a_submission(1)), ONE, PullRequestState.TESTING, Reason.TEST_RUN_STARTED, NOON, detail="hello"
    )
    changed = queue.submissions[ONE]
    assert (changed.state, changed.reason, changed.state_changed_at, changed.detail) == (
        *(PullRequestState.TESTING, Reason.TEST_RUN_STARTED),
        *(NOON, "hello"),
    )


def test_an_illegal_transition_raises():
    with pytest.raises(IllegalTransition):
        entries.set_state(a_plain_queue(a_submission(1)), ONE, PullRequestState.MERGED, Reason.MERGED_BY_QUEUE, NOON)


def test_after_an_illegal_transition_nothing_is_changed():
    queue = a_plain_queue(a_submission(1))
    before = queue.submissions[ONE]
    with pytest.raises(IllegalTransition):
        entries.set_state(queue, ONE, PullRequestState.MERGED, Reason.MERGED_BY_QUEUE, NOON)
    assert (queue.submissions[ONE], len(queue.output.journal)) == (before, 0)


@pytest.mark.parametrize("state", [PullRequestState.NOT_READY, PullRequestState.PENDING])
def test_requeueing_a_pr_that_was_not_tested_changes_nothing(state: PullRequestState):
    queue = a_plain_queue(a_submission(1, state=state))
    assert entries.requeue(queue, ONE, Reason.TARGET_BRANCH_MOVED, NOON) is queue


def test_a_pr_that_was_tested_is_requeued():
    queue = a_plain_queue(a_submission(1, state=PullRequestState.TESTS_PASSED))
    after = entries.requeue(queue, ONE, Reason.TARGET_BRANCH_MOVED, NOON).submissions[ONE]
    assert (after.state, after.reason) == (PullRequestState.PENDING, Reason.TARGET_BRANCH_MOVED)


# In an active batch.


def test_a_pr_whose_run_is_not_built_is_pending():
    world = a_world()
    world.submit(1)
    assert world.state(1) is PullRequestState.PENDING


def test_a_pr_whose_run_is_in_progress_is_testing():
    world = a_world(prs=1)
    assert (world.state(1), world.reason(1)) == (PullRequestState.TESTING, Reason.TEST_RUN_STARTED)


def test_a_pr_whose_run_passed_has_passed():
    world = a_world(prs=2)
    world.passes(2)
    assert (world.state(2), world.reason(2)) == (PullRequestState.TESTS_PASSED, Reason.TEST_RUN_PASSED)


def test_a_pr_whose_run_failed_is_in_pending_failure():
    world = a_world(prs=2)
    world.fails(2)
    assert (world.state(2), world.reason(2)) == (PullRequestState.PENDING_FAILURE, Reason.CAUSE_UNKNOWN)


def test_a_pr_whose_run_timed_out_is_in_pending_failure_too():
    world = a_world(prs=2, testing_timeout_minutes=1)
    world.advance_time(60_000)
    world.apply(world.observe_checks(world.run_of(2), {}))
    assert (world.state(2), world.reason(2)) == (PullRequestState.PENDING_FAILURE, Reason.CAUSE_UNKNOWN)


def test_a_pr_that_a_run_behind_cleared_has_passed():
    world = a_world(prs=2, depth=0)
    world.passes(2)
    assert (world.state(1), world.reason(1)) == (PullRequestState.TESTS_PASSED, Reason.SUCCESSOR_PASSED)


def test_every_member_of_a_batch_has_the_same_state():
    world = a_world(prs=3, batch=3)
    assert [world.state(number) for number in (1, 2, 3)] == [PullRequestState.TESTING] * 3


def test_a_pr_that_is_in_a_run_shows_it():
    world = a_world(prs=1)
    assert (world.submission(1).run, world.submission(1).was_in_run) == (world.run_of(1).id, True)


def test_a_pr_that_is_tested_again_shows_the_new_run():
    world = a_world(prs=1)
    world.restart(1)
    world.build()
    assert world.submission(1).run == world.run_of(1).id


def test_a_pr_whose_failed_run_is_to_be_repeated_is_still_testing():
    world = a_world(prs=1, test_retries=1)
    world.fails(1)
    assert world.timeline(1)[-1] == (PullRequestState.TESTING, Reason.TEST_RUN_STARTED)


def test_a_failed_pr_that_is_retried_is_testing_again():
    world = a_world(prs=2)
    world.fails(2)
    world.apply(e.SettingsSaved(config=a_config(test_retries=1)))
    world.build()
    assert world.timeline(2)[-3:] == [
        (PullRequestState.PENDING_FAILURE, Reason.CAUSE_UNKNOWN),
        (PullRequestState.PENDING, Reason.RUN_REPLACED),
        (PullRequestState.TESTING, Reason.TEST_RUN_STARTED),
    ]


def test_the_timeline_skips_no_state_when_much_happens_in_one_decision():
    world = a_world(base_passed=False)
    world.submit(1)
    in_one_decision(world, CheckState.FAILED)
    assert [state for state, _ in world.timeline(1)] == [
        PullRequestState.NOT_READY,
        PullRequestState.PENDING,
        PullRequestState.TESTING,
        PullRequestState.PENDING_FAILURE,
    ]


def test_a_pr_can_pass_in_the_decision_in_which_its_run_is_built():
    world = a_world()
    world.submit(1)
    in_one_decision(world, CheckState.PASSED)
    assert world.timeline(1)[-1] == (PullRequestState.TESTS_PASSED, Reason.TEST_RUN_PASSED)


# In a bisection.


def a_bisection_world() -> QueueWorld:
    """A bisection of 1, 2, 3 and 4, one prefix at a time."""
    world = a_world(prs=4, batch=4, bisection_concurrency=1)
    world.fails(1, 2, 3, 4)
    return world


def test_prs_of_a_failed_batch_are_in_pending_failure():
    world = a_bisection_world()
    assert [world.state(number) for number in (1, 4)] == [PullRequestState.PENDING_FAILURE] * 2


def test_prs_under_test_in_a_bisection_are_testing():
    world = a_bisection_world()
    world.build()
    assert [world.state(number) for number in (1, 2, 3, 4)] == [
        *[PullRequestState.TESTING] * 2,
        *[PullRequestState.PENDING_FAILURE] * 2,
    ]


def test_the_timeline_shows_the_bisection():
    world = a_bisection_world()
    world.build()
    assert world.timeline(1)[-2:] == [
        (PullRequestState.PENDING, Reason.BISECTION),
        (PullRequestState.TESTING, Reason.TEST_RUN_STARTED),
    ]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_pr_in_several_probes_shows_one_of_them(number: int):
    world = a_world(prs=4, batch=4)
    world.fails(1, 2, 3, 4)
    world.build()
    shown = world.submission(number).run
    assert shown is not None
    assert number in prs_tested(world.queue.runs[shown])


def test_a_suspect_is_in_pending_failure_when_its_probe_is_over():
    world = a_bisection_world()
    world.build()
    world.passes(1, 2)
    world.build()
    world.fails(1, 2, 3)
    assert (world.state(3), world.reason(3)) == (PullRequestState.PENDING_FAILURE, Reason.BATCH_FAILED)


def test_prs_of_a_failed_batch_are_not_told_to_fix_anything():
    world = a_world(prs=2, batch=2, testing_timeout_minutes=1)
    world.advance_time(60_000)
    world.perform(t.ReadChecks)
    assert (world.state(2), world.reason(2)) == (PullRequestState.PENDING_FAILURE, Reason.BATCH_FAILED)


def test_an_entry_names_the_run_that_is_shown():
    world = a_world(prs=1)
    run = world.run_of(1)
    (entry,) = world.fails(1).journal
    assert (entry.reason, getattr(entry, "run", None), getattr(entry, "number", None)) == (
        *(Reason.TEST_RUN_FAILED, run.id),
        PullRequestNumber(1),
    )
