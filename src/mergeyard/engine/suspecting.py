"""Judges the suspect of a bisection: only upon those it was red with, and only once they have merged."""

from typing import assert_never

from msgspec.structs import replace

from mergeyard.domain.config import OptimizationMode
from mergeyard.domain.instants import Instant
from mergeyard.domain.line import Bisection
from mergeyard.domain.pulls import Hold
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.engine import holding, lanes, leaving, places, proving, running, stacking
from mergeyard.engine.dissolving import remove_bisection, update_bisection
from mergeyard.engine.proving import BaseVerdict
from mergeyard.engine.stacking import Stack


def try_suspect(queue: Queue, bisection: Bisection, now: Instant) -> Queue:
    unmerged = tuple(ticket for ticket in bisection.prefix if ticket not in bisection.merged)
    if bisection.suspect in lanes.contained_by(queue, unmerged):  # so the green prefix had its commits
        return _let_go(queue, bisection, now)
    if unmerged:
        return queue
    if not bisection.prefix:
        return _judge(queue, bisection, bisection.red_run, now)
    if queue.config.optimization_mode is OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS:
        return _fail(queue, bisection, Reason.FAILED_BY_OPTIMIZATION, now)
    if not bisection.confirming:
        return _confirm(queue, bisection)
    return _judge_confirmation(queue, bisection, queue.runs[bisection.runs[-1]], now)


def _confirm(queue: Queue, bisection: Bisection) -> Queue:
    """One more run, upon the others as they merged."""
    if queue.target.tip is None or not running.bisection_room(queue):
        return queue
    stack = Stack(queue.target.tip, stacking.members(queue, (bisection.suspect,)))
    queue, run = running.begin(queue, RunKind.BISECTION, stack, 1)
    return update_bisection(queue, replace(bisection, confirming=True, runs=(run,)))


def _judge_confirmation(queue: Queue, bisection: Bisection, run: Run, now: Instant) -> Queue:
    if run.active:
        return queue
    if run.status is RunStatus.SUCCEEDED:
        return _let_go(queue, bisection, now)
    if run.void is not None or holding.to_be_repeated(queue, run):
        return _confirm_again(queue, bisection, run)
    return _judge(queue, bisection, run, now)


def _judge(queue: Queue, bisection: Bisection, run: Run, now: Instant) -> Queue:
    match verdict := proving.base_verdict(queue, run, (bisection.suspect,)):
        case BaseVerdict.PROVEN:
            return _fail(queue, bisection, run.failure, now)
        case BaseVerdict.BROKEN:
            queue = remove_bisection(queue, bisection)
            return places.hold_back(queue, (bisection.suspect,), Hold(Reason.BASE_BROKEN, tip=run.base), now)
        case BaseVerdict.UNKNOWN:
            return queue
        case _:
            assert_never(verdict)


def _confirm_again(queue: Queue, bisection: Bisection, run: Run) -> Queue:
    if not running.bisection_room(queue):
        return queue
    queue, again = running.repeat(queue, run)
    return update_bisection(queue, replace(bisection, runs=(again,)))


def _let_go(queue: Queue, bisection: Bisection, now: Instant) -> Queue:
    return places.send_back(remove_bisection(queue, bisection), (bisection.suspect,), Reason.BISECTION_PASSED, now)


def _fail(queue: Queue, bisection: Bisection, reason: Reason, now: Instant) -> Queue:
    upon = tuple(member.number for member in bisection.failed.tested if member.ticket in bisection.prefix)
    return leaving.leave(queue, bisection.suspect, PrState.FAILED, reason, now, upon=upon)
