"""What a pull request impacts: named targets, or ALL of them."""

from collections.abc import Iterable

from msgspec import Struct


class Targets(Struct, frozen=True):
    names: frozenset[str] = frozenset()
    everything: bool = False

    def share_with(self, other: "Targets") -> bool:
        """ALL shares with everybody, also with those that impact nothing."""
        return self.everything or other.everything or not self.names.isdisjoint(other.names)


ALL = Targets(everything=True)
NOTHING = Targets()


def named(*names: str) -> Targets:
    return Targets(frozenset(names))


def union(many: Iterable[Targets]) -> Targets:
    parts = tuple(many)
    if any(part.everything for part in parts):
        return ALL
    return Targets(frozenset[str]().union(*(part.names for part in parts)))
