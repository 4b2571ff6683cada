"""A trace: who arrives when with what, and the truth about it, drawn from a seed and the same for every policy."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from random import Random

from msgspec import Struct

from mergeyard.domain.instants import HOUR
from mergeyard.sim.racing.chances import chance
from mergeyard.sim.racing.policy import Change, Number
from mergeyard.sim.racing.truth import Truth
from mergeyard.sim.racing.workload import LONGEST_BUILD, MEDIAN_BUILD, SHORTEST_BUILD, SIGMA, Workload

AUTHORS = 40
SPREAD_OF_AUTHORS = 0.5
"""Of the logarithm of how often their changes are bad, around the mean of all."""
MEDIAN_SIZE, SPREAD_OF_SIZES = 60, 1.0
WEIGHT_OF_SIZE = 0.25
"""A change sixteen times as large is bad twice as often."""
WORST = 0.95


class Trace(Struct, frozen=True, kw_only=True):
    workload: Workload
    seed: int
    changes: tuple[Change, ...]
    truth: Truth


def draw(workload: Workload, seed: int) -> Trace:
    dice = Random(f"trace {seed}")
    authors = _authors(dice)
    changes = tuple(_changes(workload, dice, list(authors)))
    truth = Truth(
        seed=seed,
        flakes=workload.flakes,
        bad=_bad(workload, changes, authors, dice),
        durations=tuple(_duration(dice) for _ in changes),
        conflicts=_conflicts(workload, changes, seed),
    )
    return Trace(workload=workload, seed=seed, changes=changes, truth=truth)


def _authors(dice: Random) -> dict[str, float]:
    """Each with how often theirs are bad, compared with the others; the first ones write the most."""
    return {f"author{place}": dice.lognormvariate(0, SPREAD_OF_AUTHORS) for place in range(1, AUTHORS + 1)}


def _changes(workload: Workload, dice: Random, authors: list[str]) -> Iterator[Change]:
    shares = [1 / place for place in range(1, len(authors) + 1)]
    at = 0.0
    for number in count():
        at += dice.expovariate(workload.rate / HOUR)
        if at >= workload.arriving:
            return
        touched = 2 if dice.random() < workload.wide else 1
        (author,) = dice.choices(authors, shares)
        yield Change(
            number=number,
            at=round(at),
            parts=frozenset(dice.sample(range(workload.parts), min(touched, workload.parts))),
            author=author,
            size=max(1, round(MEDIAN_SIZE * dice.lognormvariate(0, SPREAD_OF_SIZES))),
        )


def _bad(workload: Workload, changes: tuple[Change, ...], authors: dict[str, float], dice: Random) -> frozenset[Number]:
    if not changes:
        return frozenset()
    weights = [authors[change.author] * (change.size / MEDIAN_SIZE) ** WEIGHT_OF_SIZE for change in changes]
    share = (1 - workload.success) * len(weights) / sum(weights)
    often = (min(max(WORST, 1 - workload.success), weight * share) for weight in weights)
    return frozenset(change.number for change, odds in zip(changes, often, strict=True) if dice.random() < odds)


def _duration(dice: Random) -> int:
    return round(min(LONGEST_BUILD, max(SHORTEST_BUILD, MEDIAN_BUILD * dice.lognormvariate(0, SIGMA))))


def _conflicts(workload: Workload, changes: tuple[Change, ...], seed: int) -> dict[Number, frozenset[Number]]:
    found = defaultdict[Number, set[Number]](set)
    near = defaultdict[int, list[Change]](list)
    for change in changes:
        for part in change.parts:
            near[part] = [other for other in near[part] if change.at - other.at <= MEDIAN_BUILD]
            for other in near[part]:
                if chance(seed, other.number, change.number) < workload.conflict:
                    found[change.number].add(other.number)
                    found[other.number].add(change.number)
            near[part].append(change)
    return {number: frozenset(others) for number, others in found.items()}
