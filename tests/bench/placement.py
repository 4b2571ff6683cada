"""Places one more batch behind 10,000 others: by the index of the line, and by asking every one of them."""

from collections.abc import Iterable, Iterator
from random import Random
from statistics import fmean
from time import thread_time_ns

from mergeyard.domain.ids import BatchId, Ticket
from mergeyard.domain.line import Batch, LaneIndex, Line
from mergeyard.domain.targets import Targets
from mergeyard.engine import lanes

IN_LINE = 10_000
DISTINCT = 200
"""How many sets of targets the batches share between them: 10,000 sets of 8,000 targets would take 5 GiB, these take
0.1. The sets are windows over one row of targets, half a window apart, so that each shares with its neighbours and
with nobody else. That is fair to the naive way: two sets with much in common would end its search at once."""


def measure(targets_each: int, placements: int, naive_placements: int) -> dict[str, float]:
    """Microseconds: the mean over many, because the index now and then pays for several claims at once."""
    siding = Siding(targets_each)
    queries, claims = zip(*(siding.place_one() for _ in range(placements)), strict=True)
    query, claim = fmean(queries), fmean(claims)
    naive = fmean(siding.ask_everybody() for _ in range(naive_placements))
    return {
        f"lane_query_us_{targets_each}_targets": query,
        f"lane_placement_us_{targets_each}_targets": query + claim,
        f"naive_placement_us_{targets_each}_targets": naive,
        f"lane_placement_speedup_{targets_each}_targets": naive / (query + claim),
    }


class Siding:
    """A line that holds 10,000 batches, and more that come."""

    def __init__(self, targets_each: int) -> None:
        self.dice = Random(targets_each)
        self.windows = tuple(_windows(targets_each))
        self.batches = list[Batch]()
        self.ahead = dict[BatchId, tuple[BatchId, ...]]()
        """Everybody who stands in the line. Whom they depend on is another question, which nobody asks here."""
        for _ in range(IN_LINE):
            self._append(self._next())
        self.index = LaneIndex((_last_claims(self.batches),))
        """As claims leave it when all of them have just been merged; claiming 10,000 times would take a minute."""

    def place_one(self) -> tuple[float, float]:
        """How long it took to find whom it depends on, and to claim its targets."""
        batch, line = self._next(), Line(ahead=self.ahead, index=self.index)
        begun = thread_time_ns()
        lanes.direct_predecessors(line, batch)
        found = thread_time_ns()
        self.index = lanes.claim(self.index, batch)
        claimed = thread_time_ns()
        self._append(batch)
        return (found - begun) / 1000, (claimed - found) / 1000

    def ask_everybody(self) -> float:
        """`isdisjoint` is the fastest way to ask: it builds no set and stops at the first shared target."""
        mine = self._next().targets.names
        others = [(other.id, other.targets.names) for other in self.batches[-IN_LINE:]]
        begun = thread_time_ns()
        _ = {other for other, theirs in others if not mine.isdisjoint(theirs)}
        return (thread_time_ns() - begun) / 1000

    def _next(self) -> Batch:
        number = len(self.batches) + 1
        return Batch(id=BatchId(number), tickets=(Ticket(number),), targets=self.dice.choice(self.windows))

    def _append(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.ahead[batch.id] = ()


def _windows(size: int) -> Iterator[Targets]:
    step = size // 2
    row = [f"//area{number // 100}/module{number}" for number in range((DISTINCT + 1) * step)]
    for first in range(0, DISTINCT * step, step):
        yield Targets(frozenset(row[first : first + size]))


def _last_claims(batches: Iterable[Batch]) -> dict[str, BatchId]:
    """Only the last batch of each window can be the last to claim anything."""
    last = {batch.targets: batch for batch in batches}.values()
    return {name: batch.id for batch in sorted(last, key=lambda batch: batch.id) for name in batch.targets.names}
