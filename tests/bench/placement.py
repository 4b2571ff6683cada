"""Measures the placement of one more batch after 10,000 others: with the lane index, and by comparing it with each."""

from collections.abc import Iterable, Iterator
from random import Random
from statistics import fmean
from time import thread_time_ns

from mergeyard.domain.ids import BatchId, SubmissionId
from mergeyard.domain.pull_requests import ImpactedTargets
from mergeyard.domain.queue import ActiveBatches, Batch, LaneIndex
from mergeyard.engine import lanes

ACTIVE_BATCHES = 10_000
DISTINCT_SETS = 200
"""How many sets of targets the batches have: 10,000 sets of 8,000 targets would take 5 GiB, these take 0.1. The sets
are windows over one list of targets, half a window apart, so that each overlaps only with the two next to it. That is
fair to the naive comparison: two sets with many common targets would end it at once."""


def measure(targets_each: int, placements: int, naive_placements: int) -> dict[str, float]:
    """Microseconds, as means: the index sometimes merges several claims at once."""
    batches = PlacedBatches(targets_each)
    queries, claims = zip(*(batches.place_one() for _ in range(placements)), strict=True)
    query, claim = fmean(queries), fmean(claims)
    naive = fmean(batches.compare_with_all() for _ in range(naive_placements))
    return {
        f"lane_query_us_{targets_each}_targets": query,
        f"lane_placement_us_{targets_each}_targets": query + claim,
        f"naive_placement_us_{targets_each}_targets": naive,
        f"lane_placement_speedup_{targets_each}_targets": naive / (query + claim),
    }


class PlacedBatches:
    """10,000 active batches, to which more are added."""

    def __init__(self, targets_each: int) -> None:
        self.rng = Random(targets_each)
        self.windows = tuple(_windows(targets_each))
        self.batches = list[Batch]()
        self.ahead = dict[BatchId, tuple[BatchId, ...]]()
        """All active batches. Their dependencies are left empty: they are not used here."""
        for _ in range(ACTIVE_BATCHES):
            self._append(self._next())
        self.index = LaneIndex((_last_claims(self.batches),))
        """As after 10,000 claims when all segments were just merged; claiming 10,000 times would take a minute."""

    def place_one(self) -> tuple[float, float]:
        """Microseconds of finding the batches that it depends on, and of claiming its targets."""
        batch, active = self._next(), ActiveBatches(ahead=self.ahead, index=self.index)
        started = thread_time_ns()
        lanes.direct_predecessors(active, batch)
        found = thread_time_ns()
        self.index = lanes.add_claims(self.index, batch)
        claimed = thread_time_ns()
        self._append(batch)
        return (found - started) / 1000, (claimed - found) / 1000

    def compare_with_all(self) -> float:
        """`isdisjoint` is the fastest comparison: it builds no set and stops at the first common target."""
        names = self._next().impacted_targets.names
        others = [(other.id, other.impacted_targets.names) for other in self.batches[-ACTIVE_BATCHES:]]
        started = thread_time_ns()
        _ = {other for other, other_names in others if not names.isdisjoint(other_names)}
        return (thread_time_ns() - started) / 1000

    def _next(self) -> Batch:
        number = len(self.batches) + 1
        return Batch(
            id=BatchId(number), submission_ids=(SubmissionId(number),), impacted_targets=self.rng.choice(self.windows)
        )

    def _append(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.ahead[batch.id] = ()


def _windows(size: int) -> Iterator[ImpactedTargets]:
    step = size // 2
    names = [f"//area{number // 100}/module{number}" for number in range((DISTINCT_SETS + 1) * step)]
    for first in range(0, DISTINCT_SETS * step, step):
        yield ImpactedTargets(frozenset(names[first : first + size]))


def _last_claims(batches: Iterable[Batch]) -> dict[str, BatchId]:
    """Only the last batch of each window can be the last to claim a target."""
    last = {batch.impacted_targets: batch for batch in batches}.values()
    return {
        name: batch.id for batch in sorted(last, key=lambda batch: batch.id) for name in batch.impacted_targets.names
    }
