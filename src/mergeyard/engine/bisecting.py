"""Finds the guilty one of a red batch: the last of its shortest red prefix."""

from msgspec.structs import replace

from mergeyard.domain.ids import RunId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.line import Batch, Bisection
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import RunStatus
from mergeyard.engine import holding, places, requirements, running, suspecting
from mergeyard.engine.dissolving import dissolve, update_bisection
from mergeyard.engine.stacking import Stack


def begin(queue: Queue, batch: Batch, run: Run) -> Queue:
    """The batch leaves the line, which flows on without it. It is known to be red and never run again."""
    size = len(batch.tickets)
    bisection = Bisection(id=batch.id, tickets=batch.tickets, targets=batch.targets, failed=run, red=size, red_run=run)
    queue = places.remove_batch(queue, batch)
    return replace(queue, bisections=(*queue.bisections, bisection))


def advance(queue: Queue, now: Instant) -> Queue:
    if queue.paused:
        return queue
    if requirements.missing(queue) is not None:
        return _give_up(queue, now)
    for bisection in queue.bisections:
        proceed = _search if bisection.searching else suspecting.try_suspect
        changed = proceed(queue, bisection, now)
        if changed is not queue:
            return changed
    return queue


def _give_up(queue: Queue, now: Instant) -> Queue:
    """Nothing is required any more, so nothing could be shown."""
    for bisection in queue.bisections:
        queue = dissolve(queue, bisection, bisection.members, Reason.REQUIRED_STATUSES_CHANGED, now)
    return queue


def _search(queue: Queue, before: Bisection, now: Instant) -> Queue:
    runs = queue.runs_of(before)
    after = _read_results(queue, before, runs)
    queue = update_bisection(queue, after)
    queue = _hand_back_the_good(queue, before, after, runs, now)
    queue = places.send_back(queue, after.tickets[after.red : before.red], Reason.BISECTION, now)
    return _probe(queue, after) if after.searching else queue


def _read_results(queue: Queue, bisection: Bisection, runs: tuple[Run, ...]) -> Bisection:
    green, red, red_run = bisection.green, bisection.red, bisection.red_run
    for run in runs:
        if run.void is not None or not green < run.tests < red:
            continue
        if run.status is RunStatus.SUCCEEDED:
            green = run.tests
        elif holding.failed_for_good(queue, run):
            red, red_run = run.tests, run
    open_runs = tuple(run.id for run in runs if green < run.tests < red and run.void is None)
    return replace(bisection, green=green, red=red, red_run=red_run, runs=open_runs)


def _hand_back_the_good(
    queue: Queue, before: Bisection, after: Bisection, runs: tuple[Run, ...], now: Instant
) -> Queue:
    good = after.tickets[before.green : after.green]
    if good and _may_land_as_tested(queue, before):
        verified = next(run.id for run in runs if run.tests == after.green)
        return _adopt(queue, good, verified)
    return places.send_back(places.reunite(queue, good), good, Reason.BISECTION_PASSED, now)


def _may_land_as_tested(queue: Queue, bisection: Bisection) -> bool:
    """Nothing else is under test, the target still is what the prefix was tested on, and nothing was taken off it."""
    alone = not queue.line.batches and len(queue.bisections) == 1
    same_target = queue.target.tip == bisection.base and not queue.target.removed
    return alone and same_target and queue.may_start and bisection.green == 0


def _adopt(queue: Queue, tickets: tuple[Ticket, ...], verified: RunId) -> Queue:
    queue, batch = places.new_batch(queue, tickets)
    queue = places.to_line(queue, replace(batch, runs=(verified,)))
    return running.put(queue, replace(queue.runs[verified], batch=batch.id))


def _probe(queue: Queue, bisection: Bisection) -> Queue:
    """Test prefixes evenly spaced over the unknown part, as many at once as the budget allows."""
    runs = dict[int, RunId]()
    for run in queue.runs_of(bisection):
        runs[run.tests] = run.id
        if not run.active and running.bisection_room(queue):
            queue, runs[run.tests] = running.repeat(queue, run)
    for length in _spread(bisection, len(runs) + running.bisection_room(queue)):
        if length not in runs and running.bisection_room(queue):
            stack = _prefix_stack(queue, bisection, length)
            queue, runs[length] = running.begin(queue, RunKind.BISECTION, stack, length)
    return update_bisection(queue, replace(bisection, runs=tuple(runs.values())))


def _spread(bisection: Bisection, count: int) -> tuple[int, ...]:
    gap = bisection.red - bisection.green
    parts = min(count, gap - 1) + 1
    return tuple(bisection.green - (-part * gap // parts) for part in range(1, parts))


def _prefix_stack(queue: Queue, bisection: Bisection, length: int) -> Stack:
    """The failed run's own commits serve again; only the tip must be new."""
    same_method = bisection.failed.method is queue.config.merge_method
    reused = bisection.steps[: length - 1] if same_method else ()
    return Stack(bisection.base, bisection.failed.tested[:length], reused=reused)
