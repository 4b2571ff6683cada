"""What an action on a pull request would cost: the engine decides on it, and nothing of the decision is stored."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain import events as e
from mergeyard.domain.config import DEFAULT_PRIORITY, Mode
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Sha
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import ImpactedTargets, PullRequest
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import Mergeability, PullRequestState
from mergeyard.domain.timestamps import Instant
from mergeyard.engine.decide import decide
from mergeyard.service.registry import QueueRegistry


class Action(StrEnum):
    SUBMIT = "submit"
    RESTART = "restart"
    CANCEL = "cancel"
    PRIORITY = "priority"


class StoppedRun(Struct, frozen=True):
    run: Run
    elapsed_ms: int
    numbers: tuple[PullRequestNumber, ...]
    """The pull requests that it tests."""


class ActionPreview(Struct, frozen=True):
    stopped: tuple[StoppedRun, ...] = ()
    """The running test runs that the action stops."""
    delayed: tuple[PullRequestNumber, ...] = ()
    """The other pull requests that are tested again."""
    is_upper_bound: bool = False
    """The impacted targets are not known yet: the action can stop fewer runs."""

    @property
    def elapsed_ms(self) -> int:
        """The CI time that is lost."""
        return sum(each.elapsed_ms for each in self.stopped)


class Previews:
    def __init__(self, registry: QueueRegistry) -> None:
        self._registry = registry

    async def preview(
        self, key: QueueKey, number: PullRequestNumber, action: Action, priority: int | None = None
    ) -> ActionPreview:
        queue_actor = await self._registry.get(key)
        return preview_action(queue_actor.queue, number, action, priority, self._registry.clock.now())


def preview_action(
    queue: Queue, number: PullRequestNumber, action: Action, priority: int | None, now: Instant
) -> ActionPreview:
    decision = decide(queue, [_build_event(queue, number, action, priority)], now)
    active_after = {run.id for run in decision.queue.runs.values() if run.is_active}
    stopped = tuple(
        StoppedRun(run, now - run.started_at, tuple(member.number for member in run.tested_members))
        for run in queue.runs_in_progress
        if run.id not in active_after and run.started_at is not None
    )
    delayed = (
        entry.number
        for entry in decision.journal
        if isinstance(entry, PullRequestChanged)
        and entry.to is PullRequestState.PENDING
        and entry.source is not PullRequestState.NOT_READY
        and entry.number != number
    )
    is_unknown = action is Action.SUBMIT and queue.submission_of(number) is None
    is_upper_bound = is_unknown and queue.mode is Mode.PARALLEL
    return ActionPreview(stopped, tuple(dict.fromkeys(delayed)), is_upper_bound)


def _build_event(queue: Queue, number: PullRequestNumber, action: Action, priority: int | None) -> e.Event:
    match action:
        case Action.RESTART:
            return e.RestartRequested(number=number)
        case Action.CANCEL:
            return e.CancelRequested(number=number)
        case Action.PRIORITY:
            return e.PriorityRequested(number=number, priority=DEFAULT_PRIORITY if priority is None else priority)
        case Action.SUBMIT:
            return _build_submission(queue, number, priority)


def _build_submission(queue: Queue, number: PullRequestNumber, priority: int | None) -> e.PullRequestSubmitted:
    """Of a pull request that the queue does not hold nothing is known yet: assumes that it is ready and impacts all
    targets, so that no cost is missed."""
    existing = queue.submission_of(number)
    assumed = PullRequest(
        number=number,
        head=Sha("0" * 40),
        base_branch=queue.target_branch.name,
        mergeability=Mergeability.MERGEABLE,
    )
    return e.PullRequestSubmitted(
        pull_request=assumed if existing is None else existing.pull_request,
        observed_at_revision=queue.counters.revision,
        merge_checked=True,
        priority=priority,
        impacted_targets=ImpactedTargets(everything=True) if existing is None else existing.impacted_targets,
    )
