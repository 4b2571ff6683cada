"""What a CI says about a commit passes, fails, or is still to come."""

import pytest

from mergeyard.domain.instants import Instant
from mergeyard.domain.states import CheckState
from mergeyard.domain.statuses import CHECKS, Status, StatusState


@pytest.mark.parametrize(
    ("state", "check"),
    [
        (StatusState.PENDING, CheckState.PENDING),
        (StatusState.SUCCESS, CheckState.PASSED),
        (StatusState.FAILURE, CheckState.FAILED),
        (StatusState.ERROR, CheckState.FAILED),
    ],
)
def test_only_success_passes(state: StatusState, check: CheckState):
    assert Status(context="unit", state=state, at=Instant(0)).check is check


def test_every_state_of_a_status_is_a_state_of_a_check():
    assert CHECKS.keys() == set(StatusState)
