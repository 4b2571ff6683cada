"""Gives free slots to what should be tested next."""

from itertools import islice
from typing import assert_never

from msgspec.structs import replace

from mergeyard.domain.config import Speculation
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
    naming,
    places,
    proving,
    requirements,
    retaining,
    running,
    speculating,
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
    queue = _renew_lanes(_start_bare_runs(queue))
    match queue.config.speculation:
        case Speculation.CHAIN:
            return _start_the_waiting(_start_the_line(queue, tip), tip, now)
        case Speculation.BEST_FIRST:
            return _start_the_likeliest(_line_up_the_waiting(_repeat_the_line(queue), now), tip)
        case _:
            assert_never(queue.config.speculation)


def start_those_who_may_clear(queue: Queue, now: Instant) -> Queue:
    """Whoever stands behind a failed batch may show that it is good, so they start before it is judged."""
    clearing = queue.config.can_optimistically_merge and queue.config.pending_failure_depth
    return start(queue, now) if clearing else queue


def _turn_away(queue: Queue, reason: Reason, now: Instant) -> Queue:
    idle = [ticket for batch in queue.line.batches if _waits_for_a_test(queue, batch) for ticket in batch.tickets]
    waiting = [ticket for bucket in queue.waiting.values() for ticket in bucket]
    words = requirements.required(queue).config_error or ""
    for ticket in (*idle, *waiting):
        if holding.bound_by_landing(queue, ticket):
            continue
        if queue.submissions[ticket].state is not PrState.PENDING:  # it was to be tested once more, or its base
            queue = naming.set_back(queue, ticket, Reason.REQUIRED_STATUSES_CHANGED, now)
        queue = leaving.leave(queue, ticket, PrState.FAILED, reason, now, words=words)
    return queue


def _waits_for_a_test(queue: Queue, batch: Batch) -> bool:
    return not holding.active_runs(queue, batch.runs) and not holding.found_good(queue, batch)


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


def _renew_lanes(queue: Queue) -> Queue:
    """Of those without a run, before any of them starts: what they impact may have been said anew meanwhile."""
    for batch in holding.free_batches(queue):
        if not batch.runs and batch.targets != lanes.targets_of_all(queue, batch.tickets):
            queue = places.renew_lane(queue, batch)
    return queue


def _start_the_line(queue: Queue, tip: Sha) -> Queue:
    for batch in holding.free_batches(queue):
        if batch.runs:
            queue = _repeat_runs(queue, batch)
        elif not running.free_slots(queue):
            return queue
        else:
            queue = _start_run(queue, batch, tip)
    return queue


def _repeat_the_line(queue: Queue) -> Queue:
    for batch in holding.free_batches(queue):
        queue = _repeat_runs(queue, batch)
    return queue


def _repeat_runs(queue: Queue, batch: Batch) -> Queue:
    again = [run for run in queue.runs_of(batch) if holding.to_be_repeated(queue, run)]
    if not again or holding.found_good(queue, batch):
        return queue
    for run in again[: running.free_slots(queue)]:
        queue, repeated = running.repeat(queue, run)
        runs = tuple(repeated if other == run.id else other for other in batch.runs)
        batch = replace(batch, runs=runs)
    return places.replace_batch(queue, batch)


def _start_the_waiting(queue: Queue, tip: Sha, now: Instant) -> Queue:
    while running.free_slots(queue) and queue.direct is None:
        ready = batching.form(queue, now).ready
        if not ready:
            return queue
        for tickets in ready[: running.free_slots(queue)]:
            queue, batch = _line_up(queue, tickets)
            queue = queue if batch is None else _start_run(queue, batch, tip)
    return queue


def _line_up_the_waiting(queue: Queue, now: Instant) -> Queue:
    """A place in the line costs nothing, but whoever has one is not passed any more. Where a lane is asleep nobody else
    joins it, and the other lanes go on."""
    while (room := _room_in_line(queue)) > 0 and queue.direct is None:
        ready = batching.form(queue, now, speculating.asleep(queue)).ready
        if not ready:
            return queue
        for tickets in ready[:room]:
            queue, _ = _line_up(queue, tickets)
    return queue


def _room_in_line(queue: Queue) -> int:
    idle = sum(not batch.runs for batch in queue.line.batches)
    return running.free_slots(queue) - idle + len(speculating.asleep(queue))


def _start_the_likeliest(queue: Queue, tip: Sha) -> Queue:
    for bet in islice(speculating.bets(queue), running.free_slots(queue)):
        queue = _start_run(queue, queue.line.by_id[bet.batch.id], tip, bet.left_out)
    return queue


def _line_up(queue: Queue, tickets: tuple[Ticket, ...]) -> tuple[Queue, Batch | None]:
    together = retaining.hold_those_behind_the_absent(queue, tickets)
    if together is not queue:
        return together, None
    for ticket in tickets:
        queue = places.take_out(queue, ticket)
        queue = places.update(queue, replace(queue.submissions[ticket], reunion=()))
    queue, batch = places.new_batch(queue, tickets)
    return places.to_line(queue, batch), batch


def _start_run(queue: Queue, batch: Batch, tip: Sha, left_out: frozenset[Ticket] = frozenset()) -> Queue:
    stack = stacking.next_stack(queue, batch, tip, left_out)
    queue, run = running.begin(queue, RunKind.LINE, stack, len(batch.tickets), batch.id)
    return places.replace_batch(queue, replace(batch, runs=(*batch.runs, run)))
