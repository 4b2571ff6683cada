"""Who stands ahead of whom: those undecided that arrived earlier and touch a common part."""

from collections import defaultdict

from mergeyard.sim.racing.policy import Change, Number


class Neighbours:
    def __init__(self) -> None:
        self.undecided: dict[Number, Change] = {}
        self.touching = defaultdict[int, dict[Number, None]](dict)
        self.ahead: dict[Number, tuple[Number, ...]] = {}
        """Of every undecided one, its undecided ones ahead, in the order of arrival."""
        self.behind = defaultdict[Number, list[Number]](list)

    def add(self, change: Change) -> None:
        ahead = sorted({other for part in change.parts for other in self.touching[part]})
        self.undecided[change.number] = change
        self.ahead[change.number] = tuple(ahead)
        for other in ahead:
            self.behind[other].append(change.number)
        for part in change.parts:
            self.touching[part][change.number] = None

    def remove(self, number: Number) -> list[Number]:
        """Those that stood behind it, and have one less ahead now."""
        for part in self.undecided.pop(number).parts:
            del self.touching[part][number]
        del self.ahead[number]
        behind = [other for other in self.behind.pop(number, ()) if other in self.undecided]
        for other in behind:
            self.ahead[other] = tuple(each for each in self.ahead[other] if each != number)
        return behind
