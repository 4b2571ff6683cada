"""The truth about a trace: who is bad, who breaks with whom, and how long each takes. Only the race itself asks it."""

from collections.abc import Mapping

from msgspec import Struct, field

from mergeyard.sim.racing.chances import chance
from mergeyard.sim.racing.policy import Number, Trial
from mergeyard.sim.racing.workload import MEDIAN_BUILD

JITTER = 0.1
"""A run takes up to half of this share longer or shorter than the change itself would."""
TIME, FLAKE = 1, 2
"""The questions that chance answers about a run."""


class Truth(Struct, frozen=True, kw_only=True):
    durations: tuple[int, ...]
    """By the change's number, in milliseconds."""
    bad: frozenset[Number] = frozenset()
    conflicts: Mapping[Number, frozenset[Number]] = field(default_factory=dict[Number, frozenset[Number]])
    """Of each, those that it breaks with; either alone is good."""
    flakes: float = 0.0
    seed: int = 0

    def is_green(self, trial: Trial, merged: Mapping[Number, int], asked: int) -> bool:
        """`merged` says at which place each has merged, `asked` how often this very stack was tested before."""
        base = len(merged) if trial.base is None else trial.base
        beneath = set[Number]()
        for member in trial.stack:
            if member in self.bad or any(
                other in beneath or merged.get(other, base) < base for other in self.conflicts.get(member, ())
            ):
                return False
            beneath.add(member)
        return self.flakes == 0 or chance(FLAKE, self.seed, trial.stack, asked) >= self.flakes

    def duration(self, trial: Trial, asked: int) -> int:
        tested = trial.stack[len(trial.stack) - trial.tests :]
        longest = max((self.durations[member] for member in tested), default=MEDIAN_BUILD)
        return round(longest * (1 + JITTER * (chance(TIME, self.seed, trial.stack, asked) - 0.5)))

    def breaks_upon(self, number: Number, merged: Mapping[Number, int]) -> bool:
        """Whether it is right not to merge this one upon those that have merged."""
        return number in self.bad or any(other in merged for other in self.conflicts.get(number, ()))
