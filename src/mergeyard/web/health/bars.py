"""Why stays ended and tests were given up, as bars under what stands out among them."""

from collections.abc import Sequence

from msgspec import Struct

from mergeyard.domain.reasons import MESSAGES, Reason
from mergeyard.domain.states import PrState
from mergeyard.service.history.reasons import Why
from mergeyard.web.words import PR_STATES


class Bar(Struct, frozen=True):
    state: str
    label: str
    sentence: str
    count: int
    percent: float
    """Of the longest bar."""


class Bars(Struct, frozen=True):
    finding: str
    note: str
    bars: tuple[Bar, ...]


def conclusions(whys: Sequence[Why]) -> Bars:
    note = "Pull requests that left the queue, by state and reason"
    labels = [f"{PR_STATES[why.state]}: {name_of(why.reason)}" for why in whys]
    return Bars(_what_kept_them_from_merging(whys), note, _bars(whys, labels))


def restarts(whys: Sequence[Why]) -> Bars:
    finding = f"{_share(whys)} restarts: {name_of(whys[0].reason)}" if whys else "No test was given up"
    note = "Tests that were given up for another one, by reason"
    return Bars(finding, note, _bars(whys, [name_of(why.reason) for why in whys]))


def name_of(reason: str) -> str:
    return reason.replace("_", " ")


def _what_kept_them_from_merging(whys: Sequence[Why]) -> str:
    lost = [why for why in whys if why.state != PrState.MERGED]
    if lost:
        return f"{_share(lost)} that did not merge: {name_of(lost[0].reason)}"
    return "Everything that left the queue merged" if whys else "Nothing left the queue"


def _share(whys: Sequence[Why]) -> str:
    """Of the first, which is the most frequent."""
    return f"{whys[0].count:,} of {sum(why.count for why in whys):,}"


def _bars(whys: Sequence[Why], labels: Sequence[str]) -> tuple[Bar, ...]:
    longest = max((why.count for why in whys), default=0)
    return tuple(
        Bar(why.state, label, _sentence(why.reason), why.count, round(100 * why.count / longest, 1))
        for why, label in zip(whys, labels, strict=True)
    )


def _sentence(reason: str) -> str:
    """What was told long ago may have had a reason that there is no more."""
    return MESSAGES[Reason(reason)] if reason in MESSAGES else ""
