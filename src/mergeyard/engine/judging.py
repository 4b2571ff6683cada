"""Judges red batches: fails the one that is guilty, searches among several, and blames nobody on a broken base."""

from typing import assert_never

from msgspec.structs import replace

from mergeyard.domain.ids import RunId
from mergeyard.domain.instants import Instant
from mergeyard.domain.line import Batch
from mergeyard.domain.pulls import Hold
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run
from mergeyard.domain.states import PrState
from mergeyard.engine import accusing, bisecting, holding, leaving, naming, places, proving, unchanged
from mergeyard.engine.accusing import Accusation
from mergeyard.engine.proving import BaseVerdict


def drop_misfits(queue: Queue, now: Instant) -> Queue:
    """Give up the runs that test something else than what would merge now, and test their batches again."""
    for batch, run in unchanged.runs_to_check(queue):
        reason = holding.misfit(queue, batch, run)
        if reason is not None:
            queue = _drop_run(queue, batch, run.id, reason, now)
    return queue


def withdraw_clearances(queue: Queue, now: Instant) -> Queue:
    """Those that passed only by a run behind them are tested again when that run no longer speaks for them."""
    for batch in holding.free_batches(queue):
        named_passed = queue.submissions[batch.tickets[0]].state is PrState.TESTS_PASSED
        if not named_passed or holding.found_good(queue, batch):
            continue
        run = holding.current_run(queue, batch)
        if run is not None and not run.active:
            queue = places.replace_batch(queue, replace(batch, runs=()))
        for ticket in batch.tickets:
            queue = naming.set_back(queue, ticket, Reason.PREREQUISITE_REMOVED, now)
    return queue


def judge(queue: Queue, now: Instant) -> Queue:
    if queue.paused:
        return queue
    for batch in holding.free_batches(queue):
        accusation = accusing.against(queue, batch)
        judged = queue if accusation is None else _judge_batch(queue, batch, accusation, now)
        if judged is not queue:
            return judged
    return queue


def _drop_run(queue: Queue, batch: Batch, run: RunId, reason: Reason, now: Instant) -> Queue:
    present = queue.line.by_id[batch.id]
    named_by = holding.current_run(queue, present)
    rest = tuple(other for other in present.runs if other != run)
    queue = places.replace_batch(queue, replace(present, runs=rest))
    for ticket in batch.tickets if named_by is not None and named_by.id == run else ():
        queue = naming.set_back(queue, ticket, reason, now)
    return queue


def _judge_batch(queue: Queue, batch: Batch, accusation: Accusation, now: Instant) -> Queue:
    match verdict := proving.base_verdict(queue, accusation.run, accusation.accused):
        case BaseVerdict.UNKNOWN:
            return queue
        case BaseVerdict.BROKEN:
            queue = places.remove_batch(queue, batch)
            hold = Hold(Reason.BASE_BROKEN, tip=accusation.run.base)
            return places.hold_back(queue, batch.tickets, hold, now)
        case BaseVerdict.PROVEN:
            return _blame(queue, batch, accusation.run, now)
        case _:
            assert_never(verdict)


def _blame(queue: Queue, batch: Batch, run: Run, now: Instant) -> Queue:
    suspect, *others = batch.tickets
    if others:
        return bisecting.begin(queue, batch, run)
    upon = tuple(member.number for member in run.beneath)
    return leaving.leave(queue, suspect, PrState.FAILED, run.failure, now, upon=upon)
