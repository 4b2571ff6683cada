"""Foresees who in the line will merge: from experience, and from what the runs so far have shown.

Somebody in a red stack is bad, but nobody knows who, so those whom red runs bind together are foreseen together; all
others one by one.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from msgspec import Struct

from mergeyard.domain.ids import BatchId, Ticket
from mergeyard.domain.line import Batch
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import RunStatus
from mergeyard.engine import holding, learning
from mergeyard.engine.remembering import once_for_the_same

SEEN_GREEN = 0.98
"""Whoever was part of a green run may still fail upon others."""
RED_FOR_NOTHING = 0.02
"""How often a run of none but good ones is red."""
MOST_SUSPECTS = 8
"""So many are weighed against each other, the nearest to the red run; whoever stands further ahead is as usual."""

Batches = frozenset[BatchId]
Outcomes = dict[Batches, float]
"""Who leaves, and how likely it is that exactly these do."""


class Prospect(Struct, frozen=True, eq=False):
    """Batches whose ends depend on each other, and on nobody else's."""

    batches: Batches
    outcomes: Outcomes

    def among(self, some: Batches) -> "Prospect":
        """Whatever becomes of the others."""
        if self.batches <= some:
            return self
        outcomes = Outcomes()
        for leaving, likelihood in self.outcomes.items():
            outcomes[leaving & some] = outcomes.get(leaving & some, 0.0) + likelihood
        return Prospect(self.batches & some, outcomes)


Foresight = Mapping[BatchId, Prospect]


@once_for_the_same("config", "line", "runs", "submissions", "experience")
def foresee(queue: Queue) -> Foresight:
    chances = _chances(queue)
    red = [_stack(queue, chances, run) for run in _runs(queue) if holding.failed_for_good(queue, run)]
    foreseen = {batch: _by_itself(batch, chance) for batch, chance in chances.items()}
    for suspects in _bound_together(tuple(chances), red):
        foreseen.update(dict.fromkeys(suspects, _weighed(suspects, chances, red)))
    return foreseen


def prospects(batches: tuple[Batch, ...], foreseen: Foresight) -> Iterator[Prospect]:
    """What may become of these, in parts that do not depend on each other."""
    some = frozenset(batch.id for batch in batches)
    return (prospect.among(some) for prospect in dict.fromkeys(foreseen[batch.id] for batch in batches))


def likelihood(queue: Queue, batch: Batch, run: Run, foreseen: Foresight) -> float:
    """That those ahead end as this run assumes."""
    ahead = holding.batches_ahead(queue, batch)
    left_out = left_out_by(run, ahead)
    parts = prospects(ahead, foreseen)
    return prod(prospect.outcomes.get(left_out & prospect.batches, 0.0) for prospect in parts)


def left_out_by(run: Run, batches: tuple[Batch, ...]) -> Batches:
    return frozenset(batch.id for batch in batches if not run.left_out.isdisjoint(batch.tickets))


def _chances(queue: Queue) -> dict[BatchId, float]:
    """Of each batch by itself, in the order of the line."""
    green = frozenset(
        member.ticket for run in _runs(queue) if run.status is RunStatus.SUCCEEDED for member in run.stack
    )
    return {batch.id: prod(_chance(queue, ticket, green) for ticket in batch.tickets) for batch in queue.line.batches}


def _chance(queue: Queue, ticket: Ticket, green: frozenset[Ticket]) -> float:
    return SEEN_GREEN if ticket in green else learning.chance(queue, queue.submissions[ticket])


def _runs(queue: Queue) -> Iterator[Run]:
    return (run for batch in queue.line.batches for run in queue.runs_of(batch))


def _stack(queue: Queue, chances: dict[BatchId, float], run: Run) -> Batches:
    """The nearest of the batches that it holds, without those that are known to be good if anybody else is left."""
    tickets = {member.ticket for member in run.stack}
    held = [batch.id for batch in queue.line.batches if not tickets.isdisjoint(batch.tickets)]
    doubtful = [batch for batch in held if chances[batch] < SEEN_GREEN**2]
    return frozenset((doubtful or held)[-MOST_SUSPECTS:])


def _bound_together(line: tuple[BatchId, ...], red: list[Batches]) -> list[tuple[BatchId, ...]]:
    groups = dict[BatchId, Batches]()
    for stack in red:
        together = stack.union(*(groups.get(batch, frozenset()) for batch in stack))
        groups.update(dict.fromkeys(together, together))
    bound = [sorted(group, key=line.index) for group in dict.fromkeys(groups.values())]
    return [tuple(group[-MOST_SUSPECTS:]) for group in bound]


def _by_itself(batch: BatchId, chance: float) -> Prospect:
    alone = frozenset({batch})
    return Prospect(alone, {frozenset(): chance, alone: 1 - chance})


def _weighed(suspects: tuple[BatchId, ...], chances: Mapping[BatchId, float], red: Iterable[Batches]) -> Prospect:
    outcomes: Outcomes = {frozenset(): 1.0}
    for batch in suspects:
        merges = {leaving: weight * chances[batch] for leaving, weight in outcomes.items()}
        leaves = {leaving | {batch}: weight * (1 - chances[batch]) for leaving, weight in outcomes.items()}
        outcomes = merges | leaves
    for stack in red:
        if stack <= frozenset(suspects):
            outcomes = {
                leaving: weight * (RED_FOR_NOTHING if leaving.isdisjoint(stack) else 1.0)
                for leaving, weight in outcomes.items()
            }
    total = sum(outcomes.values())
    return Prospect(frozenset(suspects), {leaving: weight / total for leaving, weight in outcomes.items()})
