"""Of which queues anything is foretold, and what of them is needed for it: those that are admitted, and no others."""

from collections.abc import Iterator
from itertools import chain, islice

from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber, Ticket
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.sorted_map import SortedMap

MOST = 100
"""Pull requests: of more, a forecast takes longer than it is true for."""
MOST_NAMES = 20_000
"""Of targets, of all together: whoever is handed over must not take long to be written down."""


def to_foretell(queue: Queue) -> Queue | None:
    """None where there is nothing to go by, nobody to ask for, or too much."""
    if not queue.durations or not queue.may_start or queue.target.tip is None:
        return None
    stays = {ticket: queue.submissions[ticket] for ticket in sorted(islice(_admitted(queue), MOST + 1))}
    names = sum(len(stay.targets.names) for stay in stays.values() if stay.targets is not None)
    return _only(queue, stays) if 0 < len(stays) <= MOST and names <= MOST_NAMES else None


def _admitted(queue: Queue) -> Iterator[Ticket]:
    return chain(queue.placed, *queue.waiting.values(), queue.held)


def _only(queue: Queue, stays: dict[Ticket, Submission]) -> Queue:
    submissions, tickets, looks = SortedMap[Ticket, Submission](), SortedMap[PrNumber, Ticket](), queue.looks
    for ticket, stay in stays.items():
        submissions, tickets = submissions.put(ticket, stay), tickets.put(stay.number, ticket)
    for ticket in queue.looks:
        looks = looks if ticket in stays else looks.drop(ticket)
    return replace(queue, submissions=submissions, tickets=tickets, looks=looks, not_ready=SortedMap())
