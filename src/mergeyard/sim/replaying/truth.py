"""The truth of a replay: what every run would have said, and after how long. What really ran is told as it was."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from msgspec import Struct

from mergeyard.sim.racing.chances import chance
from mergeyard.sim.replaying.blaming import Blamed, blame, broken_bases
from mergeyard.sim.replaying.history import End, History, Place
from mergeyard.sim.replaying.lengths import Lengths, measure

Stack = tuple[Place, ...]
FLAKE, TIME = 3, 4
"""The questions that chance answers about a run which never ran."""
JITTER = 0.1
"""Drawn anew, such a run takes up to half of this share longer or shorter than expected."""


class Seen(Struct, frozen=True):
    """A run that really was."""

    length: int
    decided: bool
    surprising: bool
    """It said the opposite of what the rules say."""


class Truth(Struct, frozen=True, kw_only=True):
    blamed: Blamed
    lengths: Lengths
    seen: Mapping[tuple[Stack, int], tuple[Seen, ...]]
    """By the stack and how many of it were tested, in the order in which they started."""
    flakes: float
    """The share of runs that were red for no reason."""
    unjudged: frozenset[Place]
    """Nobody knows whether they are good; they are taken to be."""
    broken_bases: int
    draw: int = 0
    """What chance answers differs from draw to draw; in the first one every run takes as long as expected."""

    def knows(self, stack: Stack, tests: int, asked: int) -> bool:
        return self._seen(stack, tests, asked) is not None

    def is_green(self, stack: Stack, tests: int, asked: int, by_rule: bool) -> bool:
        """`asked` says how often this very stack was tested before, `by_rule` what the rules say of its contents."""
        seen = self._seen(stack, tests, asked)
        if seen is not None and seen.decided:
            return by_rule != seen.surprising
        return by_rule and chance(FLAKE, self.draw, stack, tests, asked) >= self.flakes

    def length(self, stack: Stack, tests: int, asked: int) -> int:
        """One that was stopped would have taken longer than it did."""
        seen = self._seen(stack, tests, asked)
        if seen is not None and seen.decided:
            return seen.length
        jitter = JITTER * (chance(TIME, self.draw, stack, tests, asked) - 0.5) if self.draw else 0
        expected = round(self.lengths.longest(stack[len(stack) - tests :]) * (1 + jitter))
        return expected if seen is None else max(expected, seen.length + 1)

    def is_red_by_rule(self, stack: Stack, merged: Callable[[Place], bool]) -> bool:
        return self.blamed.rules.make_red(stack, merged)

    def _seen(self, stack: Stack, tests: int, asked: int) -> Seen | None:
        known = self.seen.get((stack, tests), ())
        return known[asked] if asked < len(known) else None


def find_out(history: History) -> Truth:
    blamed, broken = blame(history), broken_bases(history)
    seen, reds, decided = defaultdict[tuple[Stack, int], list[Seen]](list), 0, 0
    for run in history.runs:
        sound = run.decided and run.base not in broken
        surprising = sound and run.whole and blamed.rules.expect_red(history, run) != run.red
        decided += sound
        reds += surprising and run.red
        if run.whole:
            seen[run.stack, run.tests].append(Seen(run.length, run.decided, surprising))
    return Truth(
        blamed=blamed,
        lengths=measure(history, blamed.rules.bad),
        seen={stack: tuple(runs) for stack, runs in seen.items()},
        flakes=reds / decided if decided else 0.0,
        unjudged=_unjudged(history, blamed),
        broken_bases=len(broken),
    )


def _unjudged(history: History, blamed: Blamed) -> frozenset[Place]:
    """They left before any run said something about them."""
    green = {place for run in history.runs if run.decided and not run.red for place in run.stack}
    left = (End.LEFT, End.STAYED)
    gone = {place for place, arrival in enumerate(history.arrivals) if arrival.end in left}
    return frozenset(gone - green - blamed.rules.bad)
