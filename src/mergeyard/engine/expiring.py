"""Ends what waited too long: time is news too."""

from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState
from mergeyard.engine import clock, leaving


def expire(queue: Queue, now: Instant) -> Queue:
    queue = clock.note_overdue_runs(queue, now)
    while (due := clock.next_timeout(queue, now)) is not None and due <= now:
        _, ticket = queue.not_ready.chunks[0].keys[0]
        queue = leaving.leave(queue, ticket, PrState.CANCELLED, Reason.NOT_READY_TIMEOUT, now)
    return queue
