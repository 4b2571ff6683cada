"""Undecided predecessors: changes that arrived earlier and touch a common part."""

from collections import defaultdict

from benchmarks.policy_race.policy import Change
from mergeyard.simulation.engine_driver import ChangeNumber


class Predecessors:
    def __init__(self) -> None:
        self.undecided: dict[ChangeNumber, Change] = {}
        self.touching = defaultdict[int, dict[ChangeNumber, None]](dict)
        self.ahead: dict[ChangeNumber, tuple[ChangeNumber, ...]] = {}
        """For every undecided change its undecided predecessors, in the order in which they arrived."""
        self.after = defaultdict[ChangeNumber, list[ChangeNumber]](list)

    def add(self, change: Change) -> None:
        ahead = sorted({other for part in change.parts for other in self.touching[part]})
        self.undecided[change.number] = change
        self.ahead[change.number] = tuple(ahead)
        for other in ahead:
            self.after[other].append(change.number)
        for part in change.parts:
            self.touching[part][change.number] = None

    def remove(self, number: ChangeNumber) -> list[ChangeNumber]:
        """Returns the changes after it, which have one predecessor less now."""
        for part in self.undecided.pop(number).parts:
            del self.touching[part][number]
        del self.ahead[number]
        after = [other for other in self.after.pop(number, ()) if other in self.undecided]
        for other in after:
            self.ahead[other] = tuple(each for each in self.ahead[other] if each != number)
        return after
