"""The queue's own time: how long it has been running, what is overdue, and when to be asked again."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.instants import HOUR, MINUTE, later
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import Mergeability, PrState, QueueState, RunStatus
from mergeyard.engine import clock
from mergeyard.engine.work import work
from mergeyard.sim.world import START
from tests.support.builders import Yard, a_run, a_yard

PAUSED, RUNNING, DRAINING = QueueState.PAUSED, QueueState.RUNNING, QueueState.DRAINING


def one_that_is_not_ready(hours: int = 24) -> Yard:
    yard = a_yard(not_ready_timeout_hours=hours)
    yard.open(1)
    yard.change(1, mergeability=Mergeability.UNKNOWN)
    yard.submit(1)
    return yard


def overdue(yard: Yard) -> bool:
    return any(isinstance(task, t.LookAtChecks) for task in work(yard.queue))


# Running time.


def test_the_clock_runs_while_the_queue_is_running():
    yard = a_yard()
    yard.tell()
    yard.pass_time(HOUR)
    assert clock.running_time(yard.queue, yard.now) == HOUR


@pytest.mark.parametrize("state", [PAUSED, DRAINING])
def test_the_clock_stops_while_the_queue_does_not_run(state: QueueState):
    yard = a_yard()
    yard.tell()
    yard.pass_time(HOUR)
    yard.tell(e.StateRequested(state=state))
    yard.pass_time(HOUR)
    assert clock.running_time(yard.queue, yard.now) == HOUR


def test_the_clock_goes_on_when_the_queue_runs_again():
    yard = a_yard()
    yard.tell()
    yard.tell(e.StateRequested(state=PAUSED))
    yard.pass_time(HOUR)
    yard.tell(e.StateRequested(state=RUNNING))
    yard.pass_time(2 * HOUR)
    assert clock.running_time(yard.queue, yard.now) == 2 * HOUR


# Timeouts of runs.


def test_a_run_is_due_when_its_time_is_over():
    assert clock.deadline(a_run(1)) == START + 300 * MINUTE


def test_outages_put_the_deadline_off():
    assert clock.deadline(replace(a_run(1), outages=MINUTE)) == START + 301 * MINUTE


@pytest.mark.parametrize("status", [RunStatus.PREPARING, RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED])
def test_a_run_that_is_not_in_progress_has_no_deadline(status: RunStatus):
    assert clock.deadline(a_run(1, status=status)) is None


def test_a_run_is_not_overdue_before_its_time():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    yard.pass_time(10 * MINUTE - 1)
    assert not overdue(yard)


def test_a_run_past_its_time_is_looked_at_once_more():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    yard.pass_time(10 * MINUTE)
    assert (overdue(yard), yard.state(1)) == (True, PrState.TESTING)


def test_a_fresh_look_ends_an_overdue_run():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    yard.pass_time(10 * MINUTE)
    yard.perform(t.LookAtChecks)
    assert yard.reason(1) is Reason.TEST_RUN_TIMEOUT


def test_a_run_keeps_the_timeout_that_it_started_with():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    yard.tell(e.SettingsSaved(config=replace(yard.queue.config, testing_timeout_minutes=60)))
    yard.pass_time(10 * MINUTE)
    assert overdue(yard)


def test_while_the_host_is_silent_no_run_becomes_overdue():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    yard.tell(e.HostLost())
    yard.pass_time(10 * MINUTE)
    assert not overdue(yard)


def test_the_time_of_an_outage_does_not_count():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    yard.pass_time(4 * MINUTE)
    yard.tell(e.HostLost())
    yard.pass_time(7 * MINUTE)
    yard.tell(e.HostFound())
    assert not overdue(yard)


def test_after_an_outage_the_rest_of_the_time_counts():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    yard.pass_time(4 * MINUTE)
    yard.tell(e.HostLost())
    yard.pass_time(7 * MINUTE)
    yard.tell(e.HostFound())
    yard.pass_time(6 * MINUTE)
    assert overdue(yard)


def test_a_run_that_started_during_an_outage_gets_back_only_its_own_part():
    yard = a_yard(testing_timeout_minutes=10)
    yard.tell(e.HostLost())
    yard.pass_time(7 * MINUTE)
    yard.submit(1)
    yard.build()
    yard.pass_time(MINUTE)
    yard.tell(e.HostFound())
    assert yard.run_of(1).outages == MINUTE


def test_a_run_that_is_not_built_yet_loses_nothing_in_an_outage():
    yard = a_yard()
    yard.submit(1)
    yard.tell(e.HostLost())
    yard.pass_time(MINUTE)
    yard.tell(e.HostFound())
    assert yard.run_of(1).outages == 0


def test_finding_a_host_that_was_not_lost_changes_nothing():
    yard = a_yard(prs=1)
    before = yard.queue
    yard.tell(e.HostFound())
    assert yard.queue is before


# When to be asked again.


def test_a_queue_at_rest_need_not_be_asked_again():
    assert a_yard().tell().wake_at is None


def test_a_queue_is_asked_again_when_a_run_is_due():
    yard = a_yard(prs=2, testing_timeout_minutes=10)
    assert yard.tell().wake_at == yard.now + 10 * MINUTE


def test_a_queue_is_not_asked_again_for_a_run_that_is_overdue_already():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    assert yard.pass_time(10 * MINUTE).wake_at is None


def test_a_queue_is_not_asked_again_for_a_run_while_the_host_is_silent():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    assert yard.tell(e.HostLost()).wake_at is None


def test_a_queue_is_asked_again_when_a_batch_has_waited_long_enough():
    yard = a_yard(batch=2, batching_max_wait_time_minutes=5)
    assert yard.submit(1).wake_at == yard.now + 5 * MINUTE


def test_a_queue_is_not_asked_again_for_a_batch_while_all_slots_are_taken():
    yard = a_yard(prs=2, batch=2, concurrency=1)
    yard.submit(3)
    assert yard.tell().wake_at == yard.now + 300 * MINUTE


def test_a_queue_is_asked_again_when_one_has_not_been_ready_for_too_long():
    yard = one_that_is_not_ready(hours=2)
    yard.pass_time(HOUR)
    assert yard.tell().wake_at == yard.now + HOUR


def test_a_queue_is_not_asked_again_for_one_that_may_stay_forever():
    assert one_that_is_not_ready(hours=0).tell().wake_at is None


def test_a_queue_is_not_asked_again_for_one_that_is_not_ready_while_it_is_paused():
    yard = one_that_is_not_ready()
    assert yard.tell(e.StateRequested(state=PAUSED)).wake_at is None


# Away.


def test_whoever_begins_to_watch_gives_a_run_whose_time_ran_out_some_more():
    yard = a_yard(prs=1, testing_timeout_minutes=60)
    yard.now = later(yard.now, 5 * HOUR)
    yard.tell(e.WatchBegan())
    yard.pass_time(clock.PATIENCE - 1)
    assert not overdue(yard)
    yard.pass_time(1)
    assert overdue(yard)


def test_a_run_that_was_looked_at_as_overdue_is_so_no_more_for_whoever_begins_to_watch():
    yard = a_yard(prs=1, testing_timeout_minutes=60)
    yard.pass_time(HOUR)
    yard.tell(e.WatchBegan())
    assert not overdue(yard)


def test_a_short_timeout_is_not_made_longer_than_it_is():
    yard = a_yard(prs=1, testing_timeout_minutes=1)
    yard.now = later(yard.now, HOUR)
    yard.tell(e.WatchBegan())
    yard.pass_time(MINUTE)
    assert overdue(yard)


def test_whoever_begins_to_watch_leaves_a_run_with_time_enough_as_it_is():
    yard = a_yard(prs=1, testing_timeout_minutes=60)
    before = yard.queue.runs
    yard.tell(e.WatchBegan())
    assert yard.queue.runs == before


def test_a_clock_that_was_wrong_for_a_moment_ends_no_run():
    yard = a_yard(prs=1, testing_timeout_minutes=10)
    right = later(yard.now, MINUTE)
    yard.pass_time(HOUR)
    yard.now = right
    yard.perform(t.LookAtChecks)
    assert (yard.state(1), overdue(yard)) == (PrState.TESTING, False)
