"""Bets on what will be needed: of all stacks that a batch could stand upon, those that are likely enough to come true.

Each bet says of everybody ahead whether they merge or leave. What it costs to be wrong is a run: a run counts only
when all of it has come true.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import Speculation
from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.line import Batch
from mergeyard.domain.queue import Queue
from mergeyard.engine import foreseeing, holding, places
from mergeyard.engine.foreseeing import Batches, Foresight, Prospect
from mergeyard.engine.remembering import once_for_the_same

WORTH_A_RUN = 0.3
"""Lower, and more runs are started in vain; higher, and whoever stands behind a failure waits longer."""
FUTILE = 0.02
"""A run that is this unlikely to be needed gives its slot back: far below what starts one, so that none comes and
goes."""


class Bet(Struct, frozen=True):
    likelihood: float
    batch: Batch
    left_out: frozenset[Ticket]


def bets(queue: Queue) -> list[Bet]:
    """All that no run tests yet and that are worth one, the likeliest first, and of equals the one in front."""
    foreseen = foreseeing.foresee(queue)
    open_bets = (bet for batch in holding.free_batches(queue) for bet in _of_batch(queue, batch, foreseen))
    return sorted(open_bets, key=lambda bet: -bet.likelihood)


@once_for_the_same("config", "line", "runs", "submissions", "experience", "target", "landing")
def asleep(queue: Queue) -> tuple[Batch, ...]:
    """Those in the line that are not worth a run before more is known of those ahead."""
    if queue.config.speculation is not Speculation.BEST_FIRST:
        return ()
    likely = {bet.batch.id for bet in bets(queue)}
    return tuple(batch for batch in queue.line.batches if not batch.runs and batch.id not in likely)


def drop_futile(queue: Queue, _: Instant) -> Queue:
    """Whoever has passed need not be left out by anyone any more. The run that a batch is named by stays."""
    hedged = [batch for batch in holding.free_batches(queue) if len(batch.runs) > 1]
    if not hedged or queue.config.speculation is not Speculation.BEST_FIRST:
        return queue
    foreseen = foreseeing.foresee(queue)
    for batch in hedged:
        others = (run for run in holding.active_runs(queue, batch.runs) if run != holding.current_run(queue, batch))
        futile = {run.id for run in others if foreseeing.likelihood(queue, batch, run, foreseen) < FUTILE}
        if futile:
            rest = tuple(run for run in batch.runs if run not in futile)
            queue = places.replace_batch(queue, replace(batch, runs=rest))
    return queue


def _of_batch(queue: Queue, batch: Batch, foreseen: Foresight) -> Iterator[Bet]:
    if holding.found_good(queue, batch):
        return
    ahead = holding.batches_ahead(queue, batch)
    tested = {foreseeing.left_out_by(run, ahead) for run in queue.runs_of(batch)}
    for leaving, likelihood in _futures(tuple(foreseeing.prospects(ahead, foreseen)), frozenset(), 1.0):
        left = tuple(other for other in ahead if other.id in leaving)
        if leaving not in tested and _can_be_left_out(left, (*ahead, batch)):
            yield Bet(likelihood, batch, frozenset(ticket for other in left for ticket in other.tickets))


def _futures(parts: tuple[Prospect, ...], leaving: Batches, likelihood: float) -> Iterator[tuple[Batches, float]]:
    """They exclude each other, so only a few can be likely."""
    if likelihood < WORTH_A_RUN:
        return
    if not parts:
        yield leaving, likelihood
        return
    *others, last = parts
    for more, chance in last.outcomes.items():
        yield from _futures(tuple(others), leaving | more, likelihood * chance)


def _can_be_left_out(left: tuple[Batch, ...], batches: tuple[Batch, ...]) -> bool:
    """Nobody whose commits are part of somebody who stays."""
    brought = frozenset[Ticket]().union(*(batch.behind for batch in batches if batch not in left))
    return brought.isdisjoint(ticket for batch in left for ticket in batch.tickets)
