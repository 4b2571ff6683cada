"""Views of the queue for answers: who stands where, in which order, and which run to show."""

from bisect import bisect_left
from collections.abc import Iterator

from mergeyard.domain.ids import RunId
from mergeyard.domain.instants import Instant
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import PrState
from mergeyard.engine import accusing, order, proving


def enqueued(queue: Queue, now: Instant) -> Iterator[Submission]:
    """Everybody: the line, the bisections, the waiting, the held, the not ready."""
    for ticket in queue.placed:
        yield queue.submissions[ticket]
    yield from order.in_order(queue, now)
    for ticket in queue.held:
        yield queue.submissions[ticket]
    for _, ticket in queue.not_ready:
        yield queue.submissions[ticket]


def position(queue: Queue, submission: Submission, now: Instant) -> int | None:
    """Its place among all that are admitted, from 1, without walking through those who wait."""
    if submission.state is PrState.NOT_READY:
        return None
    placed = queue.placed
    if submission.ticket in placed:
        return placed.index(submission.ticket) + 1
    if submission.ticket in queue.held:
        waiting = sum(len(bucket) for bucket in queue.waiting.values())
        return len(placed) + waiting + queue.held.rank(submission.ticket) + 1
    return len(placed) + _waiting_before(queue, submission, now) + 1


def shown_run(queue: Queue, submission: Submission) -> RunId | None:
    """Its own run, or the bare one that it waits for."""
    if submission.state is not PrState.PENDING_FAILURE:
        return submission.run
    for accusation in accusing.accusations(queue):
        if submission.ticket in accusation.accused:
            bare = proving.bare_runs(queue).get(accusation.run.base)
            return bare.id if bare is not None and bare.pushed else submission.run
    return submission.run


def _waiting_before(queue: Queue, submission: Submission, now: Instant) -> int:
    """Each priority is sorted by itself, so a search in each tells how many come first."""
    mine = order.rank(submission, now)
    return sum(
        bisect_left(range(len(bucket)), mine, key=lambda at: order.rank(queue.submissions[bucket.nth(at)], now))
        for bucket in queue.waiting.values()
    )
