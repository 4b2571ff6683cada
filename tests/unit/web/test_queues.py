"""What the pages of queues conclude from the state of a queue: its problems, and when the next batch merges."""

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.states import QueueState
from mergeyard.domain.timestamps import HOUR, MINUTE, Instant, MergeEstimate, later
from mergeyard.ports.external import Forecast
from mergeyard.service.views import SubmissionViewBuilder
from mergeyard.web.queues import NextMerge, estimate_next_merge, list_problems
from tests.support.builders import QueueWorld, a_parallel_world, a_world

KEY = QueueKey(Repo("git.local", "acme", "app"), "main")


def problems_of(world: QueueWorld, last_merge_at: Instant | None = None) -> list[str]:
    return list(list_problems(KEY, world.queue, last_merge_at, world.now))


def next_merge_of(world: QueueWorld, forecast: Forecast) -> NextMerge:
    views = SubmissionViewBuilder(world.queue, world.now, forecast)
    return estimate_next_merge(world.queue, views, world.now)


def forecast_minutes(world: QueueWorld, **minutes: int | None) -> Forecast:
    """`pr1=3`: pull request 1 is expected to merge in 3 minutes."""
    return {
        world.submission_id(int(name.removeprefix("pr"))): None
        if value is None
        else MergeEstimate(later(world.now, value * MINUTE), later(world.now, value * MINUTE))
        for name, value in minutes.items()
    }


def with_typical_run(world: QueueWorld, minutes: int) -> QueueWorld:
    world.queue = replace(world.queue, durations=(minutes * MINUTE,))
    return world


def test_a_running_queue_has_no_problem():
    assert problems_of(a_world(prs=2)) == []


def test_an_unreachable_host_is_a_problem():
    world = a_world()
    world.queue = replace(world.queue, host_unreachable_since=world.now)
    assert problems_of(world) == ["git.local is not responding"]


def test_an_invalid_configuration_is_a_problem_of_its_own():
    world = a_world()
    required = replace(world.queue.target_branch.required_statuses, config_error="line 3")
    world.queue = replace(
        world.queue,
        config=replace(world.queue.config, required_statuses=None),
        target_branch=replace(world.queue.target_branch, required_statuses=required),
    )
    assert problems_of(world) == ["Invalid .mergeyard.toml"]


def test_a_missing_branch_is_not_reported_as_missing_checks():
    world = a_world()
    world.queue = replace(
        world.queue,
        config=replace(world.queue.config, required_statuses=()),
        target_branch=replace(world.queue.target_branch, tip=None),
    )
    assert problems_of(world) == ["Branch main not found"]


def test_waiting_for_more_than_an_hour_is_a_problem_unless_something_merged_meanwhile():
    world = a_world(prs=1)
    world.now = later(world.now, 2 * HOUR)
    assert problems_of(world) == ["Nothing merged for 2 h"]
    assert problems_of(world, later(world.now, -90 * MINUTE)) == ["Nothing merged for 1 h 30 min"]
    assert problems_of(world, later(world.now, -30 * MINUTE)) == []


def test_an_empty_queue_does_not_have_to_merge():
    world = a_world()
    world.now = later(world.now, 2 * HOUR)
    assert problems_of(world) == []


def test_the_next_merge_is_the_first_batch_in_single_mode():
    world = with_typical_run(a_world(prs=2), 10)
    assert next_merge_of(world, forecast_minutes(world, pr1=6, pr2=4)).at == later(world.now, 6 * MINUTE)


def test_the_next_merge_is_the_earliest_of_all_lanes():
    world = with_typical_run(a_parallel_world("x", "y", "y"), 10)
    forecast = forecast_minutes(world, pr1=6, pr2=4, pr3=2)
    assert next_merge_of(world, forecast).at == later(world.now, 4 * MINUTE)


def test_a_next_merge_that_is_not_known_has_a_reason():
    world = a_world(prs=1)
    assert next_merge_of(world, {}) == NextMerge(None, "not known until a run has passed")
    with_typical_run(world, 10)
    assert next_merge_of(world, forecast_minutes(world, pr1=None)) == NextMerge(None, "not known yet")
    world.now = later(world.now, 11 * MINUTE)
    assert next_merge_of(world, forecast_minutes(world, pr1=0)) == NextMerge(None, "running longer than usual")
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    assert next_merge_of(world, {}) == NextMerge(None, "queue paused")


def test_the_next_merge_behind_a_failing_batch_is_not_known():
    world = with_typical_run(a_world(prs=2, base_passed=False), 10)
    world.fails(1)
    forecast = forecast_minutes(world, pr1=3, pr2=4)
    assert next_merge_of(world, forecast) == NextMerge(None, "failing, cause not confirmed")


def test_a_batch_that_lands_merges_now():
    world = with_typical_run(a_world(prs=1), 10)
    world.passes(1)
    assert next_merge_of(world, {}) == NextMerge(world.now)
