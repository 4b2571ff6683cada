"""Ends a bisection when its evidence is gone: whoever left was part of what was red."""

from msgspec.structs import replace

from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.line import Bisection
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.engine import places


def bisection_of(queue: Queue, ticket: Ticket) -> Bisection | None:
    return next((each for each in queue.bisections if ticket in each.members), None)


def update_bisection(queue: Queue, bisection: Bisection) -> Queue:
    if bisection in queue.bisections:
        return queue
    updated = tuple(bisection if each.id == bisection.id else each for each in queue.bisections)
    return replace(queue, bisections=updated)


def remove_bisection(queue: Queue, bisection: Bisection) -> Queue:
    return replace(queue, bisections=tuple(each for each in queue.bisections if each.id != bisection.id))


def dissolve(queue: Queue, bisection: Bisection, rest: tuple[Ticket, ...], reason: Reason, now: Instant) -> Queue:
    """The rest is tested again, together."""
    queue = remove_bisection(queue, bisection)
    return places.send_back(places.reunite(queue, rest), rest, reason, now)


def lose(queue: Queue, ticket: Ticket, merged: bool, now: Instant) -> Queue:
    """Somebody leaves the queue: every set that held it is unknown again, unless it was known good and merged."""
    for bisection in queue.bisections:
        if merged and ticket in bisection.tickets[: bisection.green]:
            queue = update_bisection(queue, replace(bisection, merged=bisection.merged | {ticket}))
        elif ticket in bisection.tickets[: bisection.red]:
            rest = tuple(other for other in bisection.members if other != ticket)
            queue = dissolve(queue, bisection, rest, Reason.BATCHMATE_REMOVED, now)
    return queue
