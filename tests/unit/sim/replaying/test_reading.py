"""A history is read out of stays and runs just as they are stored."""

from typing import Any

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Config
from mergeyard.domain.ids import PrNumber, Sha, Ticket
from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.pulls import PullRequest, Submission
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Member, Run, RunKind
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.sim.replaying.history import End, History, Setting
from mergeyard.sim.replaying.reading import Period, read
from tests.support.builders import a_run

SINCE, UNTIL = Instant(100 * MINUTE), Instant(1000 * MINUTE)
PERIOD = Period(since=SINCE, until=UNTIL, settings=(Setting(Instant(0), Config()),))


def a_stay(ticket: int, at: int = 200, *, number: int = 0, contains: tuple[int, ...] = (), **more: Any) -> Submission:
    """In minutes. It merged after ten, unless it is said otherwise."""
    admitted = Instant(at * MINUTE)
    held = {PrNumber(other): Sha(f"h{other}") for other in contains}
    usual: dict[str, Any] = {
        "state": PrState.MERGED,
        "reason": Reason.MERGED_BY_QUEUE,
        "admitted_at": admitted,
        "state_changed_at": Instant(admitted + 10 * MINUTE),
        "merged_sha": Sha(f"m{ticket}"),
    }
    pull = PullRequest(number=PrNumber(number or ticket), head=Sha(f"h{ticket}"), base="main", contains=held)
    return Submission(ticket=Ticket(ticket), pull=pull, priority=100, submitted_at=admitted, **usual | more)


def ran(*tickets: int, base: str = "base", at: int = 200, tests: int = 1, **more: Any) -> Run:
    stack = tuple(Member(Ticket(ticket), PrNumber(ticket), Sha(f"h{ticket}")) for ticket in tickets)
    usual: dict[str, Any] = {
        "status": RunStatus.SUCCEEDED,
        "started_at": Instant(at * MINUTE),
        "decided_at": Instant((at + 10) * MINUTE),
    }
    return replace(a_run(1), stack=stack, tests=tests, base=Sha(base), **usual | more)


def history(*stays: Submission, runs: tuple[Run, ...] = ()) -> History:
    return read(stays, runs, PERIOD)


@pytest.mark.parametrize(
    ("state", "reason", "end"),
    [
        (PrState.MERGED, Reason.MERGED_BY_QUEUE, End.MERGED),
        (PrState.MERGED, Reason.MERGED_MANUALLY, End.LEFT),
        (PrState.MERGED, Reason.MERGED_DIRECTLY, End.BESIDE),
        (PrState.FAILED, Reason.TEST_RUN_FAILED, End.FAILED),
        (PrState.FAILED, Reason.TEST_RUN_TIMEOUT, End.FAILED),
        (PrState.FAILED, Reason.FAILED_BY_OPTIMIZATION, End.FAILED),
        (PrState.FAILED, Reason.MERGE_CONFLICT, End.BESIDE),
        (PrState.CANCELLED, Reason.PR_PUSHED, End.LEFT),
        (PrState.TESTING, Reason.TEST_RUN_STARTED, End.STAYED),
    ],
)
def test_how_a_stay_ended(state: PrState, reason: Reason, end: End):
    (arrival,) = history(a_stay(1, state=state, reason=reason)).arrivals
    assert arrival.end is end


def test_they_come_in_the_order_in_which_they_were_admitted():
    late, early = a_stay(1, at=300), a_stay(2, at=200)
    assert [each.number for each in history(late, early).arrivals] == [2, 1]


def test_whoever_was_never_admitted_never_came():
    not_ready = a_stay(1, state=PrState.NOT_READY, reason=Reason.DRAFT)
    never = a_stay(2, admitted_at=None, state=PrState.CANCELLED, reason=Reason.CANCELLED_BY_USER)
    assert history(not_ready, never).arrivals == ()


def test_whoever_came_before_the_period_and_whoever_is_still_there_is_not_counted():
    before, within = a_stay(1, at=50), a_stay(2, at=150)
    still = a_stay(3, at=160, state=PrState.PENDING, reason=Reason.READY)
    read = history(before, within, still)
    assert [each.counted for each in read.arrivals] == [False, True, False]
    assert read.arrivals[2].ended_at == UNTIL


def test_a_pull_request_that_came_again_follows_its_earlier_stay():
    first, other, again = a_stay(1, number=7), a_stay(2, at=210), a_stay(3, at=220, number=7)
    assert [each.after for each in history(first, other, again).arrivals] == [None, None, 0]


def test_one_stands_upon_those_whose_heads_it_holds():
    beneath, upon = a_stay(1), a_stay(2, at=210, contains=(1, 99))
    assert history(beneath, upon).arrivals[1].stands_upon == (0,)


def test_a_run_is_known_by_the_places_of_those_in_it():
    one, two = a_stay(1, at=220), a_stay(2, at=200)
    (run,) = history(one, two, runs=(ran(2, 1, at=230),)).runs
    assert (run.stack, run.tested, run.whole, run.length) == ((0, 1), (1,), True, 10 * MINUTE)


def test_of_a_run_with_strangers_beneath_only_those_that_it_tests_are_known():
    (run,) = history(a_stay(1), runs=(ran(99, 1), ran(99))).runs
    assert (run.stack, run.tests, run.whole) == ((0,), 1, False)


def test_a_run_of_the_target_itself_is_kept():
    (run,) = history(runs=(ran(tests=0, kind=RunKind.BARE, status=RunStatus.FAILED),)).runs
    assert (run.stack, run.tests, run.red) == ((), 0, True)


def test_a_base_that_is_no_landing_of_ours_tells_of_a_push():
    stays = a_stay(1, at=200), a_stay(2, at=220), a_stay(3, at=240)
    runs = (
        ran(1, base="what was there", at=200),
        ran(2, base="m1", at=220),
        ran(3, base="somebody else's", at=240),
        ran(3, base="somebody else's", at=245),
        ran(3, base="within a search", at=250, kind=RunKind.BISECTION),
    )
    assert history(*stays, runs=runs).pushes == (240 * MINUTE,)


def test_before_the_period_nobody_knows_what_was_a_push():
    runs = (ran(1, base="what was there", at=10), ran(1, base="perhaps of one that came earlier", at=20))
    assert history(a_stay(1), runs=runs).pushes == ()
