"""When a pull request will merge: read off the runs that were green, and off what stands ahead."""

from msgspec.structs import replace

from mergeyard.domain.durations import LongerThan
from mergeyard.domain.expected import Expected
from mergeyard.domain.instants import MINUTE, Instant, later
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import QueueState, RunStatus
from mergeyard.domain.targets import named
from mergeyard.engine import estimating, reading
from mergeyard.engine.estimating import MOST_REMEMBERED, REMEMBERED
from mergeyard.sim.world import START
from tests.support.builders import Yard, a_parallel_yard, a_plain_queue, a_run, a_submission, a_yard

TEN = 10 * MINUTE


def taking(minutes: int, queue: Queue) -> Queue:
    return replace(queue, durations=(minutes * MINUTE,) * 4)


def expected(queue: Queue, yard: Yard, number: int, now: Instant = START) -> int | None:
    """In minutes from the start, if every run takes as long as the usual one."""
    stay = yard.stay(number)
    position, outlook = reading.position(queue, stay, now), estimating.outlook(queue, now)
    assert outlook is not None
    assert position is not None
    found = outlook.of(stay, position)
    return None if found is None else (found.middle - START) // MINUTE


def green_after(minutes: int) -> Run:
    return replace(a_run(1, status=RunStatus.SUCCEEDED), started_at=START, decided_at=later(START, minutes * MINUTE))


def stopped_after(minutes: int) -> Run:
    return replace(green_after(minutes), status=RunStatus.CANCELLED)


def test_how_long_a_green_run_took_is_remembered_without_the_time_in_which_nobody_could_look():
    run = replace(green_after(10), outages=MINUTE)
    queue = estimating.record_duration(a_plain_queue(), run)
    assert queue.durations == (9 * MINUTE,)


def test_only_the_last_runs_are_remembered():
    queue = replace(a_plain_queue(), durations=tuple(range(REMEMBERED)))
    assert estimating.record_duration(queue, green_after(10)).durations == (*range(1, REMEMBERED), TEN)


def test_of_a_run_that_was_stopped_it_is_remembered_that_it_would_have_taken_longer():
    queue = estimating.record_duration(taking(10, a_plain_queue()), stopped_after(25))
    assert queue.durations == (*(TEN,) * 4, LongerThan(25 * MINUTE))
    assert estimating.usual(queue) == TEN


def test_before_any_run_was_green_one_that_was_stopped_says_nothing():
    queue = a_plain_queue()
    assert estimating.record_duration(queue, stopped_after(25)) is queue


def test_those_that_were_stopped_before_the_oldest_green_one_are_forgotten_with_it():
    queue = replace(a_plain_queue(), durations=(1, LongerThan(2), *range(3, REMEMBERED + 2)))
    assert estimating.record_duration(queue, green_after(10)).durations == (*range(3, REMEMBERED + 2), TEN)


def test_however_many_are_stopped_the_green_ones_are_remembered():
    queue = replace(a_plain_queue(), durations=(1, LongerThan(2), 3))
    for _ in range(MOST_REMEMBERED):
        queue = estimating.record_duration(queue, stopped_after(25))
    assert queue.durations == (1, 3, *(LongerThan(25 * MINUTE),) * MOST_REMEMBERED)


def test_a_run_that_never_started_says_nothing():
    queue = a_plain_queue()
    assert estimating.record_duration(queue, replace(a_run(1), started_at=None)) is queue


def test_a_green_run_is_remembered_by_the_queue_itself():
    yard = a_yard(prs=1)
    yard.pass_time(TEN)
    yard.passes(1)
    assert yard.queue.durations == (TEN,)


def test_a_red_run_is_not():
    yard = a_yard(prs=1)
    yard.fails(1)
    assert yard.queue.durations == ()


def test_nothing_is_expected_before_any_run_was_green():
    queue = a_plain_queue(a_submission(1))
    assert estimating.outlook(queue, START) is None
    assert estimating.usual(queue) is None


def test_nothing_is_expected_of_a_paused_queue():
    queue = replace(taking(10, a_plain_queue()), ordered_state=QueueState.PAUSED)
    assert estimating.outlook(queue, START) is None


def test_the_usual_run_is_the_one_in_the_middle():
    assert estimating.usual(replace(a_plain_queue(), durations=(9, 1, 5, 2, 7))) == 5


def test_a_run_under_way_ends_when_runs_usually_do():
    yard = a_yard(prs=1)
    assert expected(taking(10, yard.queue), yard, 1, later(START, 4 * MINUTE)) == 10


def test_a_run_that_takes_longer_is_expected_to_go_on_a_while():
    yard = a_yard(prs=1)
    assert expected(taking(10, yard.queue), yard, 1, later(START, 50 * MINUTE)) == 55


def test_nobody_merges_before_those_ahead():
    yard = a_yard(prs=2)
    yard.passes(2)
    assert expected(taking(10, yard.queue), yard, 2) == 10


def test_in_another_lane_those_ahead_do_not_count():
    yard = a_parallel_yard(concurrency=2)
    yard.submit(1, targets=named("x"))
    yard.submit(2, targets=named("y"))
    yard.build()
    begun_later = replace(yard.run_of(1), started_at=later(START, TEN))
    queue = taking(30, replace(yard.queue, runs={**yard.queue.runs, begun_later.id: begun_later}))
    assert [expected(queue, yard, number, later(START, TEN)) for number in (1, 2)] == [40, 30]


def test_in_the_same_lane_they_do():
    yard = a_parallel_yard(concurrency=2)
    yard.submit(1, targets=named("x"))
    yard.submit(2, targets=named("x"))
    yard.build()
    yard.passes(2)
    assert expected(taking(10, yard.queue), yard, 2) == 10


def test_those_who_wait_take_the_slots_as_they_get_free_round_by_round():
    yard = a_yard(prs=1, concurrency=1)
    yard.submit(2)
    yard.submit(3)
    assert [expected(taking(10, yard.queue), yard, number) for number in (1, 2, 3)] == [10, 20, 30]


def test_those_who_share_a_batch_share_a_run():
    yard = a_yard(prs=2, batch=2, concurrency=1)
    for number in (3, 4, 5):
        yard.submit(number)
    assert [expected(taking(10, yard.queue), yard, number) for number in (2, 3, 4, 5)] == [10, 20, 20, 30]


def test_whoever_is_searched_through_waits_for_the_search_and_one_run_more():
    yard = a_yard(prs=4, batch=4)
    yard.fails(1, 2, 3, 4)
    assert yard.queue.bisections
    assert expected(taking(10, yard.queue), yard, 4) == 40


def test_one_that_stays_out_of_the_line_expects_nothing():
    yard = a_yard(prs=1)
    yard.open(2)
    yard.change(2, draft=True)
    yard.submit(2)
    yard.submit(3, upon=2)
    assert yard.stay(3).hold is not None
    assert expected(taking(10, yard.queue), yard, 3) is None


def test_the_late_guess_counts_with_slow_runs():
    yard = a_yard(prs=1)
    queue = replace(yard.queue, durations=(*([TEN] * 8), 3 * TEN, 3 * TEN))
    outlook = estimating.outlook(queue, START)
    assert outlook is not None
    assert outlook.of(yard.stay(1), 1) == Expected(later(START, TEN), later(START, 3 * TEN))
