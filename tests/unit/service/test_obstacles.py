"""What keeps the tasks of a queue from being done: who has to act, and who tells when it is gone."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.events import (
    Event,
    HostLimiting,
    HostReachable,
    HostRefusing,
    HostUnreachable,
    ServerFailing,
)
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo
from mergeyard.domain.queue import Obstacle, Queue, TargetBranch
from mergeyard.domain.states import Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import (
    AllowanceKept,
    HostAccessLost,
    HostRefused,
    HostUnavailable,
    RateLimited,
    UnexpectedHostResponse,
)
from mergeyard.ports.git import (
    GitError,
    MissingObject,
    OutputTooLargeError,
    RemoteRefused,
    RemoteUnavailable,
    RemoteUnsupported,
)
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.obstacles import Obstacles, TaskError
from mergeyard.service.queue_actor import QueueActor
from tests.support.clock import ManualClock
from tests.support.log_capture import capture_warnings

MAIN = QueueKey(Repo("git.local", "acme", "app"), "main")
NOW, LATER = Instant(1000), Instant(2000)
REASONS: dict[type[Event], Reason] = {
    HostRefusing: Reason.PROVIDER_REFUSED,
    HostLimiting: Reason.RATE_LIMITED,
    HostUnreachable: Reason.PROVIDER_UNAVAILABLE,
    ServerFailing: Reason.SERVER_FAILURE,
}


class ObstacleFixture:
    def __init__(self) -> None:
        self.obstacles = Obstacles()
        queue = Queue(id=QueueId("q1"), target_branch=TargetBranch(name="main"))
        self.actor = QueueActor(MAIN, queue, 1, SqliteStore(Path("unused")), ManualClock())

    def meet(self, source: str, error: TaskError) -> Event:
        event = self.obstacles.record(self.actor, source, error)
        only_waiting = isinstance(event, HostLimiting) and event.only_waiting
        obstacle = Obstacle(reason=REASONS[type(event)], since=Instant(0), only_waiting=only_waiting)
        self.actor.queue = replace(self.actor.queue, obstacle=obstacle)
        return event

    def clear(self, source: str) -> tuple[Event, ...]:
        return self.obstacles.clear(self.actor, source)


@pytest.mark.parametrize(
    ("error", "event", "logged"),
    [
        (HostRefused("no"), HostRefusing(detail="no"), "git_host_refused"),
        (HostAccessLost("no"), HostRefusing(detail="no"), "git_host_refused"),
        (RemoteRefused("no"), HostRefusing(detail="no"), "git_host_refused"),
        (RemoteUnsupported("no"), HostRefusing(detail="no"), "git_host_refused"),
        (HostUnavailable("no"), HostUnreachable(), "git_host_unavailable"),
        (RateLimited("no", LATER, NOW), HostLimiting(until=LATER), "git_host_limits_requests"),
        (AllowanceKept("no", LATER, NOW), HostLimiting(until=LATER, only_waiting=True), "git_host_limits_requests"),
        (UnexpectedHostResponse("no"), HostUnreachable(), "git_host_unavailable"),
        (RemoteUnavailable("no"), HostUnreachable(), "git_host_unavailable"),
        (GitError("no"), ServerFailing(), "server_failure"),
        (MissingObject("no"), ServerFailing(), "server_failure"),
        (OutputTooLargeError("no"), ServerFailing(), "server_failure"),
        (RequestRefused(Code.HOST_NOT_ALLOWED, "no"), ServerFailing(), "server_failure"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_says_who_has_to_act(error: TaskError, event: Event, logged: str):
    with capture_warnings() as entries:
        assert ObstacleFixture().meet("task", error) == event
    assert [(entry["event"], entry["queue"], entry["error"]) for entry in entries] == [(logged, str(MAIN), "no")]


def test_the_text_of_a_host_is_one_short_line_without_control_characters():
    with capture_warnings():
        event = ObstacleFixture().meet("task", HostRefused("no\x1b[31m\n\u202eaccess " + "x" * 10_000))
    assert isinstance(event, HostRefusing)
    assert event.detail.startswith("no [31m access xxx")
    assert len(event.detail) == 500


def test_only_the_source_that_was_refused_tells_that_the_refusal_is_gone():
    with capture_warnings():
        fixture = ObstacleFixture()
        fixture.meet("land", HostRefused("no"))
        assert fixture.clear("poll") == ()
        assert fixture.clear("land") == (HostReachable(),)


def test_any_source_that_is_answered_tells_that_the_host_responds_again():
    with capture_warnings():
        fixture = ObstacleFixture()
        fixture.meet("land", HostUnavailable("down"))
        assert fixture.clear("poll") == (HostReachable(),)


def test_a_merge_that_goes_on_does_not_end_the_limit_of_a_read_that_waits():
    with capture_warnings():
        fixture = ObstacleFixture()
        fixture.meet("read", AllowanceKept("kept", LATER, NOW))
        assert fixture.clear("land") == ()
        assert fixture.clear("read") == (HostReachable(),)
        fixture.meet("land", RateLimited("wait", LATER, NOW))
        assert fixture.clear("poll") == (HostReachable(),)


def test_what_is_still_refused_replaces_what_is_gone():
    with capture_warnings():
        fixture = ObstacleFixture()
        fixture.meet("land", HostRefused("no landing"))
        fixture.meet("checks", HostRefused("no checks"))
        assert fixture.clear("land") == (HostReachable(), HostRefusing(detail="no checks"))
        fixture.meet("poll", HostUnavailable("down"))
        assert fixture.clear("poll") == (HostReachable(), HostRefusing(detail="no checks"))


def test_a_source_that_is_gone_leaves_the_end_of_its_refusal_to_the_next_one():
    with capture_warnings():
        fixture = ObstacleFixture()
        fixture.meet("land", HostRefused("no"))
        fixture.obstacles.forget(fixture.actor, "land")
        assert fixture.clear("poll") == (HostReachable(),)


def test_after_a_restart_the_first_source_that_reaches_its_end_removes_a_stored_obstacle():
    fixture = ObstacleFixture()
    stored = Obstacle(reason=Reason.PROVIDER_REFUSED, since=Instant(0), number=PullRequestNumber(1))
    fixture.actor.queue = replace(fixture.actor.queue, obstacle=stored)
    assert fixture.clear("poll") == (HostReachable(),)
    fixture.actor.queue = replace(fixture.actor.queue, obstacle=None)
    assert fixture.clear("poll") == ()
