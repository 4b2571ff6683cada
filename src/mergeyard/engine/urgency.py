"""Lets urgent pull requests pass the line, but not those that are done, and nobody without end."""

from collections.abc import Iterable

from msgspec.structs import replace

from mergeyard.domain.ids import BatchId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.line import Batch, Line
from mergeyard.domain.priorities import URGENT
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.engine import holding, lanes, places, requirements, retaining

PATIENCE = 3
"""How often a batch lets itself be interrupted."""


def place_urgent(queue: Queue, _: Instant) -> Queue:
    if not _may_pass(queue):
        return queue
    for ticket in queue.waiting.get(URGENT, ()):
        queue = _pass_the_line(queue, ticket)
    return queue


def raise_all(queue: Queue, now: Instant) -> Queue:
    """Those that became urgent while nobody could be passed."""
    for ticket in queue.line.tickets:
        if queue.submissions[ticket].urgent:
            queue = raise_in_line(queue, ticket, now)
    return queue


def raise_in_line(queue: Queue, ticket: Ticket, now: Instant) -> Queue:
    """One that became urgent leaves its batch, unless nobody whom it could pass stands ahead of it."""
    batch = places.batch_of(queue, ticket)
    if batch is None or not _may_pass(queue):
        return queue
    fixed = _not_to_be_passed(queue)
    if batch.id in fixed:
        return queue
    if batch.tickets == (ticket,) and fixed.issuperset(queue.line.ahead[batch.id]):
        return places.replace_batch(queue, replace(batch, urgent=True))
    queue = places.take_out(queue, ticket)
    return places.send_back(queue, (ticket,), Reason.SKIP_THE_LINE_INTERRUPTED, now)


def _may_pass(queue: Queue) -> bool:
    """While no test may start, or none is named that could, nobody is passed."""
    return queue.may_start and requirements.missing(queue) is None


def _pass_the_line(queue: Queue, ticket: Ticket) -> Queue:
    held = retaining.hold_those_behind_the_absent(queue, (ticket,))
    if held is not queue:
        return held
    queue, batch = places.new_batch(places.take_out(queue, ticket), (ticket,))
    line = _squeeze_in(queue.line, replace(batch, urgent=True), _not_to_be_passed(queue))
    batches = (_interrupted(other) if batch.id in line.ahead[other.id] else other for other in line.batches)
    return replace(queue, line=replace(line, batches=tuple(batches)))


def _squeeze_in(line: Line, urgent: Batch, fixed: frozenset[BatchId]) -> Line:
    """As far ahead as possible without coming beneath one of the fixed, or before one that it contains."""
    contained = lanes.holders(line, urgent.behind)
    place = max((at for at, other in enumerate(line.batches, start=1) if other.id in contained), default=0)
    while True:
        candidate = lanes.arrange((*line.batches[:place], urgent, *line.batches[place:]))
        passed = [at for at, other in enumerate(line.batches) if urgent.id in candidate.ahead[other.id]]
        offended = [at for at in passed if line.batches[at].id in fixed]
        if not offended:
            return candidate
        place = offended[-1] + 1


def _not_to_be_passed(queue: Queue) -> frozenset[BatchId]:
    landing = frozenset[Ticket]() if queue.landing is None else frozenset(queue.landing.tickets)
    return frozenset(
        batch.id
        for batch in queue.line.batches
        if batch.urgent
        or batch.interruptions >= PATIENCE
        or not landing.isdisjoint(batch.tickets)
        or _done(queue, (batch, *holding.batches_ahead(queue, batch)))
    )


def _done(queue: Queue, batches: Iterable[Batch]) -> bool:
    return all(holding.found_good(queue, batch) for batch in batches)


def _interrupted(batch: Batch) -> Batch:
    return replace(batch, interruptions=batch.interruptions + 1) if batch.runs else batch
