"""Whoever leaves is out of every place."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain.ids import PrNumber, Ticket
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState
from mergeyard.domain.transitions import IllegalTransition
from mergeyard.engine import leaving
from mergeyard.sim.world import START
from tests.support.builders import a_plain_queue, a_submission, a_yard

ONE = Ticket(1)


def test_one_that_left_is_in_no_place():
    queue = leaving.leave(a_plain_queue(a_submission(1)), ONE, PrState.CANCELLED, Reason.CANCELLED_BY_USER, START)
    assert (len(queue.submissions), len(queue.tickets), queue.waiting) == (0, 0, {})


def test_one_that_left_is_looked_at_no_more():
    yard = a_yard(prs=1)
    yard.tell(e.PullTouched(number=PrNumber(1)))
    yard.cancel(1)
    assert not yard.queue.looks


def test_a_stay_ends_with_its_reason():
    queue = leaving.leave(
        a_plain_queue(a_submission(1)),
        ONE,
        PrState.FAILED,
        Reason.TEST_RUN_FAILED,
        START,
        upon=(PrNumber(7),),
        words="it broke",
    )
    (gone,) = queue.news.concluded.values()
    assert (gone.state, gone.reason, gone.upon, gone.words) == (
        *(PrState.FAILED, Reason.TEST_RUN_FAILED),
        *((7,), "it broke"),
    )


def test_the_journal_tells_who_was_left_upon_whom():
    queue = leaving.leave(
        a_plain_queue(a_submission(1)), ONE, PrState.FAILED, Reason.TEST_RUN_FAILED, START, upon=(PrNumber(7),)
    )
    (entry,) = queue.news.journal.values()
    assert (entry.reason, getattr(entry, "upon", None)) == (Reason.TEST_RUN_FAILED, (7,))


def test_nobody_leaves_for_a_reason_that_the_table_does_not_hold():
    with pytest.raises(IllegalTransition):
        leaving.leave(a_plain_queue(a_submission(1)), ONE, PrState.MERGED, Reason.MERGED_BY_QUEUE, START)
