"""A landing: from the choice of what lands until its outcome is read from the host."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.config import LandingMethod
from mergeyard.domain.ids import RunId, Sha, Ticket
from mergeyard.domain.runs import Member, Step
from mergeyard.domain.targets import ALL, Targets


class Phase(StrEnum):
    COMPOSING = "composing"
    """The tested contents are being put on a tip that moved."""
    READING = "reading"
    """Its pull requests are being read once more."""
    INTENDED = "intended"
    """The intent is saved: from here only the host's answer counts."""


class Landing(Struct, frozen=True, kw_only=True):
    number: int
    phase: Phase
    run: RunId | None
    """The run that verified it; none for a direct merge."""
    members: tuple[Member, ...]
    expected: Sha
    """The commit that the target must be when it moves."""
    base: Sha
    """What the tested chain stands on."""
    tested: tuple[Step, ...]
    """What every member was tested as."""
    steps: tuple[Step, ...] = ()
    """What every member becomes on the target; unknown while composing."""
    method: LandingMethod
    composed: bool = False
    read: bool = False
    """Its pull requests were read since it was chosen, and nothing was found against it."""
    grown: bool = False
    """More passed while a smaller one was read, and it took its place."""
    tested_tip: Sha | None = None
    """The tip of the test branch, which the same push deletes."""

    @property
    def tickets(self) -> tuple[Ticket, ...]:
        return tuple(member.ticket for member in self.members)

    @property
    def intended(self) -> bool:
        return self.phase is Phase.INTENDED


class Landed(Struct, frozen=True):
    """A commit of the target's history since the last time that somebody else moved it."""

    commit: Sha
    tree: Sha | None
    ticket: Ticket | None = None
    """None: the commit on which this history begins."""
    targets: Targets = ALL
