"""A pull request's way through the yard."""

import pytest

from mergeyard.domain.ids import PrNumber, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import PrChanged
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState
from mergeyard.web.pulls.journey import journey


def way(state: PrState, *, left_from: PrState | None = None) -> str:
    entry = PrChanged(
        at=Instant(0), ticket=Ticket(1), number=PrNumber(1), source=left_from, to=state, reason=Reason.SUBMITTED
    )
    return " ".join(f"{station.name}={station.stage}" for station in journey(state, [entry]))


def test_one_that_waits_has_passed_the_first_station_and_has_the_others_ahead():
    assert way(PrState.PENDING) == "Submitted=passed In line=here Testing=ahead Passed=ahead Merged=ahead"


def test_one_that_merged_has_passed_them_all():
    assert way(PrState.MERGED) == "Submitted=passed In line=passed Testing=passed Passed=passed Merged=passed"


def test_one_that_failed_left_the_rails_where_it_was_tested():
    way_of_failed = way(PrState.FAILED, left_from=PrState.TESTING)
    assert way_of_failed == "Submitted=passed In line=passed Testing=passed Failed=off"


def test_one_that_was_taken_out_before_it_was_ready_came_no_further():
    assert way(PrState.CANCELLED, left_from=PrState.NOT_READY) == "Submitted=passed Taken out=off"


@pytest.mark.parametrize("state", PrState)
def test_every_state_has_a_way(state: PrState):
    assert way(state, left_from=PrState.PENDING).startswith("Submitted=")
