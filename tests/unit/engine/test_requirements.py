"""Rules of the Git host: a pull request without what they require is not admitted, and not merged."""

from typing import cast

import msgspec
import pytest

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.pull_requests import PullRequest, Requirement
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import (
    REQUIREMENT_REASONS,
    REVIEW_REASONS,
    CheckState,
    Mergeability,
    PullRequestState,
    Reason,
)
from mergeyard.engine.admission import can_no_longer_merge, not_ready_reason
from tests.support.builders import (
    QueueWorld,
    a_member,
    a_plain_queue,
    a_pull_request,
    a_requirement,
    a_submission,
    a_wait_reason,
    a_world,
)

OTHER_REASONS = [reason for reason in REQUIREMENT_REASONS if reason not in REVIEW_REASONS]
PASSED = CheckState.PASSED
MISSING = a_requirement()
GIVEN = a_requirement(given=1)


def reason_not_ready(*requirements: Requirement, forced: bool = False, **described: object) -> Reason | None:
    pull_request = a_pull_request(requirements=requirements, **described)  # pyright: ignore[reportArgumentType]
    return not_ready_reason(a_plain_queue(), a_submission(pull_request=pull_request, forced=forced))


def a_world_that_reads_a_landing(*, forced: bool | None = None) -> QueueWorld:
    """The tests of 1 passed, and its pull request is about to be read once more."""
    world = a_world()
    world.submit(1, forced=forced)
    world.build()
    world.passes(1)
    assert world.pending_tasks(t.ReadPullRequests)
    return world


# Readiness.


@pytest.mark.parametrize("reason", REQUIREMENT_REASONS)
def test_a_pr_that_lacks_a_requirement_is_not_ready_for_the_reason_of_it(reason: Reason):
    assert reason_not_ready(GIVEN, a_requirement(reason)) is reason


def test_a_pr_with_all_requirements_is_ready():
    assert reason_not_ready(GIVEN, a_requirement(Reason.WAITING_FOR_HEAD_CHECKS, needed=2, given=2)) is None


def test_of_several_missing_requirements_the_first_in_order_is_the_reason():
    checks, unreadable = a_requirement(Reason.WAITING_FOR_HEAD_CHECKS), a_requirement(Reason.HOST_RULE_UNREADABLE)
    assert reason_not_ready(unreadable, checks, MISSING) is Reason.WAITING_FOR_REVIEW


@pytest.mark.parametrize("blocks", [True, False])
def test_a_pr_under_a_rule_that_cannot_be_read_is_ready_if_such_rules_do_not_block(blocks: bool):
    unknown = a_requirement(Reason.HOST_RULE_UNREADABLE, given=None, blocks_if_unknown=blocks)
    assert reason_not_ready(unknown) is (Reason.HOST_RULE_UNREADABLE if blocks else None)


def test_a_conflict_is_shown_before_a_missing_approval():
    assert reason_not_ready(MISSING, mergeability=Mergeability.NOT_MERGEABLE) is Reason.NOT_MERGEABLE


def test_a_draft_is_shown_before_a_missing_approval():
    assert reason_not_ready(MISSING, draft=True) is Reason.DRAFT


@pytest.mark.parametrize("mergeability", [Mergeability.UNKNOWN, Mergeability.CHECKING])
def test_a_missing_approval_is_shown_before_an_unknown_mergeability(mergeability: Mergeability):
    assert reason_not_ready(MISSING, mergeability=mergeability) is Reason.WAITING_FOR_REVIEW


@pytest.mark.parametrize("reason", REQUIREMENT_REASONS)
def test_a_forced_pr_needs_none_of_them(reason: Reason):
    assert reason_not_ready(a_requirement(reason), forced=True) is None


def test_a_pr_that_lacks_an_approval_is_admitted_when_it_is_approved():
    world = a_world()
    world.open_pull_request(1)
    world.change(1, requirements=(MISSING,))
    world.submit(1)
    assert world.state(1) is PullRequestState.NOT_READY
    world.require(1, GIVEN)
    assert world.state(1) is PullRequestState.PENDING


def test_all_missing_requirements_are_shown_in_order():
    world = a_world()
    world.open_pull_request(1)
    checks = a_requirement(Reason.WAITING_FOR_HEAD_CHECKS, names=("unit",))
    world.change(1, requirements=(checks, GIVEN, MISSING))
    world.submit(1)
    waiting = world.wait_reason(1)
    assert (waiting.reason, waiting.requirements) == (Reason.WAITING_FOR_REVIEW, (MISSING, checks))


def test_missing_requirements_are_not_shown_with_another_reason():
    world = a_world()
    world.open_pull_request(1)
    world.change(1, draft=True, requirements=(MISSING,))
    world.submit(1)
    assert world.wait_reason(1) == a_wait_reason(Reason.DRAFT)


# Withdrawn while the pull request is in the queue.


@pytest.mark.parametrize("reason", REVIEW_REASONS)
def test_a_pending_pr_whose_consent_is_withdrawn_becomes_not_ready_at_once(reason: Reason):
    world = a_world(prs=1, concurrency=1)
    world.submit(2)
    assert world.state(2) is PullRequestState.PENDING
    world.require(2, a_requirement(reason))
    assert (world.state(2), world.reason(2)) == (PullRequestState.NOT_READY, reason)


@pytest.mark.parametrize("reason", REVIEW_REASONS)
def test_a_pr_under_test_whose_consent_is_withdrawn_leaves_its_run_at_once(reason: Reason):
    world = a_world(prs=2)
    world.require(1, a_requirement(reason))
    assert (world.state(1), world.reason(1)) == (PullRequestState.NOT_READY, reason)
    world.build()
    assert world.queue_text == "main ← 2…"


def test_a_pr_whose_tests_passed_does_not_merge_when_its_approval_is_withdrawn():
    world = a_world_that_reads_a_landing()
    world.require(1, MISSING)
    world.perform_pending_tasks()
    assert (world.state(1), world.reason(1)) == (PullRequestState.NOT_READY, Reason.WAITING_FOR_REVIEW)
    assert not world.host.pushes


def test_a_pr_in_a_batch_leaves_it_and_the_others_are_tested_without_it():
    world = a_world(prs=3, batch=3)
    world.require(2, MISSING)
    world.build()
    assert world.queue_text == "main ← 1+3…"


@pytest.mark.parametrize("reason", OTHER_REASONS)
def test_a_pr_under_test_goes_on_while_only_a_machine_withholds_something(reason: Reason):
    world = a_world(prs=1)
    world.require(1, a_requirement(reason))
    assert world.state(1) is PullRequestState.TESTING


def test_an_approval_that_is_missing_behind_another_reason_still_stops_the_pr():
    world = a_world(prs=1)
    world.require(1, a_requirement(Reason.HOST_RULE_UNREADABLE), MISSING)
    assert (world.state(1), world.reason(1)) == (PullRequestState.NOT_READY, Reason.WAITING_FOR_REVIEW)


def test_a_forced_pr_stays_under_test_when_its_approval_is_withdrawn():
    world = a_world()
    world.submit(1, forced=True)
    world.build()
    world.require(1, MISSING)
    assert world.state(1) is PullRequestState.TESTING


def test_a_pr_that_is_approved_again_is_tested_again():
    world = a_world(prs=1)
    world.require(1, MISSING)
    world.require(1, GIVEN)
    world.build()
    assert world.queue_text == "main ← 1…"
    assert world.timeline(1)[-3:] == [
        (PullRequestState.NOT_READY, Reason.WAITING_FOR_REVIEW),
        (PullRequestState.PENDING, Reason.READY),
        (PullRequestState.TESTING, Reason.TEST_RUN_STARTED),
    ]


def test_the_result_of_a_run_that_a_pr_left_does_not_count_when_it_is_approved_again():
    world = a_world(prs=1)
    run = world.run_of(1)
    world.require(1, MISSING)
    world.require(1, GIVEN)
    world.build()
    world.apply(world.observe_checks(run, dict.fromkeys(run.required_statuses, PASSED)))
    world.perform_pending_tasks()
    assert not world.host.pushes


# The read right before a landing.


@pytest.mark.parametrize("reason", REQUIREMENT_REASONS)
def test_the_read_before_a_landing_finds_everything_that_is_missing(reason: Reason):
    world = a_world_that_reads_a_landing()
    world.change(1, requirements=(a_requirement(reason),))
    world.perform_pending_tasks()
    assert (world.state(1), world.reason(1)) == (PullRequestState.NOT_READY, reason)
    assert not world.host.pushes


def test_a_conflict_before_a_landing_is_the_reason_even_if_an_approval_is_missing():
    world = a_world_that_reads_a_landing()
    checks = a_requirement(Reason.WAITING_FOR_HEAD_CHECKS)
    world.change(1, mergeability=Mergeability.NOT_MERGEABLE, requirements=(checks,))
    world.perform_pending_tasks()
    assert world.reason(1) is Reason.NO_LONGER_MERGEABLE


def test_a_rule_that_cannot_be_read_and_does_not_block_stops_no_landing():
    world = a_world_that_reads_a_landing()
    world.change(1, requirements=(a_requirement(given=None, blocks_if_unknown=False),))
    world.perform_pending_tasks()
    assert world.state(1) is PullRequestState.MERGED


def test_a_forced_pr_merges_without_what_the_host_requires():
    world = a_world_that_reads_a_landing(forced=True)
    world.change(1, requirements=(MISSING, a_requirement(Reason.BLOCKED_BY_HOST_RULE)))
    world.perform_pending_tasks()
    assert world.state(1) is PullRequestState.MERGED


def test_when_one_pr_of_a_landing_lacks_its_approval_the_one_ahead_of_it_still_merges():
    world = a_world(prs=2)
    world.apply(world.observe_result(PASSED, 1), world.observe_result(PASSED, 2))
    world.change(2, requirements=(MISSING,))
    world.perform_pending_tasks()
    assert (world.state(1), world.state(2)) == (PullRequestState.MERGED, PullRequestState.NOT_READY)


def test_when_the_one_ahead_lacks_its_approval_the_one_behind_is_tested_without_it():
    world = a_world(prs=2)
    world.apply(world.observe_result(PASSED, 1), world.observe_result(PASSED, 2))
    world.change(1, requirements=(MISSING,))
    world.perform_pending_tasks()
    assert not world.host.pushes
    assert world.queue_text == "main ← 2…"


def test_a_landing_that_is_decided_is_not_changed_by_a_withdrawal():
    world = a_world_that_reads_a_landing()
    world.save_landing_intent()
    world.require(1, MISSING)
    assert world.state(1) is PullRequestState.TESTS_PASSED
    assert world.queue.landing is not None


def test_a_withdrawal_during_a_landing_counts_after_it_was_missed():
    world = a_world_that_reads_a_landing()
    world.save_landing_intent()
    world.require(1, MISSING)
    world.apply(e.LandingMissed(landing=1))
    world.perform_pending_tasks()
    assert (world.state(1), world.reason(1)) == (PullRequestState.NOT_READY, Reason.WAITING_FOR_REVIEW)
    assert not world.host.pushes


# One more read right before the push of a landing that was decided long ago.


def is_stopped(pull_request: PullRequest, *, forced: bool = False) -> bool:
    queue = a_plain_queue(a_submission(1, forced=forced))
    return can_no_longer_merge(queue, a_member(1), pull_request)


def test_a_decided_landing_goes_on_with_a_pr_that_is_unchanged():
    assert not is_stopped(a_pull_request(1, requirements=(GIVEN,)))


@pytest.mark.parametrize(
    "changed",
    [
        a_pull_request(1, requirements=(MISSING,)),
        a_pull_request(1, requirements=(a_requirement(Reason.HOST_RULE_UNREADABLE, given=None),)),
        a_pull_request(1, head="pushed"),
        a_pull_request(1, base="elsewhere"),
        a_pull_request(1, is_open=False),
        a_pull_request(1, draft=True),
    ],
    ids=["approval", "unreadable", "head", "base", "closed", "draft"],
)
def test_a_decided_landing_stops_for_a_pr_that_changed(changed: PullRequest):
    assert is_stopped(changed)


def test_a_decided_landing_of_a_forced_pr_needs_no_approval_but_the_same_head():
    assert not is_stopped(a_pull_request(1, requirements=(MISSING,)), forced=True)
    assert is_stopped(a_pull_request(1, head="pushed"), forced=True)


def test_a_decided_landing_goes_on_with_a_pr_that_it_has_merged_already():
    assert not is_stopped(a_pull_request(1, is_open=False, merged_into="main", requirements=(MISSING,)))


def test_a_pr_that_left_the_queue_counts_as_not_forced():
    assert can_no_longer_merge(a_plain_queue(), a_member(1), a_pull_request(1, requirements=(MISSING,)))


# Queues that were stored before there were requirements.


def remove_new_fields(stored: object) -> object:
    if isinstance(stored, dict):
        fields = cast("dict[str, object]", stored)
        return {name: remove_new_fields(value) for name, value in fields.items() if name != "requirements"}
    return [remove_new_fields(each) for each in cast("list[object]", stored)] if isinstance(stored, list) else stored


def test_a_queue_without_requirements_goes_on_and_learns_them_from_the_next_read():
    world = a_world(prs=2)
    stored = remove_new_fields(msgspec.json.decode(msgspec.json.encode(world.queue)))
    assert "requirements" not in str(stored)
    world.queue = msgspec.convert(stored, Queue, strict=False)
    world.apply(world.observe_result(PASSED, 1))
    world.change(1, requirements=(MISSING,))
    world.perform_pending_tasks()
    assert (world.state(1), world.reason(1)) == (PullRequestState.NOT_READY, Reason.WAITING_FOR_REVIEW)
    assert world.queue_text == "main ← 2…"
