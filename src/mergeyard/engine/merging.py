"""Chooses what lands next: the furthest batch that passed, with everything that it stands on, in one update."""

from msgspec.structs import replace

from mergeyard.domain.instants import Instant
from mergeyard.domain.landing import Landing, Phase
from mergeyard.domain.line import Batch
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Member, Step
from mergeyard.engine import directing, holding, stacking


def choose_landing(queue: Queue, _: Instant) -> Queue:
    """One landing at a time. Until its intent is saved it binds nobody and may be dropped for nothing."""
    landing = queue.landing
    if landing is not None and landing.intended:
        return queue
    if landing is None or not _still_right(queue, landing):
        return _begin(queue, _furthest(queue))
    if landing.read:
        return replace(queue, landing=replace(landing, phase=Phase.INTENDED))
    return _let_grow(queue, landing)


def _let_grow(queue: Queue, landing: Landing) -> Queue:
    """If more passed while its pull requests are being read, all of it lands in one update. Only once: all are read
    anew, and where something passes more often than a read takes, nothing would ever land."""
    furthest = None if landing.grown else _furthest(queue)
    if furthest is None or not set(furthest.tickets) > set(landing.tickets):
        return queue
    return _begin(queue, replace(furthest, grown=True))


def may_land(queue: Queue, batch: Batch) -> bool:
    ahead = holding.batches_ahead(queue, batch)
    return holding.passed(queue, batch) and all(holding.found_good(queue, other) for other in ahead)


def _open_to_landings(queue: Queue) -> bool:
    """While the target must be read again, what we know of it may be wrong, and nothing lands."""
    return not queue.paused and not queue.target.look


def _still_right(queue: Queue, landing: Landing) -> bool:
    if not _open_to_landings(queue):
        return False
    if landing.run is None:
        again = _direct(queue)
    else:
        batch = next((batch for batch in queue.line.batches if landing.run in batch.runs), None)
        again = None if batch is None else _of_batch(queue, batch)
    return again is not None and again.members == landing.members and again.expected == landing.expected


def _furthest(queue: Queue) -> Landing | None:
    if not _open_to_landings(queue):
        return None
    landings = (_of_batch(queue, batch) for batch in reversed(queue.line.batches))
    return next((landing for landing in landings if landing is not None), None) or _direct(queue)


def _begin(queue: Queue, landing: Landing | None) -> Queue:
    if landing is None:
        return queue if queue.landing is None else replace(queue, landing=None)
    count = queue.counters.landings + 1
    counters = replace(queue.counters, landings=count)
    return replace(queue, counters=counters, landing=replace(landing, number=count))


def _of_batch(queue: Queue, batch: Batch) -> Landing | None:
    run, tip = holding.passed_run(queue, batch), queue.target.tip
    if run is None or tip is None or not may_land(queue, batch):
        return None
    members = holding.unlanded(queue, run.stack)
    steps = tuple(step for member, step in zip(run.stack, run.chain, strict=True) if member in members)
    landing = Landing(
        number=0,
        phase=Phase.COMPOSING,
        run=run.id,
        members=members,
        expected=tip,
        base=run.base,
        tested=steps,
        method=run.landing,
        tested_tip=run.tip,
    )
    if not holding.may_land_as_it_is(queue.target, run):
        return replace(landing, composed=True)
    return replace(landing, phase=Phase.READING, steps=prefer_what_others_stand_on(queue, members, steps))


def prefer_what_others_stand_on(queue: Queue, members: tuple[Member, ...], steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Of commits with the same parent and tree, land the one that the runs behind were built upon."""
    for batch in queue.line.batches:
        for run in queue.runs_of(batch):
            for member, step in zip(run.beneath, run.chain, strict=False):
                if member == members[-1] and step.interchangeable_with(steps[-1]):
                    return (*steps[:-1], step)
    return steps


def _direct(queue: Queue) -> Landing | None:
    first = None if queue.direct is None else queue.submissions[queue.direct]
    if first is None or first.exam is None or not directing.qualifies(queue, first):
        return None
    step = Step(first.exam.commit, first.exam.tip, first.exam.tree)
    return Landing(
        number=0,
        phase=Phase.READING,
        run=None,
        members=stacking.members(queue, (first.ticket,)),
        expected=first.exam.tip,
        base=first.exam.tip,
        tested=(step,),
        steps=(step,),
        method=queue.config.landing,
    )
