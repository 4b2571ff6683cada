"""Running time, overdue runs, and when the queue must decide again."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.states import Mergeability, PullRequestState, QueueState, Reason, RunStatus
from mergeyard.domain.timestamps import HOUR, MINUTE, Instant, later
from mergeyard.engine import timeouts
from mergeyard.engine.entries import running_time_ms
from mergeyard.engine.tasks import pending_tasks
from tests.support.builders import QueueWorld, a_run, a_world
from tests.support.world.world import START_TIME

PAUSED, RUNNING, DRAINING = QueueState.PAUSED, QueueState.RUNNING, QueueState.DRAINING


def a_world_with_a_pr_not_ready(hours: int = 24) -> QueueWorld:
    world = a_world(not_ready_timeout_hours=hours)
    world.open_pull_request(1)
    world.change(1, mergeability=Mergeability.UNKNOWN)
    world.submit(1)
    return world


def overdue(world: QueueWorld) -> bool:
    return any(isinstance(task, t.ReadChecks) for task in pending_tasks(world.queue))


# Running time.


def test_running_time_counts_while_the_queue_is_running():
    world = a_world()
    world.apply()
    world.advance_time(HOUR)
    assert running_time_ms(world.queue, world.now) == HOUR


@pytest.mark.parametrize("state", [PAUSED, DRAINING])
def test_running_time_stops_while_the_queue_is_not_running(state: QueueState):
    world = a_world()
    world.apply()
    world.advance_time(HOUR)
    world.apply(e.StateRequested(state=state))
    world.advance_time(HOUR)
    assert running_time_ms(world.queue, world.now) == HOUR


def test_running_time_continues_when_the_queue_runs_again():
    world = a_world()
    world.apply()
    world.apply(e.StateRequested(state=PAUSED))
    world.advance_time(HOUR)
    world.apply(e.StateRequested(state=RUNNING))
    world.advance_time(2 * HOUR)
    assert running_time_ms(world.queue, world.now) == 2 * HOUR


# Timeouts of runs.


def test_a_run_is_due_when_its_time_is_over():
    assert timeouts.run_deadline(a_run(1)) == START_TIME + 300 * MINUTE


def test_outages_put_the_deadline_off():
    assert timeouts.run_deadline(replace(a_run(1), outage_ms=MINUTE)) == START_TIME + 301 * MINUTE


@pytest.mark.parametrize("status", [RunStatus.PREPARING, RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED])
def test_a_run_that_is_not_in_progress_has_no_deadline(status: RunStatus):
    assert timeouts.run_deadline(a_run(1, status=status)) is None


def test_a_run_is_not_overdue_before_its_time():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.advance_time(10 * MINUTE - 1)
    assert not overdue(world)


def test_the_checks_of_an_overdue_run_are_read_once_more():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.advance_time(10 * MINUTE)
    assert (overdue(world), world.state(1)) == (True, PullRequestState.TESTING)


def test_a_new_read_ends_an_overdue_run():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.advance_time(10 * MINUTE)
    world.perform(t.ReadChecks)
    assert world.reason(1) is Reason.TEST_RUN_TIMEOUT


def test_a_run_keeps_the_timeout_that_it_started_with():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.apply(e.SettingsSaved(config=replace(world.queue.config, testing_timeout_minutes=60)))
    world.advance_time(10 * MINUTE)
    assert overdue(world)


OBSTACLES = (e.HostUnreachable(), e.HostLimiting(until=Instant(0)), e.HostRefusing(detail="403"), e.ServerFailing())


@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda event: type(event).__name__)
def test_while_an_obstacle_is_in_the_way_of_the_queue_no_run_becomes_overdue(obstacle: e.Event):
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.apply(obstacle)
    world.advance_time(10 * MINUTE)
    assert not overdue(world)


def test_a_refusal_of_a_single_pr_stops_no_deadline():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.apply(e.HostRefusing(detail="403", number=PullRequestNumber(1)))
    world.advance_time(10 * MINUTE)
    assert overdue(world)
    world.apply(e.HostReachable())
    assert world.run_of(1).outage_ms == 0


def test_a_limit_of_reads_that_wait_stops_no_deadline():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.apply(e.HostLimiting(until=Instant(0), only_waiting=True))
    world.advance_time(10 * MINUTE)
    assert overdue(world)


def test_an_obstacle_that_turns_into_another_one_counts_once():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.apply(e.HostUnreachable())
    world.advance_time(3 * MINUTE)
    world.apply(e.HostRefusing(detail="403"))
    assert world.run_of(1).outage_ms == 3 * MINUTE
    world.advance_time(4 * MINUTE)
    world.apply(e.HostReachable())
    assert world.run_of(1).outage_ms == 7 * MINUTE


@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda event: type(event).__name__)
def test_the_time_of_an_obstacle_does_not_count(obstacle: e.Event):
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.advance_time(4 * MINUTE)
    world.apply(obstacle)
    world.advance_time(7 * MINUTE)
    world.apply(e.HostReachable())
    assert not overdue(world)


def test_after_an_outage_the_rest_of_the_time_counts():
    world = a_world(prs=1, testing_timeout_minutes=10)
    world.advance_time(4 * MINUTE)
    world.apply(e.HostUnreachable())
    world.advance_time(7 * MINUTE)
    world.apply(e.HostReachable())
    world.advance_time(6 * MINUTE)
    assert overdue(world)


def test_a_run_that_started_during_an_outage_gets_back_only_its_own_part():
    world = a_world(testing_timeout_minutes=10)
    world.apply(e.HostUnreachable())
    world.advance_time(7 * MINUTE)
    world.submit(1)
    world.build()
    world.advance_time(MINUTE)
    world.apply(e.HostReachable())
    assert world.run_of(1).outage_ms == MINUTE


def test_a_run_that_is_not_built_yet_loses_nothing_in_an_outage():
    world = a_world()
    world.submit(1)
    world.apply(e.HostUnreachable())
    world.advance_time(MINUTE)
    world.apply(e.HostReachable())
    assert world.run_of(1).outage_ms == 0


def test_a_reachable_event_for_a_reachable_host_changes_nothing():
    world = a_world(prs=1)
    before = world.queue
    world.apply(e.HostReachable())
    assert world.queue is before


# When to decide again.


def test_an_idle_queue_has_no_wake_at():
    assert a_world().apply().wake_at is None


def test_wake_at_is_set_to_the_deadline_of_a_run():
    world = a_world(prs=2, testing_timeout_minutes=10)
    assert world.apply().wake_at == world.now + 10 * MINUTE


def test_wake_at_is_not_set_for_a_run_that_is_overdue_already():
    world = a_world(prs=1, testing_timeout_minutes=10)
    assert world.advance_time(10 * MINUTE).wake_at is None


def test_wake_at_is_not_set_for_a_run_while_the_host_is_unreachable():
    world = a_world(prs=1, testing_timeout_minutes=10)
    assert world.apply(e.HostUnreachable()).wake_at is None


def test_wake_at_is_set_to_the_end_of_the_wait_of_a_batch():
    world = a_world(batch=2, batching_max_wait_time_minutes=5)
    assert world.submit(1).wake_at == world.now + 5 * MINUTE


def test_wake_at_is_not_set_for_a_batch_while_all_slots_are_taken():
    world = a_world(prs=2, batch=2, concurrency=1)
    world.submit(3)
    assert world.apply().wake_at == world.now + 300 * MINUTE


def test_wake_at_is_set_to_the_not_ready_timeout_of_a_pr():
    world = a_world_with_a_pr_not_ready(hours=2)
    world.advance_time(HOUR)
    assert world.apply().wake_at == world.now + HOUR


def test_wake_at_is_not_set_for_a_pr_without_a_not_ready_timeout():
    assert a_world_with_a_pr_not_ready(hours=0).apply().wake_at is None


def test_wake_at_is_not_set_for_a_pr_that_is_not_ready_while_the_queue_is_paused():
    world = a_world_with_a_pr_not_ready()
    assert world.apply(e.StateRequested(state=PAUSED)).wake_at is None


# Processing resumed.


def test_when_processing_resumes_an_overdue_run_gets_more_time():
    world = a_world(prs=1, testing_timeout_minutes=60)
    world.now = later(world.now, 5 * HOUR)
    world.apply(e.ProcessingResumed())
    world.advance_time(timeouts.RESUME_GRACE_MS - 1)
    assert not overdue(world)
    world.advance_time(1)
    assert overdue(world)


def test_when_processing_resumes_an_overdue_run_that_was_read_is_no_longer_overdue():
    world = a_world(prs=1, testing_timeout_minutes=60)
    world.advance_time(HOUR)
    world.apply(e.ProcessingResumed())
    assert not overdue(world)


def test_a_short_timeout_is_not_made_longer_than_it_is():
    world = a_world(prs=1, testing_timeout_minutes=1)
    world.now = later(world.now, HOUR)
    world.apply(e.ProcessingResumed())
    world.advance_time(MINUTE)
    assert overdue(world)


def test_when_processing_resumes_a_run_with_enough_time_keeps_its_deadline():
    world = a_world(prs=1, testing_timeout_minutes=60)
    before = world.queue.runs
    world.apply(e.ProcessingResumed())
    assert world.queue.runs == before


def test_a_clock_that_was_wrong_for_a_moment_times_out_no_run():
    world = a_world(prs=1, testing_timeout_minutes=10)
    right = later(world.now, MINUTE)
    world.advance_time(HOUR)
    world.now = right
    world.perform(t.ReadChecks)
    assert (world.state(1), overdue(world)) == (PullRequestState.TESTING, False)
