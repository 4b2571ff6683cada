"""Urgent pull requests pass the line, but not those that are done, and nobody without end."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState, QueueState
from mergeyard.domain.targets import ALL, named
from tests.support.builders import Yard, a_parallel_yard, a_wait, a_yard, prs_beneath


def interruptions(yard: Yard) -> list[int]:
    return [batch.interruptions for batch in yard.queue.line.batches]


# Where an urgent one stands.


def test_an_urgent_one_stands_ahead_of_those_under_test():
    yard = a_yard(prs=2)
    yard.submit(3, priority=0)
    assert yard.picture == "main ← 3… ← 1… ← 2…"


def test_what_an_urgent_one_passes_is_tested_again_behind_it():
    yard = a_yard(prs=1)
    yard.submit(2, priority=0)
    assert (yard.state(1), yard.reason(1), prs_beneath(yard.run_of(1))) == (
        *(PrState.PENDING, Reason.SKIP_THE_LINE_INTERRUPTED),
        (2,),
    )


def test_an_urgent_one_stands_behind_an_earlier_urgent_one():
    yard = a_yard(prs=1)
    yard.submit(2, priority=0)
    yard.submit(3, priority=0)
    assert yard.picture == "main ← 2… ← 3… ← 1…"


def test_an_urgent_one_stands_behind_those_that_passed_at_the_front():
    yard = a_yard(prs=3)
    yard.passes(1)
    yard.submit(4, priority=0)
    assert yard.picture == "main ← 1✓ ← 4… ← 2… ← 3…"


def test_an_urgent_one_passes_those_that_passed_behind_others_that_did_not():
    yard = a_yard(prs=2)
    yard.passes(2)
    yard.submit(3, priority=0)
    assert yard.picture == "main ← 3… ← 1… ← 2…"


def test_an_urgent_one_stands_behind_those_that_a_run_behind_cleared():
    yard = a_yard(prs=3, depth=0)
    yard.passes(2)
    yard.submit(4, priority=0)
    assert yard.picture == "main ← 1✓ ← 2✓ ← 4… ← 3…"


def test_an_urgent_one_stands_behind_a_landing():
    yard = a_yard(prs=2)
    yard.passes(1)
    yard.intend()
    yard.submit(3, priority=0)
    assert yard.picture == "main ← 1✓ ← 3… ← 2…"


def test_an_urgent_one_is_a_batch_of_its_own_and_waits_for_none_to_fill():
    yard = a_yard(batch=2)
    yard.submit(1, priority=0)
    assert yard.picture == "main ← 1…"


def test_two_urgent_ones_are_two_batches():
    yard = a_yard(batch=2)
    yard.submit(1, 2, priority=0)
    assert yard.picture == "main ← 1… ← 2…"


def test_an_urgent_one_takes_the_next_free_slot():
    yard = a_yard(prs=2, concurrency=2)
    yard.submit(3)
    yard.submit(4, priority=0)
    assert yard.picture == "main ← 4… ← 1… ← 2"


def test_an_urgent_one_stands_behind_one_whose_commits_it_contains():
    yard = a_yard(prs=2)
    yard.submit(3, upon=1, priority=0)
    assert yard.picture == "main ← 1… ← 3… ← 2…"


def test_an_urgent_one_waits_for_one_whose_commits_it_contains():
    yard = a_yard(prs=2, concurrency=1)
    yard.submit(3, upon=2, priority=0)
    assert (yard.picture, yard.waits(3)) == ("main ← 1…", a_wait(Reason.WAITING_FOR_PRS_AHEAD, 2))


# Lanes.


def test_an_urgent_one_leaves_alone_what_shares_nothing_with_it():
    yard = a_parallel_yard("x", "y")
    runs = [yard.run_of(1), yard.run_of(2)]
    yard.submit(3, priority=0, targets=named("y"))
    assert (yard.run_of(1), yard.run_of(2) == runs[1]) == (runs[0], False)


def test_an_urgent_one_stands_ahead_of_all_that_it_shares_a_lane_with():
    yard = a_parallel_yard("x", "y", "xy")
    yard.submit(4, priority=0, targets=named("y"))
    assert yard.picture == "main ← 4… ∥ main ← 1… ∥ 4 ← 2… ∥ 4, 1, 2 ← 3…"


def test_an_urgent_one_does_not_come_beneath_one_that_must_not_be_passed_by_a_detour():
    """2 passed upon 1; to pass 1 would mean to stand beneath 2 as well, unless 1 is done too."""
    yard = a_parallel_yard("x", "xy")
    yard.passes(1)
    yard.passes(2)
    yard.submit(3, priority=0, targets=ALL)
    assert yard.picture == "main ← 1✓ ∥ 1 ← 2✓ ∥ 1, 2 ← 3…"


# Patience.


def test_every_interruption_of_a_run_is_counted():
    yard = a_yard(prs=1)
    yard.submit(2, priority=0)
    assert interruptions(yard) == [0, 1]


def test_one_that_had_no_run_was_not_interrupted():
    yard = a_yard(prs=2, concurrency=2)
    yard.submit(3, priority=0)
    yard.submit(4, priority=0)
    assert (yard.picture, interruptions(yard)) == ("main ← 3… ← 4… ← 1 ← 2", [0, 0, 2, 1])


def test_a_batch_interrupted_three_times_is_not_passed_again():
    yard = a_yard(prs=1)
    yard.submit(2, priority=0)
    yard.submit(3, priority=0)
    yard.submit(4, priority=0)
    yard.submit(5, priority=0)
    assert yard.picture == "main ← 2… ← 3… ← 4… ← 1… ← 5…"


def test_those_behind_one_that_is_not_passed_again_may_be_passed():
    yard = a_yard(prs=1)
    yard.submit(2, priority=0)
    yard.submit(3, priority=0)
    yard.submit(4, priority=0)
    yard.submit(6)
    yard.submit(5, priority=0)
    assert yard.picture == "main ← 2… ← 3… ← 4… ← 1… ← 5… ← 6"


@pytest.mark.parametrize("state", [QueueState.PAUSED])
def test_while_no_test_may_start_nobody_is_passed(state: QueueState):
    yard = a_yard(prs=3, concurrency=2)
    yard.tell(e.StateRequested(state=state))
    yard.submit(3, priority=0)
    assert yard.picture == "main ← 1… ← 2…"


def test_when_tests_may_start_again_the_line_is_passed():
    yard = a_yard(prs=3, concurrency=2)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.submit(3, priority=0)
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    assert yard.picture == "main ← 3… ← 1… ← 2"


# Becoming urgent.


def test_one_that_becomes_urgent_while_it_waits_passes_the_line():
    yard = a_yard(prs=2, concurrency=1)
    yard.submit(2, priority=0)
    assert yard.picture == "main ← 2… ← 1"


def test_one_that_becomes_urgent_in_the_line_passes_those_ahead():
    yard = a_yard(prs=3)
    yard.submit(3, priority=0)
    assert yard.picture == "main ← 3… ← 1… ← 2…"


def test_one_that_becomes_urgent_leaves_its_batch():
    yard = a_yard(prs=3, batch=3)
    yard.submit(2, priority=0)
    assert yard.picture == "main ← 2… ← 1+3…"


def test_one_that_becomes_urgent_at_the_front_goes_on():
    yard = a_yard(prs=2)
    runs = [yard.run_of(1), yard.run_of(2)]
    yard.submit(1, priority=0)
    assert [yard.run_of(1), yard.run_of(2)] == runs


def test_one_that_became_urgent_at_the_front_is_not_passed():
    yard = a_yard(prs=2)
    yard.submit(1, priority=0)
    yard.submit(3, priority=0)
    assert yard.picture == "main ← 1… ← 3… ← 2…"


def test_one_that_becomes_urgent_when_it_passed_keeps_its_place():
    yard = a_yard(prs=2, batch=2)
    yard.passes(1, 2)
    yard.submit(2, priority=0)
    assert yard.picture == "main ← 1+2✓"


def test_one_that_becomes_urgent_before_it_is_ready_passes_the_line_when_it_is():
    yard = a_yard(prs=1)
    yard.open(2)
    yard.change(2, draft=True)
    yard.submit(2)
    yard.submit(2, priority=0)
    yard.change(2, draft=False)
    yard.tell(yard.pull_seen(2))
    assert yard.picture == "main ← 2… ← 1…"


def test_one_that_becomes_urgent_in_a_bisection_stays_there():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    yard.submit(2, priority=0)
    assert yard.picture == "main ⋔ 1+2 : 1…"


def test_an_urgent_one_that_comes_back_passes_the_line_again():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    yard.build()
    yard.submit(2, priority=0)
    yard.submit(3, no_batch=True)
    yard.fails(1)
    assert yard.picture == "main ← 2… ← 3…"


def test_nothing_else_of_a_batch_changes_when_it_becomes_urgent():
    yard = a_yard(prs=1)
    (before,) = yard.queue.line.batches
    yard.submit(1, priority=0)
    assert yard.queue.line.batches == (replace(before, urgent=True),)


# Becoming urgent while nobody can be passed.


def one_that_became_urgent_in_a_paused_queue() -> Yard:
    yard = a_yard(prs=3)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.submit(2, priority=0)
    return yard


def test_one_that_becomes_urgent_in_the_line_of_a_paused_queue_passes_nobody():
    assert one_that_became_urgent_in_a_paused_queue().picture == "main ← 1… ← 2… ← 3…"


@pytest.mark.parametrize("state", [QueueState.RUNNING, QueueState.DRAINING])
def test_one_that_became_urgent_in_the_line_of_a_paused_queue_passes_when_tests_may_start(state: QueueState):
    yard = one_that_became_urgent_in_a_paused_queue()
    yard.tell(e.StateRequested(state=state))
    assert yard.picture == "main ← 2… ← 1… ← 3…"


def test_a_resumed_queue_without_urgent_ones_goes_on_as_it_was():
    yard = a_yard(prs=3)
    before = yard.queue.line
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    assert yard.queue.line == before
