"""When a pull request will merge: estimated from the durations of passed runs and from what is ahead."""

from msgspec.structs import replace

from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import QueueState, RunStatus
from mergeyard.domain.timestamps import MINUTE, Instant, LongerThan, MergeEstimate, later
from mergeyard.engine import estimates, views
from mergeyard.engine.estimates import MAX_DURATIONS, MAX_PASSED_DURATIONS
from tests.support.builders import QueueWorld, a_parallel_world, a_plain_queue, a_run, a_submission, a_world
from tests.support.world.world import START_TIME

TEN = 10 * MINUTE


def with_durations(minutes: int, queue: Queue) -> Queue:
    return replace(queue, durations=(minutes * MINUTE,) * 4)


def expected(queue: Queue, world: QueueWorld, number: int, now: Instant = START_TIME) -> int:
    """In minutes from the start, if every run takes as long as the usual one."""
    submission = world.submission(number)
    position, model = views.position(queue, submission, now), estimates.build_eta_model(queue, now)
    assert model is not None
    assert position is not None
    return (model.estimate(submission, position).median - START_TIME) // MINUTE


def passed_after(minutes: int) -> Run:
    return replace(
        a_run(1, status=RunStatus.SUCCEEDED), started_at=START_TIME, decided_at=later(START_TIME, minutes * MINUTE)
    )


def stopped_after(minutes: int) -> Run:
    return replace(passed_after(minutes), status=RunStatus.CANCELLED)


def test_the_duration_of_a_passed_run_is_recorded_without_host_outages():
    run = replace(passed_after(10), outage_ms=MINUTE)
    queue = estimates.record_run_duration(a_plain_queue(), run)
    assert queue.durations == (9 * MINUTE,)


def test_only_the_durations_of_the_last_runs_are_recorded():
    queue = replace(a_plain_queue(), durations=tuple(range(MAX_PASSED_DURATIONS)))
    assert estimates.record_run_duration(queue, passed_after(10)).durations == (*range(1, MAX_PASSED_DURATIONS), TEN)


def test_a_stopped_run_is_recorded_as_longer_than_its_time_so_far():
    queue = estimates.record_run_duration(with_durations(10, a_plain_queue()), stopped_after(25))
    assert queue.durations == (*(TEN,) * 4, LongerThan(25 * MINUTE))
    assert estimates.median_run_duration_ms(queue) == TEN


def test_before_any_run_passed_a_stopped_run_is_not_recorded():
    queue = a_plain_queue()
    assert estimates.record_run_duration(queue, stopped_after(25)) is queue


def test_stopped_runs_before_the_oldest_passed_run_are_dropped_with_it():
    queue = replace(a_plain_queue(), durations=(1, LongerThan(2), *range(3, MAX_PASSED_DURATIONS + 2)))
    assert estimates.record_run_duration(queue, passed_after(10)).durations == (
        *range(3, MAX_PASSED_DURATIONS + 2),
        TEN,
    )


def test_passed_runs_are_recorded_however_many_are_stopped():
    queue = replace(a_plain_queue(), durations=(1, LongerThan(2), 3))
    for _ in range(MAX_DURATIONS):
        queue = estimates.record_run_duration(queue, stopped_after(25))
    assert queue.durations == (1, 3, *(LongerThan(25 * MINUTE),) * MAX_DURATIONS)


def test_a_run_that_never_started_is_not_recorded():
    queue = a_plain_queue()
    assert estimates.record_run_duration(queue, replace(a_run(1), started_at=None)) is queue


def test_the_queue_records_the_duration_of_a_passed_run():
    world = a_world(prs=1)
    world.advance_time(TEN)
    world.passes(1)
    assert world.queue.durations == (TEN,)


def test_the_queue_does_not_record_the_duration_of_a_failed_run():
    world = a_world(prs=1)
    world.fails(1)
    assert world.queue.durations == ()


def test_nothing_is_expected_before_any_run_passed():
    queue = a_plain_queue(a_submission(1))
    assert estimates.build_eta_model(queue, START_TIME) is None
    assert estimates.median_run_duration_ms(queue) is None


def test_nothing_is_expected_of_a_paused_queue():
    queue = replace(with_durations(10, a_plain_queue()), requested_state=QueueState.PAUSED)
    assert estimates.build_eta_model(queue, START_TIME) is None


def test_the_usual_duration_is_the_median():
    assert estimates.median_run_duration_ms(replace(a_plain_queue(), durations=(9, 1, 5, 2, 7))) == 5


def test_an_active_run_is_expected_to_take_the_usual_time():
    world = a_world(prs=1)
    assert expected(with_durations(10, world.queue), world, 1, later(START_TIME, 4 * MINUTE)) == 10


def test_a_run_that_takes_longer_than_usual_is_expected_to_go_on():
    world = a_world(prs=1)
    assert expected(with_durations(10, world.queue), world, 1, later(START_TIME, 50 * MINUTE)) == 55


def test_no_pr_merges_before_the_prs_ahead():
    world = a_world(prs=2)
    world.passes(2)
    assert expected(with_durations(10, world.queue), world, 2) == 10


def test_prs_in_another_lane_do_not_count():
    world = a_parallel_world(concurrency=2)
    world.submit(1, impacted_targets=impacted_targets_from_names("x"))
    world.submit(2, impacted_targets=impacted_targets_from_names("y"))
    world.build()
    begun_later = replace(world.run_of(1), started_at=later(START_TIME, TEN))
    queue = with_durations(30, replace(world.queue, runs={**world.queue.runs, begun_later.id: begun_later}))
    assert [expected(queue, world, number, later(START_TIME, TEN)) for number in (1, 2)] == [40, 30]


def test_prs_in_the_same_lane_count():
    world = a_parallel_world(concurrency=2)
    world.submit(1, impacted_targets=impacted_targets_from_names("x"))
    world.submit(2, impacted_targets=impacted_targets_from_names("x"))
    world.build()
    world.passes(2)
    assert expected(with_durations(10, world.queue), world, 2) == 10


def test_waiting_prs_take_the_slots_as_they_become_free():
    world = a_world(prs=1, concurrency=1)
    world.submit(2)
    world.submit(3)
    assert [expected(with_durations(10, world.queue), world, number) for number in (1, 2, 3)] == [10, 20, 30]


def test_prs_of_one_batch_share_a_run():
    world = a_world(prs=2, batch=2, concurrency=1)
    for number in (3, 4, 5):
        world.submit(number)
    assert [expected(with_durations(10, world.queue), world, number) for number in (2, 3, 4, 5)] == [10, 20, 20, 30]


def test_a_pr_in_a_bisection_waits_for_the_bisection_and_one_more_run():
    world = a_world(prs=4, batch=4)
    world.fails(1, 2, 3, 4)
    assert world.queue.bisections
    assert expected(with_durations(10, world.queue), world, 4) == 40


def test_no_waiting_pr_is_expected_before_one_ahead_of_it():
    world = a_world(prs=2, concurrency=2)
    for number in (3, 4, 5):
        world.submit(number)
    late = replace(world.run_of(2), started_at=later(START_TIME, -300 * MINUTE))
    queue = with_durations(10, replace(world.queue, runs={**world.queue.runs, late.id: late}))
    assert [expected(queue, world, number) for number in (3, 4, 5)] == [30, 40, 40]


def test_the_late_estimate_assumes_slow_runs():
    world = a_world(prs=1)
    queue = replace(world.queue, durations=(*([TEN] * 8), 3 * TEN, 3 * TEN))
    model = estimates.build_eta_model(queue, START_TIME)
    assert model is not None
    assert model.estimate(world.submission(1), 1) == MergeEstimate(later(START_TIME, TEN), later(START_TIME, 3 * TEN))
