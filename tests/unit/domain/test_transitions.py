"""What the tables allow is allowed, and nothing else."""

import pytest

from mergeyard.domain.reasons import Reason as R
from mergeyard.domain.states import TERMINAL
from mergeyard.domain.states import PrState as P
from mergeyard.domain.states import QueueState as Q
from mergeyard.domain.states import RunStatus as S
from mergeyard.domain.transitions import (
    LIVE,
    PR_TRANSITIONS,
    QUEUE_TRANSITIONS,
    IllegalTransition,
    check_pr,
    check_queue,
    check_run,
)

ALLOWED = {(source, row.to, reason) for row in PR_TRANSITIONS for source in row.sources for reason in row.reasons}
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
)


def legal(source: P | None, to: P, reason: R) -> bool:
    try:
        check_pr(source, to, reason)
    except IllegalTransition:
        return False
    return True


def test_every_row_of_the_table_is_allowed():
    assert [case for case in ALLOWED if not legal(*case)] == []


def test_nothing_but_the_table_is_allowed():
    assert [case for case in FORBIDDEN if legal(*case)] == []


@pytest.mark.parametrize("source", sorted(TERMINAL))
def test_nothing_follows_an_end(source: P):
    assert not [case for case in ALLOWED if case[0] is source]


def test_a_stay_begins_not_ready():
    assert {case for case in ALLOWED if case[0] is None} == {(None, P.NOT_READY, R.SUBMITTED)}


@pytest.mark.parametrize("reason", GOING_BACK)
@pytest.mark.parametrize("source", [P.TESTING, P.PENDING_FAILURE, P.TESTS_PASSED])
def test_one_that_was_tested_may_have_to_be_tested_again(source: P, reason: R):
    assert legal(source, P.PENDING, reason)


def test_one_that_passed_is_not_restarted():
    assert not legal(P.TESTS_PASSED, P.PENDING, R.TESTS_RESTARTED)


@pytest.mark.parametrize("source", LIVE)
def test_anybody_who_is_here_may_be_cancelled(source: P):
    assert legal(source, P.CANCELLED, R.CANCELLED_BY_USER)


@pytest.mark.parametrize("source", LIVE)
def test_anybody_who_is_here_may_be_merged_by_hand(source: P):
    assert legal(source, P.MERGED, R.MERGED_MANUALLY)


@pytest.mark.parametrize("source", [P.NOT_READY, P.PENDING, P.TESTING, P.PENDING_FAILURE])
def test_only_one_that_passed_is_merged_by_the_queue(source: P):
    assert not legal(source, P.MERGED, R.MERGED_BY_QUEUE)


def test_an_illegal_change_says_what_was_tried():
    with pytest.raises(IllegalTransition, match="from merged to pending for ready"):
        check_pr(P.MERGED, P.PENDING, R.READY)


@pytest.mark.parametrize(("states", "reasons"), QUEUE_TRANSITIONS.items())
def test_every_row_of_the_queues_table_is_allowed(states: tuple[Q, Q], reasons: tuple[R, ...]):
    for reason in reasons:
        check_queue(*states, reason)


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
        check_queue(source, to, reason)


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
    check_run(source, to)


@pytest.mark.parametrize("to", list(S))
@pytest.mark.parametrize("source", [S.SUCCEEDED, S.FAILED, S.CANCELLED])
def test_a_decided_run_never_changes(source: S, to: S):
    with pytest.raises(IllegalTransition):
        check_run(source, to)


def test_a_run_that_is_not_built_yet_has_no_verdict():
    with pytest.raises(IllegalTransition):
        check_run(S.PREPARING, S.SUCCEEDED)
