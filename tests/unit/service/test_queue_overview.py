"""What the list of queues says about each queue: its problems, and how many pull requests it has."""

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.queue import Obstacle
from mergeyard.domain.states import QueueState, Reason
from mergeyard.domain.timestamps import HOUR, MINUTE, Instant, later
from mergeyard.service.queue_overview import PullRequestCounts, count_pull_requests, list_problems
from tests.support.builders import QueueWorld, a_world

KEY = QueueKey(Repo("git.local", "acme", "app"), "main")


def problems_of(world: QueueWorld, last_merge_at: Instant | None = None) -> list[str]:
    return list(list_problems(KEY, world.queue, last_merge_at, world.now))


def test_a_running_queue_has_no_problem():
    assert problems_of(a_world(prs=2)) == []


def test_an_unreachable_host_is_a_problem():
    world = a_world()
    world.queue = replace(world.queue, obstacle=Obstacle(reason=Reason.PROVIDER_UNAVAILABLE, since=world.now))
    assert problems_of(world) == ["The queue cannot reach the repository at git.local"]


def test_a_refusal_and_a_failure_of_our_server_are_other_problems_than_an_outage():
    world = a_world()
    world.apply(e.HostRefusing(detail="403"))
    assert problems_of(world) == ["git.local refuses what the queue asks of it"]
    world.apply(e.HostLimiting(until=world.now))
    assert problems_of(world) == ["git.local limits how many requests it accepts"]
    world.apply(e.ServerFailing())
    assert problems_of(world) == ["The server of the queue fails: see its log and disk"]


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


def test_nothing_else_matters_without_a_git_host():
    world = a_world(prs=1)
    world.now = later(world.now, 2 * HOUR)
    assert list(list_problems(KEY, world.queue, None, world.now, has_host=False)) == ["git.local is not configured"]


def test_a_pull_request_that_waits_for_a_paused_queue_counts_as_queued():
    world = a_world(prs=1)
    world.open_pull_request(3)
    world.change(3, draft=True)
    world.apply(e.StateRequested(state=QueueState.PAUSED))
    world.submit(2, 3)
    assert count_pull_requests(world.queue) == PullRequestCounts(queued=2, testing=1, not_ready=1)
