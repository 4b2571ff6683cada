"""Who stands accused: a red run with nothing unproven left in its stack but the accused themselves."""

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.states import QueueState
from mergeyard.engine import accusing
from mergeyard.engine.accusing import Accusation
from tests.support.builders import Yard, a_config, a_parallel_yard, a_red_prefix_upon_an_unseen_tip, a_yard


def accusation(yard: Yard, place: int = 0) -> Accusation | None:
    return accusing.against(yard.queue, yard.queue.line.batches[place])


def awaited(yard: Yard) -> list[tuple[int, ...]]:
    """The tickets of the batches that the first waits for."""
    return [batch.tickets for batch in accusing.successors_awaited(yard.queue, yard.queue.line.batches[0])]


def test_a_red_batch_with_nothing_ahead_stands_accused():
    yard = a_yard(prs=1, proven=False)
    red = yard.run_of(1)
    yard.fails(1)
    accused = accusation(yard)
    assert accused is not None
    assert (accused.run.id, accused.accused) == (red.id, (yard.ticket(1),))


def test_a_batch_under_test_does_not_stand_accused():
    assert accusation(a_yard(prs=1)) is None


def test_while_something_is_ahead_nobody_is_accused():
    yard = a_yard(prs=2)
    yard.fails(2)
    assert accusation(yard, place=1) is None


def test_in_parallel_mode_only_what_is_ahead_in_the_lane_counts():
    yard = a_parallel_yard("x", "y", proven=False)
    yard.fails(2)
    assert accusation(yard, place=1) is not None


def test_a_run_that_is_to_be_repeated_accuses_nobody():
    yard = a_yard(prs=2, test_retries=1)
    yard.tell(e.SettingsSaved(config=a_config(test_retries=1, concurrency=1)))
    yard.fails(1)
    assert accusation(yard) is None


def test_one_that_is_cleared_does_not_stand_accused():
    yard = a_yard(prs=2, depth=1)
    yard.passes(2)
    yard.fails(1)
    assert accusation(yard) is None


def test_one_whose_successors_are_under_test_does_not_stand_accused_yet():
    yard = a_yard(prs=2, depth=1)
    yard.fails(1)
    assert (accusation(yard), awaited(yard)) == (None, [(2,)])


def test_successors_beyond_the_depth_are_not_awaited():
    yard = a_yard(prs=3, depth=1, proven=False)
    yard.fails(2)
    yard.fails(1)
    assert accusation(yard) is not None


def test_successors_within_the_depth_are_awaited():
    yard = a_yard(prs=3, depth=2)
    yard.fails(2)
    yard.fails(1)
    assert accusation(yard) is None


def test_only_those_within_the_depth_are_awaited():
    yard = a_yard(prs=4, depth=2)
    yard.fails(1)
    assert awaited(yard) == [(2,), (3,)]


def test_of_those_within_the_depth_only_those_under_test_are_awaited():
    yard = a_yard(prs=3, depth=2)
    yard.fails(2)
    yard.fails(1)
    assert awaited(yard) == [(3,)]


def test_without_optimistic_merging_successors_are_not_awaited():
    yard = a_yard(prs=2, proven=False)
    yard.fails(1)
    assert accusation(yard) is not None


def test_the_base_of_an_accusation_that_nobody_saw_is_in_question():
    yard = a_yard(prs=1, proven=False)
    yard.fails(1)
    assert list(accusing.bases_in_question(yard.queue)) == [yard.host.tip]


def test_the_base_of_an_accusation_that_was_seen_is_in_no_question():
    yard = a_parallel_yard("x", "y", proven=False)
    yard.passes(2)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.fails(1)
    assert accusing.bases_in_question(yard.queue) == {}


def test_a_base_is_not_tested_bare_while_a_run_of_others_may_prove_it():
    yard = a_parallel_yard("x", "y", proven=False)
    yard.fails(1)
    assert yard.picture == "main ← 1✗ ∥ main ← 2…"


def test_a_base_is_tested_bare_when_the_runs_of_others_did_not_prove_it():
    yard = a_parallel_yard("x", "y", proven=False)
    yard.fails(1)
    yard.fails(2)
    assert yard.picture == "main ← 1✗ ∥ main ← 2✗ ?"


def test_a_base_that_a_run_of_others_proved_is_fit_to_blame_upon():
    yard = a_parallel_yard("x", "y", proven=False)
    yard.fails(1)
    yard.passes(2)
    assert (yard.picture, set(yard.ended)) == ("main ← 2✓", {1})


def test_the_base_of_a_confirmation_that_nobody_saw_is_in_question():
    """1 merged, somebody pushed while the queue was paused, and 2 is red again upon what nobody has seen."""
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    yard.build()
    yard.passes(1)
    yard.intend()
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.perform(t.Land)
    yard.push_to_target({"other": "other"})
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    yard.build()
    yard.fails(2)
    assert list(accusing.bases_in_question(yard.queue)) == [yard.host.tip]


def test_one_that_is_red_by_itself_in_a_bisection_stands_accused():
    yard = a_red_prefix_upon_an_unseen_tip()
    assert [each.accused for each in accusing.accusations(yard.queue)] == [(yard.ticket(3),)]


def test_the_base_of_a_red_prefix_that_nobody_saw_is_in_question():
    yard = a_red_prefix_upon_an_unseen_tip()
    assert list(accusing.bases_in_question(yard.queue)) == [yard.host.tip]


def test_a_suspect_that_others_were_red_with_does_not_stand_accused():
    yard = a_yard(prs=2, batch=2)
    yard.fails(1, 2)
    yard.build()
    yard.passes(1)
    assert list(accusing.accusations(yard.queue)) == []
