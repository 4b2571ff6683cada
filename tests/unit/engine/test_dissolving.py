"""A bisection ends when its evidence is gone."""

from mergeyard.domain.ids import Ticket
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState
from mergeyard.engine import dissolving
from tests.support.builders import Yard, a_yard


def a_search(budget: int = 1) -> Yard:
    """Through 1, 2, 3 and 4, with 9 in the line, so that nothing lands as tested."""
    yard = a_yard(prs=4, batch=4, bisection_concurrency=budget)
    yard.submit(9, no_batch=True)
    yard.build()
    yard.fails(1, 2, 3, 4)
    yard.build()
    return yard


def test_when_a_member_leaves_the_rest_is_tested_again_together():
    yard = a_search()
    yard.cancel(3)
    assert (yard.reason(1), yard.picture) == (Reason.BATCHMATE_REMOVED, "main ← 9… ← 1+2+4…")


def test_when_one_that_was_known_good_leaves_unmerged_the_search_is_void():
    yard = a_search()
    yard.passes(1, 2)
    yard.build()
    yard.cancel(1)
    assert yard.queue.bisections == ()


def test_when_one_that_was_known_good_merges_the_search_goes_on():
    yard = a_search()
    yard.passes(1, 2)
    yard.build()
    yard.change(1, is_open=False, merged_into="main")
    yard.tell(yard.pull_seen(1))
    (bisection,) = yard.queue.bisections
    assert bisection.merged == {Ticket(1)}


def test_when_one_that_is_not_known_good_is_merged_by_hand_the_search_is_void():
    yard = a_search()
    yard.change(4, is_open=False, merged_into="main")
    yard.tell(yard.pull_seen(4))
    assert (yard.state(4), yard.queue.bisections) == (PrState.MERGED, ())


def test_when_one_leaves_that_was_handed_back_from_behind_a_red_prefix_the_search_goes_on():
    yard = a_search()
    yard.fails(1, 2)
    yard.cancel(4)
    assert len(yard.queue.bisections) == 1


def test_when_the_suspect_leaves_the_search_is_over():
    yard = a_search()
    yard.passes(1, 2)
    yard.build()
    yard.fails(1, 2, 3)
    yard.cancel(3)
    assert yard.queue.bisections == ()


def test_only_members_are_found_in_a_bisection():
    yard = a_search()
    yard.passes(1, 2)
    found = [dissolving.bisection_of(yard.queue, yard.ticket(number)) is not None for number in (1, 2, 3, 4, 9)]
    assert found == [False, False, True, True, False]


def test_an_update_that_changes_nothing_gives_the_very_same_queue():
    queue = a_search().queue
    assert dissolving.update_bisection(queue, queue.bisections[0]) is queue
