"""Decides who is ready, admits them, and sends back whom the host no longer calls mergeable."""

from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import Mergeability, PrState, QueueState
from mergeyard.engine import clock, dissolving, naming, places


def unready(queue: Queue, submission: Submission) -> Reason | None:
    """What the pull request itself lacks. An answer that the host has not given yet is no refusal."""
    pull = submission.pull
    if pull.base != queue.target.name:
        return Reason.BASE_BRANCH_MISMATCH
    if pull.draft:
        return Reason.DRAFT
    if awaits_maintainer(submission):
        return Reason.WAITING_FOR_MAINTAINER
    if pull.fork and pull.guarded is None and not submission.by_maintainer:
        return Reason.MERGEABILITY_UNKNOWN
    if queue.config.mode is Mode.PARALLEL and submission.targets is None:
        return Reason.MISSING_IMPACTED_TARGETS
    if submission.forced or pull.mergeability is Mergeability.MERGEABLE:
        return None
    if pull.mergeability is Mergeability.NOT_MERGEABLE:
        return Reason.NOT_MERGEABLE
    return Reason.MERGEABILITY_UNKNOWN


def awaits_maintainer(submission: Submission) -> bool:
    return submission.pull.fork and bool(submission.pull.guarded) and not submission.by_maintainer


def admit(queue: Queue, ticket: Ticket, now: Instant) -> Queue:
    submission = queue.submissions[ticket]
    if submission.state is not PrState.NOT_READY or queue.state is not QueueState.RUNNING:
        return queue
    if unready(queue, submission) is not None:
        return queue
    queue = naming.rename(places.take_out(queue, ticket), ticket, PrState.PENDING, Reason.READY, now)
    queue = places.update(queue, replace(queue.submissions[ticket], admitted_at=now))
    return places.to_waiting(queue, ticket)


def open_or_close(queue: Queue, now: Instant) -> Queue:
    """Those that were ready while the doors were shut come in when they open, and when the mode asks for less."""
    doors = queue.config.mode if queue.state is QueueState.RUNNING else None
    if doors == queue.doors:
        return queue
    queue = replace(queue, doors=doors)
    for _, ticket in queue.not_ready if doors is not None else ():
        queue = admit(queue, ticket, now)
    return queue


def demote(queue: Queue, ticket: Ticket, reason: Reason, now: Instant) -> Queue:
    queue = dissolving.lose(places.take_out(queue, ticket), ticket, merged=False, now=now)
    queue = naming.rename(queue, ticket, PrState.NOT_READY, reason, now)
    return places.to_not_ready(queue, ticket, clock.running_time(queue, now))
