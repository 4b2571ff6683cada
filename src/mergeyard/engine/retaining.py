"""Holds back admitted pull requests that would spoil every stack they were in, and lets them go again."""

from collections.abc import Iterable

from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.pulls import Hold
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.engine import holding, lanes, naming, places

BEHIND_THE_ABSENT = Hold(Reason.WAITING_FOR_PRS_AHEAD)


def hold_those_behind_the_absent(queue: Queue, tickets: tuple[Ticket, ...]) -> Queue:
    """Whoever contains the commits of one that is neither in the line nor here waits for that one."""
    for at, ticket in enumerate(tickets):
        if not _absent(queue, lanes.contained_by(queue, (ticket,))).issubset(tickets[:at]):
            queue = places.to_held(places.take_out(queue, ticket), ticket, BEHIND_THE_ABSENT)
    return queue


def step_out(queue: Queue, now: Instant) -> Queue:
    """Whoever stands in the line behind one that it contains leaves it when that one does."""
    for batch in holding.free_batches(queue):
        if batch.behind and _absent(queue, batch.behind):
            return _out_of_the_line(queue, batch.tickets, BEHIND_THE_ABSENT, Reason.PREREQUISITE_REMOVED, now)
    return queue


def hold_for_conflict(queue: Queue, tickets: tuple[Ticket, ...], blockers: tuple[Ticket, ...], now: Instant) -> Queue:
    hold = Hold(Reason.CONFLICTS_WITH_PR_AHEAD, blockers=blockers)
    return _out_of_the_line(queue, tickets, hold, Reason.TARGET_BRANCH_MOVED, now)


def _out_of_the_line(queue: Queue, tickets: tuple[Ticket, ...], hold: Hold, reason: Reason, now: Instant) -> Queue:
    for ticket in tickets:
        queue = naming.set_back(places.take_out(queue, ticket), ticket, reason, now)
        queue = places.to_held(queue, ticket, hold)
    return queue


def release(queue: Queue, _: Instant) -> Queue:
    for ticket in queue.held:
        hold = queue.submissions[ticket].hold
        if hold is not None and not _still_held(queue, ticket, hold):
            queue = places.to_waiting(places.take_out(queue, ticket), ticket)
    return queue


def awaited(queue: Queue, ticket: Ticket, hold: Hold) -> frozenset[Ticket]:
    """Whom a held one waits for by now."""
    if hold.reason is Reason.CONFLICTS_WITH_PR_AHEAD:
        return frozenset(queue.line.tickets).intersection(hold.blockers)
    if hold.reason is Reason.WAITING_FOR_PRS_AHEAD:
        return _absent(queue, lanes.contained_by(queue, (ticket,)))
    return frozenset()


def _still_held(queue: Queue, ticket: Ticket, hold: Hold) -> bool:
    return bool(awaited(queue, ticket, hold)) if hold.tip is None else queue.target.tip == hold.tip


def _absent(queue: Queue, tickets: Iterable[Ticket]) -> frozenset[Ticket]:
    """Those in the queue that may still come into the line. One that waits for a repair may wait for this very one."""
    live = [queue.submissions[ticket] for ticket in tickets if ticket in queue.submissions]
    coming = (each.ticket for each in live if each.hold is None or each.hold.reason is not Reason.BASE_BROKEN)
    return frozenset(coming).difference(queue.line.tickets)
