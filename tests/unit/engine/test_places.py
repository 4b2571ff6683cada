"""Pull requests move between the places of the queue, and stand in one at a time."""

from msgspec.structs import replace

from mergeyard.domain.ids import BatchId, Ticket
from mergeyard.domain.pulls import Hold
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState
from mergeyard.domain.targets import named
from mergeyard.engine import places
from mergeyard.sim.world import START
from tests.support.builders import a_parallel_yard, a_plain_queue, a_submission, a_yard

ONE, TWO, THREE = Ticket(1), Ticket(2), Ticket(3)
HOLD = Hold(Reason.CONFLICTS_WITH_PR_AHEAD, blockers=(TWO,))


def waiting(queue: Queue) -> dict[int, list[Ticket]]:
    return {priority: list(bucket) for priority, bucket in queue.waiting.items()}


def a_line_of_three() -> Queue:
    return a_yard(prs=3, batch=3).queue


def test_an_update_that_changes_nothing_gives_the_very_same_queue():
    queue = a_plain_queue(a_submission(1))
    assert places.update(queue, a_submission(1)) is queue


def test_the_waiting_stand_by_their_priority():
    queue = a_plain_queue(a_submission(1, priority=7), a_submission(2), a_submission(3))
    assert waiting(queue) == {7: [1], 100: [2, 3]}


def test_one_that_is_taken_out_of_the_waiting_is_gone_from_there():
    queue = places.take_out(a_plain_queue(a_submission(1), a_submission(2)), ONE)
    assert waiting(queue) == {100: [2]}


def test_a_priority_with_nobody_left_is_forgotten():
    assert places.take_out(a_plain_queue(a_submission(1)), ONE).waiting == {}


def test_one_that_is_held_back_knows_why():
    queue = places.take_out(a_plain_queue(a_submission(1)), ONE)
    held = places.to_held(queue, ONE, HOLD)
    assert (list(held.held), held.submissions[ONE].hold) == ([1], HOLD)


def test_one_that_waits_again_is_held_no_longer():
    held = places.to_held(places.take_out(a_plain_queue(a_submission(1)), ONE), ONE, HOLD)
    queue = places.to_waiting(places.take_out(held, ONE), ONE)
    assert (list(queue.held), queue.submissions[ONE].hold, waiting(queue)) == ([], None, {100: [1]})


def test_one_that_is_not_ready_stands_by_the_clock():
    queue = places.to_not_ready(places.take_out(a_plain_queue(a_submission(1)), ONE), ONE, 500)
    assert list(queue.not_ready) == [(500, 1)]


def test_one_that_is_ready_is_taken_out_of_those_that_are_not():
    queue = places.to_not_ready(places.take_out(a_plain_queue(a_submission(1)), ONE), ONE, 500)
    assert list(places.take_out(queue, ONE).not_ready) == []


def test_a_batch_that_loses_a_member_keeps_its_place():
    queue = places.take_out(a_line_of_three(), TWO)
    assert [(batch.id, batch.tickets) for batch in queue.line.batches] == [(1, (1, 3))]


def test_a_batch_that_loses_its_last_member_is_gone():
    queue = a_yard(prs=1).queue
    assert places.take_out(queue, ONE).line.batches == ()


def test_a_batch_that_loses_a_member_impacts_only_what_the_others_do():
    yard = a_parallel_yard("x", "xy", batch=2)
    queue = places.take_out(yard.queue, TWO)
    assert queue.line.batches[0].targets == named("x")


def test_a_batch_whose_targets_changed_keeps_its_place_in_a_lane_that_is_new():
    yard = a_parallel_yard("x", "y", "x")
    uploaded = places.update(yard.queue, replace(yard.stay(2), targets=named("x")))
    batch = places.batch_of(uploaded, TWO)
    assert batch is not None
    assert places.renew_lane(uploaded, batch).line.ahead == {1: (), 2: (1,), 3: (1, 2)}


def test_a_batch_whose_targets_changed_impacts_what_its_members_do_now():
    yard = a_parallel_yard("x")
    uploaded = places.update(yard.queue, replace(yard.stay(1), targets=named("y")))
    (renewed,) = places.renew_lane(uploaded, yard.queue.line.batches[0]).line.batches
    assert renewed == replace(yard.queue.line.batches[0], targets=named("y"))


def test_a_batch_is_found_by_any_of_its_members():
    batch = places.batch_of(a_line_of_three(), THREE)
    assert batch is not None
    assert batch.tickets == (1, 2, 3)


def test_one_that_waits_is_in_no_batch():
    assert places.batch_of(a_plain_queue(a_submission(1)), ONE) is None


def test_batches_are_numbered():
    queue, batch = places.new_batch(a_line_of_three(), (ONE,))
    assert (batch.id, queue.counters.batches) == (2, 2)


def test_a_batch_that_is_removed_leaves_the_others():
    queue = a_yard(prs=3).queue
    batch = places.batch_of(queue, TWO)
    assert batch is not None
    assert places.remove_batch(queue, batch).line.ahead == {1: (), 3: (BatchId(1),)}


def test_those_that_are_sent_back_wait_again():
    yard = a_yard(prs=2)
    queue = places.send_back(places.take_out(yard.queue, ONE), (ONE,), Reason.BISECTION, START)
    assert (waiting(queue), queue.submissions[ONE].state) == ({100: [1]}, PrState.PENDING)


def test_those_that_are_held_back_are_to_be_tested_again():
    yard = a_yard(prs=2)
    hold = Hold(Reason.BASE_BROKEN, tip=yard.host.tip)
    queue = places.hold_back(places.take_out(yard.queue, ONE), (ONE,), hold, START)
    assert (list(queue.held), queue.submissions[ONE].reason) == ([1], Reason.BASE_BROKEN)


def test_those_that_are_reunited_know_each_other():
    queue = places.reunite(a_plain_queue(a_submission(1), a_submission(2)), (ONE, TWO))
    assert [each.reunion for each in queue.submissions.values()] == [(1, 2), (1, 2)]
