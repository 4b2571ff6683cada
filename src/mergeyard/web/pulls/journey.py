"""A pull request's way through the yard, station by station, as far as it has come."""

from collections.abc import Sequence

from msgspec import Struct

from mergeyard.domain.journal import PrChanged
from mergeyard.domain.states import TERMINAL, PrState

STATIONS = ("Submitted", "In line", "Testing", "Passed", "Merged")
REACHED = {
    PrState.NOT_READY: 0,
    PrState.PENDING: 1,
    PrState.TESTING: 2,
    PrState.PENDING_FAILURE: 2,
    PrState.TESTS_PASSED: 3,
    PrState.MERGED: 4,
}
DERAILED = {PrState.FAILED: "Failed", PrState.CANCELLED: "Taken out"}


class Station(Struct, frozen=True):
    name: str
    stage: str
    """`passed`, `here`, `ahead`, or `off` where it left the rails."""


def journey(state: PrState, timeline: Sequence[PrChanged]) -> tuple[Station, ...]:
    """The timeline is newest first: its head says from where it left."""
    if state in DERAILED:
        before = timeline[0].source if timeline else None
        reached = 0 if before is None else REACHED[before]
        return (*_passed(reached + 1), Station(DERAILED[state], "off"))
    reached = REACHED[state]
    here = Station(STATIONS[reached], "passed" if state in TERMINAL else "here")
    return (*_passed(reached), here, *(Station(name, "ahead") for name in STATIONS[reached + 1 :]))


def _passed(count: int) -> tuple[Station, ...]:
    return tuple(Station(name, "passed") for name in STATIONS[:count])
