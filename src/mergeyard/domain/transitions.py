"""Which state may follow which, and for what reason. What is not in these tables cannot happen."""

from msgspec import Struct

from mergeyard.domain.reasons import Reason as R
from mergeyard.domain.states import PrState as P
from mergeyard.domain.states import QueueState as Q
from mergeyard.domain.states import RunStatus as S

LIVE = (P.NOT_READY, P.PENDING, P.TESTING, P.PENDING_FAILURE, P.TESTS_PASSED)
ADMITTED = LIVE[1:]


class PrTransition(Struct, frozen=True):
    sources: tuple[P | None, ...]
    to: P
    reasons: tuple[R, ...]


PR_TRANSITIONS = (
    PrTransition((None,), P.NOT_READY, (R.SUBMITTED,)),
    PrTransition((P.NOT_READY,), P.PENDING, (R.READY,)),
    PrTransition((P.NOT_READY, P.PENDING), P.MERGED, (R.MERGED_DIRECTLY,)),
    PrTransition((P.PENDING,), P.TESTING, (R.TEST_RUN_STARTED,)),
    PrTransition(
        (P.PENDING, P.TESTING, P.PENDING_FAILURE),
        P.TESTS_PASSED,
        (R.TEST_RUN_PASSED, R.SUCCESSOR_PASSED),
    ),
    PrTransition((P.TESTING,), P.PENDING_FAILURE, (R.TEST_RUN_FAILED, R.TEST_RUN_TIMEOUT)),
    PrTransition(
        (P.PENDING, P.TESTING, P.PENDING_FAILURE),
        P.FAILED,
        (R.TEST_RUN_FAILED, R.TEST_RUN_TIMEOUT, R.FAILED_BY_OPTIMIZATION),
    ),
    PrTransition(
        (P.TESTING, P.PENDING_FAILURE, P.TESTS_PASSED),
        P.PENDING,
        (
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
        ),
    ),
    PrTransition((P.TESTING, P.PENDING_FAILURE), P.PENDING, (R.TESTS_RESTARTED,)),
    PrTransition(ADMITTED, P.NOT_READY, (R.NO_LONGER_MERGEABLE, R.WAITING_FOR_MAINTAINER)),
    PrTransition(
        (P.PENDING,),
        P.FAILED,
        (
            R.MERGE_CONFLICT,
            R.CONTAINS_REMOVED_COMMIT,
            R.NOTHING_TO_MERGE,
            R.PR_TOO_LARGE,
            R.INVALID_TREE,
            R.NO_REQUIRED_STATUSES,
            R.CONFIG_INVALID,
            R.BREAKS_CONFIG,
            R.START_REFUSED,
        ),
    ),
    PrTransition((P.TESTS_PASSED,), P.MERGED, (R.MERGED_BY_QUEUE, R.TREE_MISMATCH)),
    PrTransition((P.TESTS_PASSED,), P.FAILED, (R.MERGE_REFUSED,)),
    PrTransition(
        LIVE,
        P.CANCELLED,
        (R.CANCELLED_BY_USER, R.PR_CLOSED, R.PR_PUSHED, R.NOT_READY_TIMEOUT, R.LANDING_UNKNOWN),
    ),
    PrTransition(ADMITTED, P.CANCELLED, (R.PR_BASE_CHANGED, R.PR_CONVERTED_TO_DRAFT)),
    PrTransition(LIVE, P.MERGED, (R.MERGED_MANUALLY,)),
)

FOUND_WRONG = (R.LANDING_REFUSED, R.TREE_MISMATCH, R.AUDIT_MISMATCH)
"""For these a queue pauses by itself."""

QUEUE_TRANSITIONS: dict[tuple[Q, Q], tuple[R, ...]] = {
    (Q.RUNNING, Q.PAUSED): (R.STATE_REQUESTED, *FOUND_WRONG),
    (Q.RUNNING, Q.DRAINING): (R.STATE_REQUESTED,),
    (Q.RUNNING, Q.SWITCHING_MODES): (R.MODE_CHANGED,),
    (Q.PAUSED, Q.RUNNING): (R.STATE_REQUESTED,),
    (Q.PAUSED, Q.DRAINING): (R.STATE_REQUESTED,),
    (Q.PAUSED, Q.SWITCHING_MODES): (R.STATE_REQUESTED,),
    (Q.DRAINING, Q.RUNNING): (R.STATE_REQUESTED,),
    (Q.DRAINING, Q.PAUSED): (R.STATE_REQUESTED, *FOUND_WRONG),
    (Q.DRAINING, Q.SWITCHING_MODES): (R.MODE_CHANGED,),
    (Q.SWITCHING_MODES, Q.RUNNING): (R.MODE_SWITCHED,),
    (Q.SWITCHING_MODES, Q.DRAINING): (R.MODE_SWITCHED,),
    (Q.SWITCHING_MODES, Q.PAUSED): (R.STATE_REQUESTED, *FOUND_WRONG),
}

RUN_TRANSITIONS: dict[S, tuple[S, ...]] = {
    S.PREPARING: (S.IN_PROGRESS, S.CANCELLED),
    S.IN_PROGRESS: (S.SUCCEEDED, S.FAILED, S.CANCELLED),
    S.SUCCEEDED: (),
    S.FAILED: (),
    S.CANCELLED: (),
}

_PR_REASONS: dict[tuple[P | None, P], frozenset[R]] = {
    (source, to): frozenset(
        reason for row in PR_TRANSITIONS if source in row.sources and row.to == to for reason in row.reasons
    )
    for source in (None, *P)
    for to in P
}


class IllegalTransition(Exception):
    """Something tried to make a change that the tables do not hold. Nothing was changed."""


def check_pr(source: P | None, to: P, reason: R) -> None:
    if reason not in _PR_REASONS[source, to]:
        raise IllegalTransition(f"a pull request cannot go from {source} to {to} for {reason}")


def check_queue(source: Q, to: Q, reason: R) -> None:
    if reason not in QUEUE_TRANSITIONS.get((source, to), ()):
        raise IllegalTransition(f"a queue cannot go from {source} to {to} for {reason}")


def check_run(source: S, to: S) -> None:
    if to not in RUN_TRANSITIONS[source]:
        raise IllegalTransition(f"a run cannot go from {source} to {to}")
