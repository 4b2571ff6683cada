"""How long a run of each takes: as long as its own runs took, else as long as runs of this queue usually do."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from mergeyard.domain.instants import MINUTE
from mergeyard.sim.replaying.history import History, Place, Tried

NOBODY_KNOWS = 30 * MINUTE
"""Where no run ever ended."""


class Lengths(Struct, frozen=True):
    of: tuple[int, ...]
    """By the place of an arrival, in milliseconds."""
    usual: int
    unknown: frozenset[Place]
    """Those that no run was ever about that ended by itself."""

    def longest(self, tested: Sequence[Place]) -> int:
        return max((self.of[place] for place in tested), default=self.usual)


def measure(history: History, bad: frozenset[Place]) -> Lengths:
    """What is bad takes as long as its red runs, and what is good as its green ones: red ones may end early."""
    about = defaultdict[Place, list[Tried]](list)
    for run in history.runs:
        for place in run.tested:
            about[place].append(run)
    greens = [run.length for run in history.runs if run.decided and not run.red and run.tests]
    usual = _middle(greens or [run.length for run in history.runs if run.decided]) or NOBODY_KNOWS
    known = [_own(about[place], red=place in bad) for place in range(len(history.arrivals))]
    return Lengths(
        of=tuple(own or max(usual, *_stopped(about[place])) for place, own in enumerate(known)),
        usual=usual,
        unknown=frozenset(place for place, own in enumerate(known) if own is None),
    )


def _own(runs: Sequence[Tried], *, red: bool) -> int | None:
    """Best of all those that were about it alone."""
    decided = [run for run in runs if run.decided]
    fitting = [run for run in decided if run.red == red] or decided
    return _middle([run.length for run in fitting if run.tests == 1] or [run.length for run in fitting])


def _stopped(runs: Sequence[Tried]) -> list[int]:
    """It would have taken longer than that: nobody knows by how much, so twice as long is taken."""
    return [0, *(2 * run.length for run in runs if not run.decided)]


def _middle(lengths: Sequence[int]) -> int | None:
    return round(median(lengths)) if lengths else None
