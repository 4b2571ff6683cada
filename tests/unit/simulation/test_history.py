"""Histories are built from stored submissions and runs."""

from typing import Any

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Config
from mergeyard.domain.ids import PullRequestNumber, Sha, SubmissionId
from mergeyard.domain.pull_requests import PullRequest, Submission
from mergeyard.domain.runs import Member, Run, RunKind
from mergeyard.domain.states import PullRequestState, Reason, RunStatus
from mergeyard.domain.timestamps import MINUTE, Instant
from mergeyard.simulation.history import ConfigChange, EndState, History, build_history
from tests.support.builders import a_run

SINCE, UNTIL = Instant(100 * MINUTE), Instant(1000 * MINUTE)
PERIOD = History(since=SINCE, until=UNTIL, config_changes=(ConfigChange(Instant(0), Config()),))


def a_submission(
    submission_id: int, at: int = 200, *, number: int = 0, contains: tuple[int, ...] = (), **more: Any
) -> Submission:
    """Times are in minutes. It merged after ten minutes, unless `more` says otherwise."""
    admitted = Instant(at * MINUTE)
    contained = {PullRequestNumber(other): Sha(f"h{other}") for other in contains}
    defaults: dict[str, Any] = {
        "state": PullRequestState.MERGED,
        "reason": Reason.MERGED_BY_QUEUE,
        "admitted_at": admitted,
        "state_changed_at": Instant(admitted + 10 * MINUTE),
        "merged_sha": Sha(f"m{submission_id}"),
    }
    pull_request = PullRequest(
        number=PullRequestNumber(number or submission_id),
        head=Sha(f"h{submission_id}"),
        base_branch="main",
        contained_heads=contained,
    )
    return Submission(
        id=SubmissionId(submission_id),
        pull_request=pull_request,
        priority=100,
        submitted_at=admitted,
        **defaults | more,
    )


def a_finished_run(*submission_ids: int, base: str = "base", at: int = 200, tests: int = 1, **more: Any) -> Run:
    stack = tuple(
        Member(SubmissionId(submission_id), PullRequestNumber(submission_id), Sha(f"h{submission_id}"))
        for submission_id in submission_ids
    )
    defaults: dict[str, Any] = {
        "status": RunStatus.SUCCEEDED,
        "started_at": Instant(at * MINUTE),
        "decided_at": Instant((at + 10) * MINUTE),
    }
    return replace(a_run(1), stack=stack, tested_count=tests, base=Sha(base), **defaults | more)


def history(*submissions: Submission, runs: tuple[Run, ...] = ()) -> History:
    return build_history(submissions, runs, PERIOD)


@pytest.mark.parametrize(
    ("state", "reason", "end"),
    [
        (PullRequestState.MERGED, Reason.MERGED_BY_QUEUE, EndState.MERGED),
        (PullRequestState.MERGED, Reason.MERGED_MANUALLY, EndState.REMOVED),
        (PullRequestState.MERGED, Reason.MERGED_DIRECTLY, EndState.UNTESTED),
        (PullRequestState.FAILED, Reason.TEST_RUN_FAILED, EndState.FAILED),
        (PullRequestState.FAILED, Reason.TEST_RUN_TIMEOUT, EndState.FAILED),
        (PullRequestState.FAILED, Reason.FAILED_BY_OPTIMIZATION, EndState.FAILED),
        (PullRequestState.FAILED, Reason.MERGE_CONFLICT, EndState.UNTESTED),
        (PullRequestState.CANCELLED, Reason.PR_PUSHED, EndState.REMOVED),
        (PullRequestState.TESTING, Reason.TEST_RUN_STARTED, EndState.STILL_QUEUED),
    ],
)
def test_the_end_state_follows_from_state_and_reason(state: PullRequestState, reason: Reason, end: EndState):
    (arrival,) = history(a_submission(1, state=state, reason=reason)).arrivals
    assert arrival.end_state is end


def test_arrivals_are_in_the_order_of_admission():
    late, early = a_submission(1, at=300), a_submission(2, at=200)
    assert [each.number for each in history(late, early).arrivals] == [2, 1]


def test_submissions_that_were_never_admitted_are_left_out():
    not_ready = a_submission(1, state=PullRequestState.NOT_READY, reason=Reason.DRAFT)
    never = a_submission(2, admitted_at=None, state=PullRequestState.CANCELLED, reason=Reason.CANCELLED_BY_USER)
    assert history(not_ready, never).arrivals == ()


def test_submissions_from_before_the_period_or_still_queued_are_not_counted():
    before, within = a_submission(1, at=50), a_submission(2, at=150)
    still = a_submission(3, at=160, state=PullRequestState.PENDING, reason=Reason.READY)
    read = history(before, within, still)
    assert [each.is_counted for each in read.arrivals] == [False, True, False]
    assert read.arrivals[2].ended_at == UNTIL


def test_a_resubmission_refers_to_the_previous_submission():
    first, other, again = a_submission(1, number=7), a_submission(2, at=210), a_submission(3, at=220, number=7)
    assert [each.previous for each in history(first, other, again).arrivals] == [None, None, 0]


def test_an_arrival_is_stacked_on_those_whose_heads_it_contains():
    lower, upper = a_submission(1), a_submission(2, at=210, contains=(1, 99))
    assert history(lower, upper).arrivals[1].stacked_on == (0,)


def test_a_run_refers_to_its_arrivals():
    one, two = a_submission(1, at=220), a_submission(2, at=200)
    (run,) = history(one, two, runs=(a_finished_run(2, 1, at=230),)).runs
    assert (run.stack, run.tested_arrivals, run.is_stack_complete, run.duration_ms) == ((0, 1), (1,), True, 10 * MINUTE)


def test_a_run_with_unknown_pull_requests_ahead_keeps_only_the_tested_ones():
    (run,) = history(a_submission(1), runs=(a_finished_run(99, 1), a_finished_run(99))).runs
    assert (run.stack, run.tested_count, run.is_stack_complete) == ((0,), 1, False)


def test_a_base_run_is_kept():
    (run,) = history(runs=(a_finished_run(tests=0, kind=RunKind.BASE, status=RunStatus.FAILED),)).runs
    assert (run.stack, run.tested_count, run.is_failed) == ((), 0, True)


def test_a_run_that_used_the_checks_of_a_head_is_left_out():
    assert history(a_submission(1), runs=(a_finished_run(1, used_head_checks=True),)).runs == ()


def test_a_base_that_is_no_recorded_merge_is_an_external_push():
    submissions = a_submission(1, at=200), a_submission(2, at=220), a_submission(3, at=240)
    runs = (
        a_finished_run(1, base="initial", at=200),
        a_finished_run(2, base="m1", at=220),
        a_finished_run(3, base="pushed by a user", at=240),
        a_finished_run(3, base="pushed by a user", at=245),
        a_finished_run(3, base="in a bisection", at=250, kind=RunKind.BISECTION),
    )
    assert history(*submissions, runs=runs).external_pushes == (240 * MINUTE,)


def test_external_pushes_before_the_period_are_unknown():
    runs = (a_finished_run(1, base="initial", at=10), a_finished_run(1, base="perhaps of an earlier merge", at=20))
    assert history(a_submission(1), runs=runs).external_pushes == ()
