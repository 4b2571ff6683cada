"""What one draw takes to be true: who is bad, and how long every run takes. It knows no more than the queue does."""

from collections.abc import Iterator, Sequence
from math import exp, prod, sqrt
from random import Random

from mergeyard.domain.durations import cut_short, whole
from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.engine import foreseeing, learning

UNSURE = 0.5
"""How far the usual length of runs may be off, in logarithms, where only one is known; the more, the less."""

Tested = tuple[Ticket, ...]


class Beliefs:
    def __init__(self, queue: Queue, now: Instant, dice: Random) -> None:
        green = whole(queue.durations)
        off = dice.lognormvariate(0, UNSURE / sqrt(len(green)))
        self._dice = dice
        self._lengths = [round(length * off) for length in green]
        self._known: dict[Tested, int] = {}
        # The quick ones end first: without those that are under way or were stopped, runs would look too quick.
        self._lengths += [self._longer_than(took) for took in cut_short(queue.durations)]
        for run in queue.runs.values():
            if run.status is RunStatus.IN_PROGRESS:
                self._known[_tested(run)] = self._longer_than(_elapsed(run, now))
        self._lengths += self._known.values()
        self.bad = frozenset(_bad(queue, dice))

    def length(self, run: Run) -> int:
        """In milliseconds. Whoever is tested again takes as long as before."""
        tested = _tested(run)
        if tested not in self._known:
            self._known[tested] = self._dice.choice(self._lengths)
        return self._known[tested]

    def left(self, run: Run, now: Instant) -> int:
        """Of one that is under way."""
        return max(0, self.length(run) - _elapsed(run, now))

    def _longer_than(self, elapsed: int) -> int:
        """One that took so long already is none of the shorter ones. If all are, nobody knows."""
        longer = [length for length in self._lengths if length > elapsed]
        return self._dice.choice(longer) if longer else round(elapsed * exp(abs(self._dice.gauss(0, UNSURE))))


def _elapsed(run: Run, now: Instant) -> int:
    return 0 if run.started_at is None else max(0, now - run.started_at - run.outages)


def _tested(run: Run) -> Tested:
    return tuple(member.ticket for member in run.tested)


def _bad(queue: Queue, dice: Random) -> Iterator[Ticket]:
    for prospect in dict.fromkeys(foreseeing.foresee(queue).values()):
        (leaving,) = dice.choices(list(prospect.outcomes), list(prospect.outcomes.values()))
        for batch in sorted(leaving):
            yield from _some(queue, _unproven(queue, queue.line.by_id[batch].tickets), dice)
    for bisection in queue.bisections:
        yield from _some(queue, bisection.members, dice)
    for bucket in (*queue.waiting.values(), queue.held):
        yield from (ticket for ticket in bucket if dice.random() >= _chance(queue, ticket))


def _unproven(queue: Queue, tickets: Sequence[Ticket]) -> Sequence[Ticket]:
    """Whoever passed merges, whatever is foreseen."""
    return [ticket for ticket in tickets if queue.submissions[ticket].state is not PrState.TESTS_PASSED]


def _some(queue: Queue, tickets: Sequence[Ticket], dice: Random) -> Iterator[Ticket]:
    """At least one of them: as if all were drawn again and again, until one is bad."""
    chances, found = [_chance(queue, ticket) for ticket in tickets], False
    for place, ticket in enumerate(tickets):
        all_good = 0.0 if found else prod(chances[place:])
        if dice.random() * (1 - all_good) < 1 - chances[place]:
            found = True
            yield ticket


def _chance(queue: Queue, ticket: Ticket) -> float:
    return learning.chance(queue, queue.submissions[ticket])
