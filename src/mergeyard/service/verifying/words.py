"""Every word about a mismatch: what was found, and what to do about it."""

from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.mismatches import Doubt, Mismatch
from mergeyard.service.verifying.recorded import Recorded

SENTENCES: dict[Doubt, str] = {
    Doubt.MISSING: "{it} landed and the target lacks it, though nobody was seen to take it off: find out who moved the "
    "branch, and put it back unless somebody meant it.",
    Doubt.NOWHERE: "{it} is recorded as merged, but not as what: look for it on the target.",
    Doubt.OTHER_TREE: "{it} does not hold what was tested as {tested}: compare the two.",
    Doubt.OTHER_PARENT: "{it} does not stand on {upon}, upon which it was tested: test the target, and compare.",
    Doubt.OTHER_HEAD: "{it} was tested with another head than {head}, which landed: compare the two.",
    Doubt.UNTESTED: "{it} landed without a run that succeeded: test the target as it is.",
    Doubt.NOT_PASSED: "{it} landed, but {statuses} had not passed on {tip}: run it there.",
    Doubt.LANDED_TWICE: "{it} is on the target a second time, as {copy}: take one off, unless somebody meant it.",
    Doubt.ALTERED: "{it} was replaced by {copy}, which does not hold what was tested: compare the two.",
    Doubt.UNRECORDED: "{copy} calls itself a landing of {it}, and no record knows it: find out who pushed it.",
    Doubt.OUT_OF_ORDER: "{it} stands beneath what had landed before it: find out who rewrote the target.",
}


def mismatch(doubt: Doubt, landing: Recorded, *, statuses: tuple[str, ...] = ()) -> Mismatch:
    """Something about this landing."""
    number, commit, tested = landing.stay.number, landing.commit, landing.tested
    exam = landing.stay.exam
    words = SENTENCES[doubt].format(
        it=_named(number, commit),
        tested=short(tested.commit if tested is not None else None if exam is None else exam.commit),
        upon=short(landing.stood_upon),
        head=short(landing.stay.pull.head),
        statuses=" and ".join(statuses) or "a required status",
        tip=short(landing.run.tip if landing.run is not None and landing.run.chain else None),
    )
    return Mismatch(doubt=doubt, commit=commit, number=number, words=words)


def about_copy(doubt: Doubt, number: PrNumber, copy: Sha, original: Sha | None = None) -> Mismatch:
    """Something about a commit that is none of our landings."""
    words = SENTENCES[doubt].format(it=_named(number, original), copy=short(copy))
    return Mismatch(doubt=doubt, commit=copy, number=number, words=words)


def short(commit: Sha | None) -> str:
    return "nothing" if commit is None else commit[:12]


def _named(number: PrNumber, commit: Sha | None) -> str:
    return f"#{number}" if commit is None else f"#{number} ({short(commit)})"
