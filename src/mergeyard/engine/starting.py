"""Gives free slots to what should be tested next."""

from msgspec.structs import replace

from mergeyard.domain.ids import Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.line import Batch
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PrState
from mergeyard.engine import (
    accusing,
    batching,
    holding,
    lanes,
    leaving,
    places,
    proving,
    requirements,
    retaining,
    running,
    stacking,
)
from mergeyard.engine.stacking import Stack


def start(queue: Queue, now: Instant) -> Queue:
    """First what others wait for: bases in question, then the line from its front, then the waiting."""
    tip = queue.target.tip
    if tip is None or not running.free_slots(queue):
        return queue
    missing = requirements.missing(queue)
    if missing is not None:
        return _turn_away(queue, missing, now)
    queue = _start_bare_runs(queue)
    queue = _start_the_line(queue, tip)
    return _start_the_waiting(queue, tip, now)


def start_those_who_may_clear(queue: Queue, now: Instant) -> Queue:
    """Whoever stands behind a failed batch may show that it is good, so they start before it is judged."""
    clearing = queue.config.can_optimistically_merge and queue.config.pending_failure_depth
    return start(queue, now) if clearing else queue


def _turn_away(queue: Queue, reason: Reason, now: Instant) -> Queue:
    idle = [ticket for batch in queue.line.batches if not batch.runs for ticket in batch.tickets]
    waiting = [ticket for bucket in queue.waiting.values() for ticket in bucket]
    words = requirements.required(queue).config_error or ""
    for ticket in (*idle, *waiting):
        if holding.bound_by_landing(queue, ticket) or queue.submissions[ticket].state is not PrState.PENDING:
            continue
        queue = leaving.leave(queue, ticket, PrState.FAILED, reason, now, words=words)
    return queue


def _start_bare_runs(queue: Queue) -> Queue:
    for base, accusation in accusing.bases_in_question(queue).items():
        if running.free_slots(queue) and accusing.must_be_tested_bare(queue, accusation):
            queue = _start_bare_run(queue, base)
    return queue


def _start_bare_run(queue: Queue, base: Sha) -> Queue:
    run = proving.bare_runs(queue).get(base)
    if run is None or not holding.to_be_repeated(queue, run):
        return running.begin(queue, RunKind.BARE, Stack(base, ()), 0)[0]
    return running.repeat(queue, run)[0]


def _start_the_line(queue: Queue, tip: Sha) -> Queue:
    for batch in holding.free_batches(queue):
        run = holding.current_run(queue, batch)
        if run is not None and not holding.to_be_repeated(queue, run):
            continue
        if not running.free_slots(queue):
            return queue
        if run is None and batch.targets != lanes.targets_of_all(queue, batch.tickets):
            return places.renew_lane(queue, batch)
        if run is None:
            queue = _start_batch(queue, batch, tip)
        elif not holding.cleared(queue, batch):
            queue, again = running.repeat(queue, run)
            queue = places.replace_batch(queue, replace(batch, runs=(again,)))
    return queue


def _start_the_waiting(queue: Queue, tip: Sha, now: Instant) -> Queue:
    while running.free_slots(queue) and queue.direct is None:
        ready = batching.form(queue, now).ready
        if not ready:
            return queue
        for tickets in ready:
            queue = _line_up(queue, tickets, tip)
    return queue


def _line_up(queue: Queue, tickets: tuple[Ticket, ...], tip: Sha) -> Queue:
    if not running.free_slots(queue):
        return queue
    together = retaining.hold_those_behind_the_absent(queue, tickets)
    if together is not queue:
        return together
    for ticket in tickets:
        queue = places.take_out(queue, ticket)
        queue = places.update(queue, replace(queue.submissions[ticket], reunion=()))
    queue, batch = places.new_batch(queue, tickets)
    return _start_batch(places.to_line(queue, batch), batch, tip)


def _start_batch(queue: Queue, batch: Batch, tip: Sha) -> Queue:
    stack = stacking.next_stack(queue, batch, tip)
    queue, run = running.begin(queue, RunKind.LINE, stack, len(batch.tickets), batch.id)
    return places.replace_batch(queue, replace(batch, runs=(run,)))
