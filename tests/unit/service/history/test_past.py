"""The past falls into parts, and each thing that happened into exactly one."""

from mergeyard.domain.instants import Instant
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState
from mergeyard.service.history.past import Past, is_counted
from tests.support.pasts import a_past_run, a_restart, a_step, an_end

PAST = Past([an_end(at=at) for at in (9, 10, 19, 20, 35)], [a_past_run(at=at) for at in (9, 10, 29, 30)])
STARTS = (Instant(10), Instant(20), Instant(30))


def test_a_part_begins_with_its_start_and_ends_before_the_next():
    parts = PAST.parted(STARTS)
    assert [[figure.at for figure in part.figures] for part in parts] == [[10, 19], [20], [35]]
    assert [[run.decided_at for run in part.runs] for part in parts] == [[10], [29], [30]]


def test_what_is_between_holds_its_beginning_and_not_its_end():
    between = PAST.between(Instant(10), Instant(20))
    assert [figure.at for figure in between.figures] == [10, 19]
    assert [run.decided_at for run in between.runs] == [10]


def test_a_time_in_which_only_a_run_ended_is_not_empty():
    assert Past().empty
    assert not Past(runs=[a_past_run()]).empty
    assert not Past(figures=[an_end()]).empty


def test_ends_and_restarts_are_counted_and_nothing_else():
    assert all(map(is_counted, (an_end(), an_end(PrState.FAILED), an_end(PrState.CANCELLED), a_restart())))
    assert not is_counted(a_step(PrState.PENDING, PrState.TESTING, Reason.TEST_RUN_STARTED))
    assert not is_counted(a_step(PrState.PENDING_FAILURE, PrState.PENDING, Reason.BISECTION))
