"""Submissions, impacted targets and statuses."""

import pytest

from mergeyard.domain.pull_requests import (
    ALL_TARGETS,
    CHECK_STATE_BY_STATUS_STATE,
    NO_TARGETS,
    ImpactedTargets,
    Status,
    StatusState,
    impacted_targets_from_names,
    union_impacted_targets,
)
from mergeyard.domain.states import CheckState
from mergeyard.domain.timestamps import Instant
from tests.support.builders import a_pull_request, a_submission


def test_a_submission_has_the_number_of_its_pull_request():
    assert a_submission(3, pull_request=a_pull_request(12)).number == 12


def test_priority_zero_is_urgent():
    assert a_submission(priority=0).is_urgent


def test_no_other_priority_is_urgent():
    assert not a_submission(priority=1).is_urgent


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (impacted_targets_from_names("a", "b"), impacted_targets_from_names("b", "c")),
        (ALL_TARGETS, impacted_targets_from_names("a")),
        (impacted_targets_from_names("a"), ALL_TARGETS),
        (ALL_TARGETS, NO_TARGETS),
        (ALL_TARGETS, ALL_TARGETS),
    ],
)
def test_overlapping_impacted_targets(one: ImpactedTargets, other: ImpactedTargets):
    assert one.overlaps(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (impacted_targets_from_names("a"), impacted_targets_from_names("b")),
        (impacted_targets_from_names("a"), NO_TARGETS),
        (NO_TARGETS, NO_TARGETS),
        (NO_TARGETS, impacted_targets_from_names("a")),
    ],
)
def test_separate_impacted_targets_do_not_overlap(one: ImpactedTargets, other: ImpactedTargets):
    assert not one.overlaps(other)


def test_a_union_holds_the_names_of_all():
    assert union_impacted_targets(
        [impacted_targets_from_names("a"), NO_TARGETS, impacted_targets_from_names("b", "c")]
    ) == impacted_targets_from_names("a", "b", "c")


def test_a_union_with_everything_is_everything():
    assert union_impacted_targets([impacted_targets_from_names("a"), ALL_TARGETS]) == ALL_TARGETS


def test_a_union_of_none_is_nothing():
    assert union_impacted_targets([]) == NO_TARGETS


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
    assert Status(context="unit", state=state, at=Instant(0)).check_state is check


def test_every_state_of_a_status_is_a_state_of_a_check():
    assert CHECK_STATE_BY_STATUS_STATE.keys() == set(StatusState)
