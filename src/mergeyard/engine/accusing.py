"""Finds who stands accused: a red run with nothing unproven left in its stack but the accused themselves."""

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from mergeyard.domain.ids import Sha, Ticket
from mergeyard.domain.line import Batch
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.engine import holding
from mergeyard.engine.proving import BaseVerdict, base_verdict, being_proven


class Accusation(Struct, frozen=True):
    run: Run
    accused: tuple[Ticket, ...]


def against(queue: Queue, batch: Batch) -> Accusation | None:
    """The accusation against a batch: none while anything ahead may be the cause, or a run behind may clear it."""
    run = None if queue.line.ahead[batch.id] else holding.red_run(queue, batch)
    if run is None:
        return None
    if holding.cleared(queue, batch) or successors_awaited(queue, batch):
        return None
    return Accusation(run, batch.tickets)


def successors_awaited(queue: Queue, batch: Batch) -> tuple[Batch, ...]:
    """The next ones behind it whose runs hold it and may still show that it is good."""
    if not queue.config.can_optimistically_merge:
        return ()
    near = islice(holding.batches_behind(queue, batch), queue.config.pending_failure_depth)
    return tuple(other for other in near if any(_holds(run, batch) for run in holding.active_runs(queue, other.runs)))


def _holds(run: Run, batch: Batch) -> bool:
    return run.left_out.isdisjoint(batch.tickets)


def bases_in_question(queue: Queue) -> dict[Sha, Accusation]:
    """The bases that must be tested by themselves before anyone is blamed, each with one who waits for that."""
    questions = dict[Sha, Accusation]()
    for accusation in accusations(queue):
        if base_verdict(queue, accusation.run, accusation.accused) is BaseVerdict.UNKNOWN:
            questions.setdefault(accusation.run.base, accusation)
    return questions


def must_be_tested_bare(queue: Queue, accusation: Accusation) -> bool:
    return not being_proven(queue, accusation.run.base, accusation.accused)


def accusations(queue: Queue) -> Iterator[Accusation]:
    for batch in holding.free_batches(queue):
        accusation = against(queue, batch)
        if accusation is not None:
            yield accusation
    for bisection in queue.bisections:
        if bisection.red == 1:
            yield Accusation(bisection.red_run, (bisection.suspect,))
        for run in queue.runs_of(bisection) if bisection.confirming else ():
            if holding.failed_for_good(queue, run):
                yield Accusation(run, (bisection.suspect,))
