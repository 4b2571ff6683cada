"""Judges bases anew when other statuses are required: green and red were seen for what was required then."""

from msgspec.structs import replace

from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.engine import places, requirements


def reconsider(before: Queue, queue: Queue) -> Queue:
    """Who passed more has passed less too, but what was red may have been so for a status that nobody asks for now."""
    then, now = (set(requirements.required(each).statuses) for each in (before, queue))
    if then == now:
        return queue
    target = replace(queue.target, broken=frozenset())
    return _release(replace(queue, target=target if now <= then else replace(target, proofs={})))


def _release(queue: Queue) -> Queue:
    for ticket in queue.held:
        hold = queue.submissions[ticket].hold
        if hold is not None and hold.reason is Reason.BASE_BROKEN:
            queue = places.to_waiting(places.take_out(queue, ticket), ticket)
    return queue
