"""Compares what is recorded with what the target shows: pure, and the one who says what differs."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.mismatches import Doubt, Mismatch
from mergeyard.domain.reasons import Reason
from mergeyard.service.verifying import promises
from mergeyard.service.verifying.claims import Claim, claim_of
from mergeyard.service.verifying.history import History
from mergeyard.service.verifying.recorded import Form, Recorded
from mergeyard.service.verifying.shown import Shown
from mergeyard.service.verifying.verdicts import Report, Verdict, Verified
from mergeyard.service.verifying.words import about_copy, mismatch, short

MOST = 200
"""Mismatches in one report: where there are more, these say enough."""


class Circumstances(Struct, frozen=True, kw_only=True):
    """What else the queue knows of its target."""

    removed: frozenset[Sha] = frozenset()
    """What people took off it, as the queue saw."""
    landing_now: frozenset[PrNumber] = frozenset()
    """Whoever is on the way to the target: what came of it is not recorded yet."""
    known: frozenset[Sha] = frozenset()
    """Commits that are recorded, but not among these landings: of longer ago, or of another queue."""


def compare(landings: Sequence[Recorded], shown: Shown, beside: Circumstances) -> Report:
    if shown.tip is None:
        return Report(notes=("The target branch is not there, so nothing can be compared with it.",))
    history = shown.history
    ours = commits_of_all(landings, history, beside.known)
    found = [
        *(wrong for landing in landings for wrong in promises.broken(landing, shown, history, ours)),
        *_gone(landings, history, beside),
        *_out_of_order(landings, history),
        *_twice(landings, history),
        *_claimed_by_others(landings, history, strangers(history, ours), beside),
    ]
    return Report(
        tip=shown.tip,
        landings=tuple(_verified(landing, shown, history) for landing in landings),
        mismatches=tuple(found[:MOST]),
        notes=tuple(_notes(landings, history, beside)),
    )


def commits_of_all(landings: Iterable[Recorded], history: History, known: Iterable[Sha] = ()) -> frozenset[Sha]:
    """All that these landings made, and whatever else is known to be one."""
    recorded = [commit for commit in known if history.holds(commit)]
    made = [history.commits_of(commit) for commit in recorded]
    made += [history.brought_by(landing) for landing in landings]
    return frozenset(commit.sha for commits in made for commit in commits)


def strangers(history: History, ours: Collection[Sha]) -> dict[Sha, Claim]:
    """Commits that call themselves landings, and are none of ours; of several in a row for the same, the last."""
    claims = [None if commit.sha in ours else claim_of(commit) for commit in history.line]
    above = [*claims[1:], None]
    found = zip(history.line, claims, above, strict=False)
    return {commit.sha: claim for commit, claim, next_claim in found if claim is not None and claim != next_claim}


def _gone(landings: Sequence[Recorded], history: History, beside: Circumstances) -> Iterator[Mismatch]:
    for landing in landings:
        if landing.commit is None:
            yield mismatch(Doubt.NOWHERE, landing)
        elif not history.holds(landing.commit) and landing.commit not in beside.removed:
            yield mismatch(Doubt.MISSING, landing)


def _out_of_order(landings: Sequence[Recorded], history: History) -> Iterator[Mismatch]:
    placed = [landing for landing in landings if landing.commit in history.places]
    for before, after in pairwise(placed):
        if history.places[_sha(after)] < history.places[_sha(before)]:
            yield mismatch(Doubt.OUT_OF_ORDER, after)


def _twice(landings: Sequence[Recorded], history: History) -> Iterator[Mismatch]:
    """The same head: one that people reopened with something new may come again."""
    first = dict[tuple[PrNumber, Sha], Sha]()
    for landing in landings:
        if history.holds(landing.commit):
            pull = landing.stay.pull
            original = first.setdefault((pull.number, pull.head), _sha(landing))
            if original != landing.commit:
                yield about_copy(Doubt.LANDED_TWICE, pull.number, _sha(landing), original)


def _claimed_by_others(
    landings: Iterable[Recorded], history: History, claims: Mapping[Sha, Claim], beside: Circumstances
) -> Iterator[Mismatch]:
    by_number = {landing.stay.number: landing for landing in landings if landing.commit is not None}
    for copy, claim in claims.items():
        landing = by_number.get(claim.number)
        if claim.number in beside.landing_now:
            continue
        if landing is None:
            yield about_copy(Doubt.UNRECORDED, claim.number, copy)
        elif history.holds(landing.commit):
            yield about_copy(Doubt.LANDED_TWICE, claim.number, copy, landing.commit)
        elif not _same_contents(landing, history, copy):
            yield about_copy(Doubt.ALTERED, claim.number, copy, landing.commit)


def _same_contents(landing: Recorded, history: History, copy: Sha) -> bool:
    """People may rewrite a history without changing what it holds: to sign it, say."""
    return landing.tested is not None and history[copy].tree == landing.tested.tree


def _notes(landings: Sequence[Recorded], history: History, beside: Circumstances) -> Iterator[str]:
    for landing in landings:
        name = f"#{landing.stay.number} ({short(landing.commit)})"
        if not history.holds(landing.commit) and landing.commit in beside.removed:
            yield f"{name} was taken off the target by somebody."
        elif landing.stay.reason is Reason.TREE_MISMATCH:
            yield f"{name} was found to differ from what was tested when it landed."


def _verified(landing: Recorded, shown: Shown, history: History) -> Verified:
    return Verified(
        number=landing.stay.number,
        commit=landing.commit,
        run=landing.stay.verified_by,
        landed_at=landing.stay.state_changed_at,
        form=landing.form,
        verdict=_verdict(landing, shown, history),
    )


def _verdict(landing: Recorded, shown: Shown, history: History) -> Verdict:
    """As long as no mismatch says otherwise."""
    if not history.holds(landing.commit):
        return Verdict.TAKEN_OFF
    if landing.stay.reason is Reason.TREE_MISMATCH:
        return Verdict.DIFFERS
    comparable = landing.form is not Form.COMPOSED or landing.stay.ticket in shown.faithful
    return Verdict.AS_TESTED if comparable else Verdict.NOT_COMPARABLE


def _sha(landing: Recorded) -> Sha:
    assert landing.commit is not None
    return landing.commit
