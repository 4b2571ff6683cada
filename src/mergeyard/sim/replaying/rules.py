"""When a run is red, as far as there is a rule for it: it holds a bad one, or two that break together."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from mergeyard.sim.replaying.history import History, Place, Tried


class Rules(Struct, frozen=True, kw_only=True):
    bad: frozenset[Place] = frozenset()
    conflicts: Mapping[Place, frozenset[Place]] = field(default_factory=dict[Place, frozenset[Place]])
    """Of each, those that it breaks with; either alone is good."""

    def make_red(self, stack: Sequence[Place], merged: Callable[[Place], bool]) -> bool:
        """`merged` says of one that is not in the stack whether it is part of what the stack stands upon."""
        beneath = set[Place]()
        for member in stack:
            others = self.conflicts.get(member, ())
            if member in self.bad or any(other in beneath or merged(other) for other in others):
                return True
            beneath.add(member)
        return False

    def expect_red(self, history: History, run: Tried) -> bool:
        """Of a run that really was."""
        return self.make_red(run.stack, lambda other: history.was_merged(other, run.started_at))
