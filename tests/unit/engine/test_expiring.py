"""What waited too long is ended: time is news too."""

from mergeyard.domain import events as e
from mergeyard.domain.instants import HOUR, MINUTE
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import Mergeability, PrState, QueueState
from tests.support.builders import Yard, a_yard

PAUSED, RUNNING = QueueState.PAUSED, QueueState.RUNNING


def those_that_are_not_ready(count: int, hours: int = 2) -> Yard:
    yard = a_yard(not_ready_timeout_hours=hours)
    for number in range(1, count + 1):
        yard.open(number)
        yard.change(number, mergeability=Mergeability.UNKNOWN)
        yard.submit(number)
        yard.pass_time(MINUTE)
    return yard


def test_one_that_was_not_ready_for_too_long_is_cancelled():
    yard = those_that_are_not_ready(1)
    yard.pass_time(2 * HOUR)
    assert (yard.state(1), yard.reason(1)) == (PrState.CANCELLED, Reason.NOT_READY_TIMEOUT)


def test_nobody_is_cancelled_before_the_time():
    yard = those_that_are_not_ready(1)
    yard.pass_time(2 * HOUR - MINUTE - 1)
    assert yard.state(1) is PrState.NOT_READY


def test_everybody_has_the_same_time_from_the_own_beginning():
    yard = those_that_are_not_ready(3)
    yard.pass_time(2 * HOUR - 2 * MINUTE)
    assert [yard.state(number) for number in (1, 2, 3)] == [
        PrState.CANCELLED,
        PrState.CANCELLED,
        PrState.NOT_READY,
    ]


def test_several_may_be_cancelled_at_once():
    yard = those_that_are_not_ready(3)
    yard.pass_time(3 * HOUR)
    assert set(yard.ended) == {1, 2, 3}


def test_with_a_timeout_of_zero_nobody_is_cancelled():
    yard = those_that_are_not_ready(1, hours=0)
    yard.pass_time(1000 * HOUR)
    assert yard.state(1) is PrState.NOT_READY


def test_time_in_a_paused_queue_does_not_count():
    yard = those_that_are_not_ready(1)
    yard.tell(e.StateRequested(state=PAUSED))
    yard.pass_time(100 * HOUR)
    yard.tell(e.StateRequested(state=RUNNING))
    yard.pass_time(HOUR)
    assert yard.state(1) is PrState.NOT_READY


def test_one_submitted_to_a_paused_queue_has_its_whole_time_after_the_pause():
    yard = a_yard(not_ready_timeout_hours=2)
    yard.tell(e.StateRequested(state=PAUSED))
    yard.open(1)
    yard.change(1, draft=True)
    yard.submit(1)
    yard.pass_time(HOUR)
    yard.tell(e.StateRequested(state=RUNNING))
    yard.pass_time(2 * HOUR - 1)
    assert yard.state(1) is PrState.NOT_READY


def test_one_that_is_admitted_has_no_such_time():
    yard = a_yard(prs=1, not_ready_timeout_hours=1)
    yard.pass_time(2 * HOUR)
    assert yard.state(1) is PrState.TESTING
