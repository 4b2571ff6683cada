"""The times that every page and command shows: none contradicts another, and none is one that cannot be."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PullRequestNumber, SubmissionId
from mergeyard.domain.pull_requests import ALL_TARGETS, impacted_targets_from_names
from mergeyard.domain.queue import Obstacle, Queue
from mergeyard.domain.states import QueueState, Reason
from mergeyard.domain.timestamps import MINUTE, Instant, MergeEstimate, later
from mergeyard.engine import views
from mergeyard.engine.estimates import MAX_FORECAST_SUBMISSIONS
from mergeyard.engine.timetable import MIN_TEST_MS, NextMerge, NoEstimate, Outlook, Timetable
from tests.support.builders import QueueWorld, a_parallel_world, a_world

Forecast = dict[SubmissionId, MergeEstimate | None]


def with_typical_run(minutes: int, world: QueueWorld) -> QueueWorld:
    world.queue = replace(world.queue, durations=(minutes * MINUTE,) * 4)
    return world


def forecast_minutes(world: QueueWorld, **minutes: int | None) -> Forecast:
    """`pr1=3`: pull request 1 is expected to merge in 3 minutes."""
    forecast: Forecast = {}
    for name, value in minutes.items():
        number = int(name.removeprefix("pr"))
        forecast[world.submission_id(number)] = None if value is None else in_minutes(world, value)
    return forecast


def in_minutes(world: QueueWorld, minutes: int) -> MergeEstimate:
    at = later(world.now, minutes * MINUTE)
    return MergeEstimate(at, at)


def outlook(world: QueueWorld, number: int, forecast: Forecast | None = None) -> Outlook:
    submission = world.submission(number)
    position = views.position(world.queue, submission, world.now)
    return Timetable(world.queue, world.now, forecast or {}).look_up(submission, position)


def minutes_until(world: QueueWorld, number: int, forecast: Forecast | None = None) -> float:
    found = outlook(world, number, forecast)
    assert isinstance(found, MergeEstimate)
    return (found.median - world.now) / MINUTE


def next_merge(world: QueueWorld, forecast: Forecast | None = None) -> NextMerge:
    return Timetable(world.queue, world.now, forecast or {}).find_next_merge()


def with_a_late_run(world: QueueWorld, number: int, minutes: int) -> QueueWorld:
    late = replace(world.run_of(number), started_at=later(world.now, -minutes * MINUTE))
    world.queue = replace(world.queue, runs={**world.queue.runs, late.id: late})
    return world


# One time for a batch, and none before what is ahead.


def test_all_of_a_batch_merge_at_once():
    world = with_typical_run(10, a_world(prs=3, batch=3))
    forecast = forecast_minutes(world, pr1=21, pr2=17, pr3=None)
    assert [minutes_until(world, number, forecast) for number in (1, 2, 3)] == [21, 21, 21]


def test_in_a_single_queue_no_pr_merges_before_one_ahead():
    world = with_typical_run(10, a_world(prs=2, concurrency=2))
    world.submit(3)
    world.submit(4)
    world.submit(5)
    forecast = forecast_minutes(world, pr1=47, pr2=30, pr3=43, pr4=84)
    assert [minutes_until(world, number, forecast) for number in range(1, 6)] == [47, 47, 47, 84, 84]


def test_in_lanes_no_pr_merges_before_one_that_it_is_tested_on_top_of():
    world = with_typical_run(10, a_parallel_world("x", "y", "xz", concurrency=3))
    for number, names in ((4, "z"), (5, "y"), (6, "z")):
        world.submit(number, impacted_targets=impacted_targets_from_names(*names))
    forecast = forecast_minutes(world, pr1=40, pr2=5, pr3=20, pr4=30, pr5=12)
    times = [minutes_until(world, number, forecast) for number in range(1, 7)]
    assert times == [40, 5, 40, 40, 12, 40]


def test_a_pr_that_impacts_all_targets_merges_after_all_ahead():
    world = with_typical_run(10, a_parallel_world("x", "y", concurrency=2))
    world.submit(3, impacted_targets=ALL_TARGETS)
    world.submit(4, impacted_targets=impacted_targets_from_names("w"))
    forecast = forecast_minutes(world, pr1=40, pr2=5, pr3=20, pr4=30)
    assert [minutes_until(world, number, forecast) for number in (3, 4)] == [40, 40]


def test_without_a_forecast_a_waiting_pr_of_a_lane_merges_after_the_late_run_ahead():
    world = with_a_late_run(with_typical_run(10, a_parallel_world("x", "y", concurrency=2)), 1, 600)
    world.submit(3, impacted_targets=impacted_targets_from_names("x"))
    assert minutes_until(world, 3) == minutes_until(world, 1) == 60


def test_the_late_time_is_never_before_the_median():
    world = with_typical_run(10, a_world(prs=2))
    submission_id = world.submission_id(2)
    forecast = forecast_minutes(world, pr1=40) | {submission_id: in_minutes(world, 5)}
    assert outlook(world, 2, forecast) == in_minutes(world, 40)


# Times that cannot be.


def test_a_pr_whose_tests_have_not_passed_does_not_merge_now():
    world = with_typical_run(10, a_world(prs=1))
    world.advance_time(10 * MINUTE - 1)
    assert outlook(world, 1) == MergeEstimate(later(world.now, MINUTE), later(world.now, MINUTE))
    world = with_typical_run(10, a_world(prs=1))
    now = world.now
    world.queue = replace(world.queue, durations=(1,) * 4)
    assert outlook(world, 1) == MergeEstimate(later(now, MIN_TEST_MS), later(now, MIN_TEST_MS))


def test_a_pr_that_passed_merges_when_the_one_ahead_does():
    world = with_typical_run(10, a_world(prs=2))
    world.passes(2)
    assert outlook(world, 2) == outlook(world, 1) == in_minutes(world, 10)


def test_a_forecast_whose_time_is_over_gives_way_to_the_usual_duration():
    world = with_typical_run(10, a_world(prs=1))
    forecast = forecast_minutes(world, pr1=0)
    assert minutes_until(world, 1, forecast) == 10


def test_a_forecast_for_a_shorter_queue_is_not_used():
    world = with_typical_run(10, a_world(prs=1, concurrency=1))
    forecast = forecast_minutes(world, pr1=3)
    assert minutes_until(world, 1, forecast) == 3
    for number in range(2, MAX_FORECAST_SUBMISSIONS + 2):
        world.submit(number)
    assert minutes_until(world, 1, forecast) == 10


def test_a_pr_that_lands_merges_now():
    world = with_typical_run(10, a_world(prs=1))
    world.passes(1)
    world.apply(e.HostUnreachable())
    assert outlook(world, 1) == in_minutes(world, 0)


# Why there is no time.


def test_a_pr_that_is_not_ready_has_no_time():
    world = with_typical_run(10, a_world())
    world.open_pull_request(1)
    world.change(1, draft=True)
    world.submit(1)
    assert outlook(world, 1) is NoEstimate.NOT_QUEUED


def pause(queue: Queue) -> Queue:
    return replace(queue, requested_state=QueueState.PAUSED)


def switch_modes(queue: Queue) -> Queue:
    return replace(queue, config=replace(queue.config, mode=Mode.PARALLEL))


def delete_target_branch(queue: Queue) -> Queue:
    return replace(queue, target_branch=replace(queue.target_branch, tip=None))


def meet(reason: Reason, number: int | None = None) -> Callable[[Queue], Queue]:
    only = None if number is None else PullRequestNumber(number)
    return lambda queue: replace(queue, obstacle=Obstacle(reason=reason, since=Instant(0), number=only))


def require_nothing(queue: Queue) -> Queue:
    return replace(queue, config=replace(queue.config, required_statuses=()))


def forget_durations(queue: Queue) -> Queue:
    return replace(queue, durations=())


@pytest.mark.parametrize(
    ("change", "obstacle"),
    [
        (pause, NoEstimate.QUEUE_PAUSED),
        (switch_modes, NoEstimate.SWITCHING_MODES),
        (delete_target_branch, NoEstimate.TARGET_BRANCH_MISSING),
        (meet(Reason.PROVIDER_UNAVAILABLE), NoEstimate.HOST_UNREACHABLE),
        (meet(Reason.RATE_LIMITED), NoEstimate.HOST_LIMITS),
        (meet(Reason.PROVIDER_REFUSED), NoEstimate.HOST_REFUSES),
        (meet(Reason.SERVER_FAILURE), NoEstimate.SERVER_FAILING),
        (require_nothing, NoEstimate.CHECKS_UNKNOWN),
        (forget_durations, NoEstimate.NO_RUN_PASSED),
    ],
)
def test_nothing_is_expected_of_a_queue_that_cannot_merge(change: Callable[[Queue], Queue], obstacle: NoEstimate):
    world = with_typical_run(10, a_world(prs=2, concurrency=1))
    forecast = forecast_minutes(world, pr1=3, pr2=5)
    world.queue = change(world.queue)
    assert [outlook(world, number, forecast) for number in (1, 2)] == [obstacle, obstacle]
    assert next_merge(world, forecast) == NextMerge(obstacle)


def test_nothing_is_expected_of_the_only_pr_that_the_git_host_refuses():
    world = with_typical_run(10, a_parallel_world("x", "y", concurrency=2))
    world.submit(3, impacted_targets=impacted_targets_from_names("z"))
    world.queue = meet(Reason.PROVIDER_REFUSED, 1)(world.queue)
    assert outlook(world, 1) is NoEstimate.HOST_REFUSES
    assert minutes_until(world, 2) == 10
    world.queue = meet(Reason.PROVIDER_REFUSED, 3)(world.queue)
    assert outlook(world, 3) is NoEstimate.HOST_REFUSES


def test_nothing_is_expected_of_a_pr_that_cannot_be_tested_yet():
    world = with_typical_run(10, a_world(prs=1))
    world.open_pull_request(2)
    world.change(2, draft=True)
    world.submit(2)
    world.submit(3, stacked_on=2)
    assert world.submission(3).hold is not None
    assert outlook(world, 3) is NoEstimate.HELD


def test_nothing_is_expected_of_possible_culprits():
    world = with_typical_run(10, a_world(prs=4, batch=4))
    world.fails(1, 2, 3, 4)
    assert outlook(world, 4, forecast_minutes(world, pr4=53)) is NoEstimate.CAUSE_NOT_CONFIRMED
    failing = with_typical_run(10, a_world(prs=2, base_passed=False))
    failing.fails(1)
    forecast = forecast_minutes(failing, pr1=3, pr2=4)
    assert outlook(failing, 1, forecast) is NoEstimate.CAUSE_NOT_CONFIRMED
    assert next_merge(failing, forecast) == NextMerge(NoEstimate.CAUSE_NOT_CONFIRMED)


def test_nothing_is_expected_of_a_pr_that_probably_fails():
    world = with_typical_run(10, a_world(prs=2, concurrency=2))
    world.submit(3)
    world.submit(4)
    forecast = forecast_minutes(world, pr1=3, pr2=None, pr3=None, pr4=9)
    outlooks = [outlook(world, number, forecast) for number in (2, 3, 4)]
    assert outlooks == [NoEstimate.UNCERTAIN, NoEstimate.UNCERTAIN, in_minutes(world, 9)]


def test_in_a_single_queue_nothing_is_expected_behind_a_first_pr_that_is_uncertain():
    world = with_typical_run(10, a_world(prs=2, concurrency=2))
    world.submit(3)
    forecast = forecast_minutes(world, pr1=None, pr2=4, pr3=5)
    assert [outlook(world, number, forecast) for number in (2, 3)] == [NoEstimate.FIRST_UNKNOWN] * 2


def test_without_a_forecast_nothing_is_expected_behind_a_first_pr_that_fails():
    world = with_typical_run(10, a_world(prs=1, base_passed=False, concurrency=1))
    world.submit(2)
    world.fails(1)
    assert outlook(world, 2) is NoEstimate.FIRST_UNKNOWN


def test_in_lanes_a_failing_pr_leaves_others_their_time():
    world = with_typical_run(10, a_parallel_world("x", "y", base_passed=False))
    world.fails(1)
    assert outlook(world, 1) is NoEstimate.CAUSE_NOT_CONFIRMED
    assert minutes_until(world, 2) == 10


# The next merge.


def test_the_next_merge_is_the_first_batch_in_single_mode():
    world = with_typical_run(10, a_world(prs=2))
    assert next_merge(world, forecast_minutes(world, pr1=6, pr2=4)) == NextMerge(in_minutes(world, 6))


def test_the_next_merge_is_the_earliest_of_all_lanes():
    world = with_typical_run(10, a_parallel_world("x", "y", "y"))
    assert next_merge(world, forecast_minutes(world, pr1=6, pr2=4, pr3=2)) == NextMerge(in_minutes(world, 4))


def test_the_next_merge_of_a_late_run_has_the_time_of_its_pr_and_says_that_it_is_late():
    world = with_a_late_run(with_typical_run(10, a_world(prs=1)), 1, 20)
    assert next_merge(world) == NextMerge(outlook(world, 1), is_late=True)
    assert minutes_until(world, 1) == 2


def test_the_next_merge_is_not_late_while_one_lane_is_in_time():
    world = with_a_late_run(with_typical_run(10, a_parallel_world("x", "y")), 1, 20)
    assert not next_merge(world).is_late


def test_a_pr_that_is_not_tested_yet_can_be_the_next_to_merge():
    world = with_typical_run(10, a_world(prs=1, batch=2))
    assert not world.queue.active.batches
    assert next_merge(world) == NextMerge(outlook(world, 1)) == NextMerge(in_minutes(world, 10))


def test_nothing_merges_next_in_an_empty_queue():
    assert next_merge(with_typical_run(10, a_world())) == NextMerge(NoEstimate.NOTHING_QUEUED)
