"""Why stays ended, and why tests were given up."""

from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState
from mergeyard.service.history import reasons
from mergeyard.service.history.reasons import Why
from tests.support.pasts import a_restart, an_end

FIGURES = [
    an_end(PrState.FAILED, Reason.TEST_RUN_FAILED),
    an_end(PrState.CANCELLED, Reason.PR_CLOSED),
    an_end(PrState.CANCELLED, Reason.CANCELLED_BY_USER),
    an_end(),
    an_end(),
    a_restart(Reason.BISECTION),
    a_restart(Reason.TARGET_BRANCH_MOVED),
    a_restart(Reason.TARGET_BRANCH_MOVED),
]


def test_the_most_frequent_end_comes_first_and_equals_stand_by_name():
    assert reasons.of_conclusions(FIGURES) == [
        Why("merged", "merged_by_queue", 2),
        Why("cancelled", "cancelled_by_user", 1),
        Why("cancelled", "pr_closed", 1),
        Why("failed", "test_run_failed", 1),
    ]


def test_restarts_have_their_own_reasons():
    assert reasons.of_restarts(FIGURES) == [
        Why("pending", "target_branch_moved", 2),
        Why("pending", "bisection", 1),
    ]
