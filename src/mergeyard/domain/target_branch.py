"""What is known of the branch that a queue targets."""

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct, field

from mergeyard.domain.ids import Sha, Ticket
from mergeyard.domain.landing import Landed
from mergeyard.domain.required import Required

Proof = frozenset[Ticket]
"""Upon which pull requests a commit was seen green; empty: by itself."""


class TargetBranch(Struct, frozen=True, kw_only=True, dict=True):
    name: str
    tip: Sha | None = None
    """None: the branch does not exist."""
    lost: Sha | None = None
    """The last tip that there was, while there is none."""
    history: tuple[Landed, ...] = ()
    """From the oldest base that still matters to the tip, unbroken by anybody else's push."""
    required: Required = Required()
    proofs: Mapping[Sha, tuple[Proof, ...]] = field(default_factory=dict[Sha, tuple[Proof, ...]])
    broken: frozenset[Sha] = frozenset()
    """Commits that failed their own tests."""
    removed: frozenset[Sha] = frozenset()
    """Commits that somebody took off the branch: they never come back through us."""
    doubted: tuple[str, ...] = ()
    """The names of mismatches that the queue paused for, the latest last: it pauses for none of them again."""
    seen: int = 0
    """The turn in which its tip was last recorded."""
    look: bool = False
    """It must be read again."""

    @property
    def last_tip(self) -> Sha | None:
        return self.tip or self.lost

    @cached_property
    def places(self) -> Mapping[Sha, int]:
        """Where in the history each commit stands."""
        return {landed.commit: place for place, landed in enumerate(self.history)}

    @cached_property
    def landed(self) -> frozenset[Ticket | None]:
        return frozenset(landed.ticket for landed in self.history)

    @cached_property
    def claims(self) -> Mapping[str, tuple[int, ...]]:
        """Where in the history each target was impacted."""
        claims = dict[str, tuple[int, ...]]()
        for place, landed in enumerate(self.history):
            for name in landed.targets.names:
                claims[name] = (*claims.get(name, ()), place)
        return claims

    @cached_property
    def claims_of_everything(self) -> tuple[int, ...]:
        return tuple(place for place, landed in enumerate(self.history) if landed.targets.everything)
