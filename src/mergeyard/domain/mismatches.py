"""A mismatch: something about a landing that is not as it was recorded, found by whoever compares the two."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, Sha


class Doubt(StrEnum):
    MISSING = "missing"
    """The target lacks what landed, and nobody was seen to take it off."""
    NOWHERE = "nowhere"
    """It is said to have landed, and no such commit exists."""
    OTHER_TREE = "other_tree"
    """Its contents are not those that were tested."""
    OTHER_PARENT = "other_parent"
    """It stands on something else than it was tested upon."""
    OTHER_HEAD = "other_head"
    """It brings another head than the one that was tested."""
    UNTESTED = "untested"
    """No run that succeeded vouches for it."""
    NOT_PASSED = "not_passed"
    """A required status was not passed on the very commit that was tested."""
    LANDED_TWICE = "landed_twice"
    """The target holds it more than once."""
    ALTERED = "altered"
    """A copy with other contents took its place."""
    UNRECORDED = "unrecorded"
    """A commit calls itself a landing of ours, and no record knows it."""
    OUT_OF_ORDER = "out_of_order"
    """The target holds landings in another order than they were recorded."""


class Mismatch(Struct, frozen=True, kw_only=True):
    doubt: Doubt
    commit: Sha | None
    number: PrNumber
    words: str
    """What was found, and what to do about it."""

    @property
    def name(self) -> str:
        """The same whenever the same is found again, whatever the words for it are by then."""
        return f"{self.doubt} #{self.number} {self.commit}"
