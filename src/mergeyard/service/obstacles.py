"""What keeps the tasks of a queue from being done: its Git host does not respond or refuses, or this server fails.

The queue stores one obstacle, for its pages and its deadlines. Here is what each source met last, a task or the poller:
a refusal concerns some calls and not others, so that only the source that met it can tell that it is gone.
"""

from collections.abc import Hashable
from weakref import WeakKeyDictionary

import structlog

from mergeyard.domain.events import (
    Event,
    HostLimiting,
    HostReachable,
    HostRefusing,
    HostUnreachable,
    ServerFailing,
)
from mergeyard.domain.ids import PullRequestNumber
from mergeyard.domain.states import Reason
from mergeyard.ports.forge import AllowanceKept, HostAccessLost, HostError, HostRefused, RateLimited
from mergeyard.ports.git import GitError, RemoteRefused, RemoteUnavailable, RemoteUnsupported
from mergeyard.service.commit_messages import sanitize_line
from mergeyard.service.errors import RequestRefused
from mergeyard.service.queue_actor import QueueActor

log = structlog.get_logger()

MAX_DETAIL_CHARS = 500
"""The text of a Git host is shown to everyone who sees the queue."""

TaskError = HostError | GitError | RequestRefused
TASK_ERRORS = (HostError, GitError, RequestRefused)
"""What can keep a task from being done without a bug of ours."""
REFUSALS = (HostRefused, HostAccessLost, RemoteRefused, RemoteUnsupported)
ENDED_BY_ANY_ANSWER = (Reason.PROVIDER_UNAVAILABLE, Reason.RATE_LIMITED)
ANSWERLESS = (HostError, RemoteUnavailable)


def to_event(error: TaskError, number: PullRequestNumber | None = None) -> Event:
    """`number`: the pull request that was read, if it was a single one."""
    if isinstance(error, REFUSALS):
        return HostRefusing(detail=sanitize_line(str(error))[:MAX_DETAIL_CHARS], number=number)
    if isinstance(error, RateLimited):
        return HostLimiting(until=error.until, only_waiting=isinstance(error, AllowanceKept))
    if isinstance(error, ANSWERLESS):
        return HostUnreachable()
    return ServerFailing()


def _ends_with_any_answer(event: Event) -> bool:
    """What is kept for merges stays so for reads of what waits, also while merges go on."""
    if isinstance(event, HostLimiting):
        return not event.only_waiting
    return isinstance(event, HostUnreachable)


class Obstacles:
    def __init__(self) -> None:
        self._met: WeakKeyDictionary[QueueActor, dict[Hashable, Event]] = WeakKeyDictionary()

    def record(
        self,
        queue_actor: QueueActor,
        source: Hashable,
        error: TaskError,
        number: PullRequestNumber | None = None,
        **fields: str,
    ) -> Event:
        """Logs what a source met, and returns the event that tells the queue."""
        event = to_event(error, number)
        queue = str(queue_actor.key)
        match event:
            case HostRefusing():
                log.warning("git_host_refused", queue=queue, error=str(error), **fields)
            case HostLimiting():
                log.warning("git_host_limits_requests", queue=queue, error=str(error), **fields)
            case ServerFailing():
                log.warning("server_failure", queue=queue, error=str(error), **fields)
            case _:
                log.warning("git_host_unavailable", queue=queue, error=str(error), **fields)
        self._met.setdefault(queue_actor, {})[source] = event
        return event

    def clear(self, queue_actor: QueueActor, source: Hashable) -> tuple[Event, ...]:
        """The source reached its end: the events that tell the queue what is still in the way of others, if that
        changed. A Git host that answers one source is reachable for all."""
        met = self._met.get(queue_actor, {})
        was_met = met.pop(source, None) is not None
        for other in [other for other, event in met.items() if _ends_with_any_answer(event)]:
            del met[other]
        obstacle = queue_actor.queue.obstacle
        if obstacle is None:
            return ()
        if not met:
            return (HostReachable(),)
        if was_met or (obstacle.reason in ENDED_BY_ANY_ANSWER and queue_actor.queue.is_obstructed):
            return (HostReachable(), *met.values())
        return ()

    def forget(self, queue_actor: QueueActor, source: Hashable) -> None:
        """The source does nothing more: the next one that reaches its end tells the queue."""
        self._met.get(queue_actor, {}).pop(source, None)
