"""Submissions, impacted targets and statuses."""

import msgspec
import pytest

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import (
    ALL_TARGETS,
    CHECK_STATE_BY_STATUS_STATE,
    NO_TARGETS,
    ImpactedTargets,
    MovedHead,
    PullRequest,
    Requirement,
    Status,
    StatusState,
    impacted_targets_from_names,
    union_impacted_targets,
)
from mergeyard.domain.states import REQUIREMENT_REASONS, CheckState, Mergeability, Reason
from mergeyard.domain.timestamps import Instant
from tests.support.builders import a_pull_request, a_requirement, a_submission

MISSING = a_requirement()
GIVEN = a_requirement(given=1)


def test_a_submission_has_the_number_of_its_pull_request():
    assert a_submission(3, pull_request=a_pull_request(12)).number == 12


def test_a_submission_knows_the_last_commits_that_its_head_branch_was_moved_to():
    submission = a_submission()
    assert submission.moved_head is None
    for at, commit in enumerate("abcda"):
        submission = submission.with_moved_head(MovedHead(Sha(commit), Instant(at)))
    assert [each.commit for each in submission.moved_heads] == ["c", "d", "a"]
    assert submission.moved_head == MovedHead(Sha("a"), Instant(4))


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


# What the rules of the Git host require.


@pytest.mark.parametrize(("needed", "given", "is_met"), [(1, 0, False), (2, 1, False), (2, 2, True), (1, 3, True)])
def test_a_requirement_is_met_by_as_much_as_is_needed(needed: int, given: int, is_met: bool):
    assert a_requirement(needed=needed, given=given).is_met is is_met


@pytest.mark.parametrize("blocks", [True, False])
def test_a_rule_that_cannot_be_read_blocks_as_configured(blocks: bool):
    assert a_requirement(given=None, blocks_if_unknown=blocks).is_met is not blocks


def test_what_is_known_counts_even_where_an_unreadable_rule_would_not_block():
    assert not a_requirement(given=0, blocks_if_unknown=False).is_met


def test_only_what_is_missing_is_unmet():
    assert a_pull_request(requirements=(GIVEN, MISSING)).unmet_requirements == (MISSING,)


def test_unmet_requirements_are_in_the_order_in_which_they_are_shown():
    unmet = tuple(a_requirement(reason) for reason in REQUIREMENT_REASONS)
    assert a_pull_request(requirements=unmet[::-1]).unmet_requirements == unmet


def test_two_requirements_of_one_kind_keep_their_order():
    both = (a_requirement(names=("@acme/db",)), a_requirement(names=("@acme/api",)))
    assert a_pull_request(requirements=both).unmet_requirements == both


def test_a_pull_request_with_all_it_needs_and_without_conflicts_is_mergeable():
    assert a_pull_request(requirements=(GIVEN,)).is_mergeable


def test_a_pull_request_that_lacks_an_approval_is_not_mergeable():
    assert not a_pull_request(requirements=(GIVEN, MISSING)).is_mergeable


@pytest.mark.parametrize("mergeability", [each for each in Mergeability if each is not Mergeability.MERGEABLE])
def test_a_pull_request_that_is_not_known_to_merge_without_conflicts_is_not_mergeable(mergeability: Mergeability):
    assert not a_pull_request(mergeability=mergeability, requirements=(GIVEN,)).is_mergeable


def test_a_pull_request_that_was_stored_before_there_were_requirements_has_none():
    stored = msgspec.to_builtins(a_pull_request(requirements=(MISSING,)))
    del stored["requirements"]
    assert msgspec.convert(stored, PullRequest).requirements == ()


def test_requirements_are_stored_with_their_pull_request():
    unknown = a_requirement(Reason.HOST_RULE_UNREADABLE, given=None, names=("Members: Read-only",))
    pull_request = a_pull_request(requirements=(GIVEN, MISSING, unknown))
    assert msgspec.json.decode(msgspec.json.encode(pull_request), type=PullRequest) == pull_request


@pytest.mark.parametrize(
    ("reason", "method", "by_host", "applies"),
    [
        (Reason.COMMITS_UNSIGNED, MergeMethod.MERGE_COMMIT, False, True),
        (Reason.COMMITS_UNSIGNED, MergeMethod.MERGE_COMMIT, True, True),
        (Reason.COMMITS_UNSIGNED, MergeMethod.SQUASH, False, False),
        (Reason.COMMITS_UNSIGNED, MergeMethod.SQUASH, True, False),
        (Reason.COMMITS_UNSIGNED, MergeMethod.REBASE, False, False),
        (Reason.SIGNING_KEY_NOT_ACCEPTED, MergeMethod.MERGE_COMMIT, False, True),
        (Reason.SIGNING_KEY_NOT_ACCEPTED, MergeMethod.MERGE_COMMIT, True, False),
        (Reason.WAITING_FOR_REVIEW, MergeMethod.MERGE_COMMIT, True, True),
    ],
)
def test_a_rule_about_signatures_applies_to_the_commits_that_it_concerns(
    reason: Reason, method: MergeMethod, by_host: bool, applies: bool
):
    assert Requirement(reason=reason).applies_to(method, by_host=by_host) is applies


@pytest.mark.parametrize("method", [MergeMethod.SQUASH, MergeMethod.REBASE])
def test_a_git_host_can_require_signed_commits_of_what_it_merges_itself(method: MergeMethod):
    requirement = Requirement(reason=Reason.COMMITS_UNSIGNED, concerns_host_merges=True)
    assert [requirement.applies_to(method, by_host=by_host) for by_host in (True, False)] == [True, False]


def test_a_rule_about_signatures_of_every_branch_applies_to_any_landing():
    requirement = Requirement(reason=Reason.SIGNING_KEY_NOT_ACCEPTED, concerns_test_branches=True)
    assert all(requirement.applies_to(MergeMethod.SQUASH, by_host=by_host) for by_host in (True, False))
