"""The states, spelled as the API spells them."""

import pytest

from mergeyard.domain.states import (
    ACTIVE_RUN_STATUSES,
    LIVE_STATES,
    PULL_REQUEST_TRANSITIONS,
    QUEUE_TRANSITIONS,
    REASON_MESSAGES,
    TERMINAL_STATES,
    IllegalTransition,
    PullRequestState,
    QueueState,
    Reason,
    RunStatus,
    check_pull_request_transition,
    check_queue_transition,
    check_run_transition,
)
from mergeyard.domain.states import PullRequestState as P
from mergeyard.domain.states import QueueState as Q
from mergeyard.domain.states import Reason as R
from mergeyard.domain.states import RunStatus as S


def test_the_states_of_a_pull_request_are_those_of_the_contract():
    names = "not_ready pending testing pending_failure tests_passed merged failed cancelled"
    assert [state.value for state in PullRequestState] == names.split()


def test_merged_failed_and_cancelled_are_the_end():
    assert {PullRequestState.MERGED, PullRequestState.FAILED, PullRequestState.CANCELLED} == TERMINAL_STATES


def test_the_states_of_a_queue_are_those_of_the_contract():
    assert [state.value for state in QueueState] == ["RUNNING", "PAUSED", "DRAINING", "SWITCHING_MODES"]


def test_a_run_is_active_until_it_is_decided():
    assert {RunStatus.PREPARING, RunStatus.IN_PROGRESS} == ACTIVE_RUN_STATUSES


ALLOWED = {
    (source, row.to, reason) for row in PULL_REQUEST_TRANSITIONS for source in row.sources for reason in row.reasons
}
FORBIDDEN = {(source, to, reason) for source in (None, *P) for to in P for reason in R} - ALLOWED
GOING_BACK = (
    R.PREREQUISITE_REMOVED,
    R.TARGET_BRANCH_MOVED,
    R.SKIP_THE_LINE_INTERRUPTED,
    R.BATCHMATE_REMOVED,
    R.BASE_BROKEN,
    R.BISECTION,
    R.BISECTION_PASSED,
    R.MODE_SWITCHED,
    R.QUEUE_RESUMED,
    R.REQUIRED_STATUSES_CHANGED,
    R.TESTS_RESTARTED,
)


def legal(source: P | None, to: P, reason: R) -> bool:
    try:
        check_pull_request_transition(source, to, reason)
    except IllegalTransition:
        return False
    return True


def test_every_row_of_the_table_is_allowed():
    assert [case for case in ALLOWED if not legal(*case)] == []


def test_nothing_but_the_table_is_allowed():
    assert [case for case in FORBIDDEN if legal(*case)] == []


@pytest.mark.parametrize("source", sorted(TERMINAL_STATES))
def test_nothing_follows_an_end(source: P):
    assert not [case for case in ALLOWED if case[0] is source]


def test_a_submission_begins_not_ready():
    assert {case for case in ALLOWED if case[0] is None} == {(None, P.NOT_READY, R.SUBMITTED)}


@pytest.mark.parametrize("reason", GOING_BACK)
@pytest.mark.parametrize("source", [P.TESTING, P.PENDING_FAILURE, P.TESTS_PASSED])
def test_a_tested_pr_can_be_pending_again(source: P, reason: R):
    assert legal(source, P.PENDING, reason)


@pytest.mark.parametrize("source", LIVE_STATES)
def test_any_queued_pr_can_be_cancelled(source: P):
    assert legal(source, P.CANCELLED, R.CANCELLED_BY_USER)


@pytest.mark.parametrize("source", LIVE_STATES)
def test_any_queued_pr_can_be_merged_by_hand(source: P):
    assert legal(source, P.MERGED, R.MERGED_MANUALLY)


@pytest.mark.parametrize("source", [P.NOT_READY, P.PENDING, P.TESTING, P.PENDING_FAILURE])
def test_only_a_pr_that_passed_is_merged_by_the_queue(source: P):
    assert not legal(source, P.MERGED, R.MERGED_BY_QUEUE)


def test_the_error_of_an_illegal_transition_names_states_and_reason():
    with pytest.raises(IllegalTransition, match="from merged to pending for ready"):
        check_pull_request_transition(P.MERGED, P.PENDING, R.READY)


@pytest.mark.parametrize(("states", "reasons"), QUEUE_TRANSITIONS.items())
def test_every_row_of_the_queues_table_is_allowed(states: tuple[Q, Q], reasons: tuple[R, ...]):
    for reason in reasons:
        check_queue_transition(*states, reason)


@pytest.mark.parametrize(
    ("source", "to", "reason"),
    [
        (Q.RUNNING, Q.RUNNING, R.STATE_REQUESTED),
        (Q.RUNNING, Q.SWITCHING_MODES, R.STATE_REQUESTED),
        (Q.PAUSED, Q.RUNNING, R.MODE_SWITCHED),
    ],
)
def test_nothing_but_the_queues_table_is_allowed(source: Q, to: Q, reason: R):
    with pytest.raises(IllegalTransition):
        check_queue_transition(source, to, reason)


@pytest.mark.parametrize(
    ("source", "to"),
    [
        (S.PREPARING, S.IN_PROGRESS),
        (S.PREPARING, S.CANCELLED),
        (S.IN_PROGRESS, S.SUCCEEDED),
        (S.IN_PROGRESS, S.FAILED),
        (S.IN_PROGRESS, S.CANCELLED),
    ],
)
def test_a_run_may_go_on(source: S, to: S):
    check_run_transition(source, to)


@pytest.mark.parametrize("to", list(S))
@pytest.mark.parametrize("source", [S.SUCCEEDED, S.FAILED, S.CANCELLED])
def test_a_decided_run_never_changes(source: S, to: S):
    with pytest.raises(IllegalTransition):
        check_run_transition(source, to)


def test_a_run_that_is_not_built_yet_cannot_pass():
    with pytest.raises(IllegalTransition):
        check_run_transition(S.PREPARING, S.SUCCEEDED)


def test_every_reason_has_a_message():
    assert set(REASON_MESSAGES) == set(Reason)


@pytest.mark.parametrize("message", REASON_MESSAGES.values())
def test_a_message_is_a_sentence(message: str):
    assert message[0].isupper()
    assert message.endswith(".")


def test_no_two_reasons_say_the_same():
    assert len(set(REASON_MESSAGES.values())) == len(REASON_MESSAGES)
