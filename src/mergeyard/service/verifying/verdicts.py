"""What comes of comparing landings with the target: a verdict on each, and every mismatch."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber, RunId, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.mismatches import Mismatch
from mergeyard.service.verifying.recorded import Form


class Verdict(StrEnum):
    AS_TESTED = "as_tested"
    DIFFERS = "differs"
    TAKEN_OFF = "taken_off"
    """Somebody removed it from the target, and the queue saw that."""
    NOT_COMPARABLE = "not_comparable"
    """What was tested is not at hand here any more."""


class Verified(Struct, frozen=True, kw_only=True):
    """One landing that was looked at."""

    number: PrNumber
    commit: Sha | None
    run: RunId | None
    landed_at: Instant
    form: Form
    verdict: Verdict


class Report(Struct, frozen=True, kw_only=True):
    tip: Sha | None = None
    """Where the target was; None: there was none, or nothing to compare with it."""
    landings: tuple[Verified, ...] = ()
    """Oldest first."""
    mismatches: tuple[Mismatch, ...] = ()
    notes: tuple[str, ...] = ()
    """What is worth knowing, and no reason to stop."""

    def agreeing_with(self, earlier: "Report") -> "Report":
        """Only what was found both times: in between somebody may have been pushing."""
        found = {mismatch.name for mismatch in earlier.mismatches}
        return replace(self, mismatches=tuple(each for each in self.mismatches if each.name in found))

    def verdict(self, landing: Verified) -> Verdict:
        doubted = {(mismatch.number, mismatch.commit) for mismatch in self.mismatches}
        return Verdict.DIFFERS if (landing.number, landing.commit) in doubted else landing.verdict
