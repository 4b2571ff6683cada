"""Finds out who was bad, and who broke with whom, from what really happened to each.

Whoever failed for good is bad, unless it was seen green as well. Then whatever the red run held beyond the green one
broke with it; and if that is nothing, or if its very head merged later, the red run was a flake. Whoever left by hand
is bad if a red run blames it and nobody else can be blamed.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from mergeyard.domain.ids import Sha
from mergeyard.sim.replaying.history import End, History, Place, Tried
from mergeyard.sim.replaying.rules import Rules

Pair = tuple[Place, Place]


class Blamed(Struct, frozen=True):
    rules: Rules
    doubtful: frozenset[Place] = frozenset()
    """They break with one of several, and nobody knows with which."""


def blame(history: History) -> Blamed:
    broken = broken_bases(history)
    runs = [run for run in history.runs if run.decided and run.base not in broken]
    greens, reds = defaultdict[Place, list[Tried]](list), defaultdict[Place, list[Tried]](list)
    for run in runs:
        for place in run.tested if run.red else run.stack:
            (reds if run.red else greens)[place].append(run)
    failed = _failed(history)
    bad = frozenset(place for place in failed if not greens[place])
    partners = {
        place: _beyond(history, place, [run for run in reds[place] if bad.isdisjoint(run.stack)], greens[place])
        for place in failed
        if place not in bad
    }
    pairs = {(place, others[-1]) for place, others in partners.items() if others}
    rules = Rules(bad=bad, conflicts=_by_each(pairs))
    left = frozenset(_blamed_alone(history, runs, greens, rules))
    doubtful = frozenset(place for place, others in partners.items() if len(others) > 1)
    return Blamed(Rules(bad=bad | left, conflicts=rules.conflicts), doubtful)


def broken_bases(history: History) -> frozenset[Sha]:
    """The target failed its own tests there, so a red run upon it says nothing about anybody."""
    return frozenset(run.base for run in history.runs if run.red and not run.stack)


def _failed(history: History) -> list[Place]:
    """For good, and no such head ever merged."""
    merged = {(each.number, each.head) for each in history.arrivals if each.end is End.MERGED}
    return [
        place
        for place, each in enumerate(history.arrivals)
        if each.end is End.FAILED and (each.number, each.head) not in merged
    ]


def _beyond(history: History, place: Place, reds: Sequence[Tried], greens: Sequence[Tried]) -> list[Place]:
    """Who was part of what it stood upon in every red run, and in no green one: whoever came into it last is last."""
    if not reds:
        return []
    fine = {other for green in greens for other in green.stack}
    latest = max(green.started_at for green in greens)
    held = [set(_beneath(history, place, red)) for red in reds]
    return [
        other
        for other in _beneath(history, place, reds[-1])
        if other not in fine and not history.was_merged(other, latest) and all(other in each for each in held)
    ]


def _beneath(history: History, place: Place, run: Tried) -> list[Place]:
    merged = [other for other in range(len(history.arrivals)) if history.was_merged(other, run.started_at)]
    merged.sort(key=lambda other: history.arrivals[other].ended_at)
    return [*merged, *run.stack[: run.stack.index(place)]]


def _by_each(pairs: set[Pair]) -> Mapping[Place, frozenset[Place]]:
    found = defaultdict[Place, set[Place]](set)
    for one, other in pairs:
        found[one].add(other)
        found[other].add(one)
    return {place: frozenset(others) for place, others in found.items()}


def _blamed_alone(
    history: History, runs: Sequence[Tried], greens: Mapping[Place, Sequence[Tried]], rules: Rules
) -> Iterator[Place]:
    for run in runs:
        if not run.red or not run.whole or rules.expect_red(history, run):
            continue
        suspects = [place for place in run.stack if history.arrivals[place].end in (End.LEFT, End.STAYED)]
        if len(suspects) == 1 and not greens.get(suspects[0]):
            yield suspects[0]
