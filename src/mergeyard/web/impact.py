"""Impacted targets as pages list them: the first few, and how many more there are."""

from heapq import nsmallest

from msgspec import Struct

from mergeyard.domain.targets import Targets

MOST_LISTED = 50


class Listed(Struct, frozen=True):
    names: tuple[str, ...]
    more: int
    everything: bool

    @property
    def nothing(self) -> bool:
        return not self.everything and not self.names


def listed(targets: Targets, most: int = MOST_LISTED) -> Listed:
    if targets.everything:
        return Listed((), 0, everything=True)
    return Listed(tuple(nsmallest(most, targets.names)), max(0, len(targets.names) - most), everything=False)
