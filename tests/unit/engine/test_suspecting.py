"""The suspect of a bisection is judged only upon those it was red with, and only once they have merged."""

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import OptimizationMode
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState, QueueState
from tests.support.builders import (
    Yard,
    a_config,
    a_red_prefix_upon_an_unseen_tip,
    a_wait,
    a_yard,
    prs_beneath,
)

SKIP = OptimizationMode.BISECTION_SKIP_REDUNDANT_TESTS


def a_suspect(*, skip: bool = False, retries: int = 0, budget: int = 5) -> Yard:
    """2 is red upon 1, which is about to be merged."""
    yard = a_yard(
        prs=2,
        batch=2,
        test_retries=retries,
        bisection_concurrency=budget,
        optimization_mode=SKIP if skip else OptimizationMode.OFF,
    )
    for _ in range(retries + 1):
        yard.fails(1, 2)
        yard.build()
    yard.passes(1)
    return yard


def a_confirmation(*, retries: int = 0) -> Yard:
    """1 has merged, and 2 is tested once more upon it."""
    yard = a_suspect(retries=retries)
    yard.perform_all()
    return yard


def upon_an_unseen_push() -> Yard:
    """1 has merged, somebody pushed while the queue was paused, and 2 is tested once more upon that."""
    yard = a_suspect()
    yard.intend()
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.perform(t.Land)
    yard.push_to_target({"other": "other"})
    yard.tell(e.TargetTouched())
    yard.perform(t.LookAtTarget)
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    yard.build()
    return yard


# Waiting.


def test_the_suspect_waits_until_the_others_have_merged():
    yard = a_suspect()
    assert (yard.state(2), yard.picture) == (PrState.PENDING_FAILURE, "main ← 1✓ ⋔ 2")


def test_the_suspect_goes_back_when_one_of_the_others_leaves_otherwise():
    yard = a_suspect()
    yard.cancel(1)
    assert (yard.reason(2), yard.picture) == (Reason.BATCHMATE_REMOVED, "main ← 2…")


# Without one more run.


def test_with_the_optimization_the_suspect_fails_when_the_others_have_merged():
    yard = a_suspect(skip=True)
    yard.perform_all()
    assert (yard.state(2), yard.reason(2)) == (PrState.FAILED, Reason.FAILED_BY_OPTIMIZATION)


def test_a_suspect_that_fails_names_those_that_it_was_red_upon():
    yard = a_suspect(skip=True)
    yard.perform_all()
    assert yard.stay(2).upon == (1,)


# With one more run.


def test_without_the_optimization_the_suspect_is_tested_once_more_upon_the_others():
    yard = a_confirmation()
    run = yard.run_of(2)
    assert (yard.state(2), run.base, prs_beneath(run)) == (PrState.TESTING, yard.host.tip, ())


def test_a_suspect_that_is_red_once_more_fails():
    yard = a_confirmation()
    yard.fails(2)
    assert (yard.state(2), yard.reason(2), yard.stay(2).upon) == (PrState.FAILED, Reason.TEST_RUN_FAILED, (1,))


def test_when_the_suspect_failed_the_bisection_is_over():
    yard = a_confirmation()
    yard.fails(2)
    assert yard.queue.bisections == ()


def test_a_suspect_that_is_green_goes_back():
    yard = a_confirmation()
    yard.passes(2)
    assert (yard.reason(2), yard.picture) == (Reason.BISECTION_PASSED, "main ← 2…")


def test_a_confirmation_is_repeated_for_its_retries():
    yard = a_confirmation(retries=1)
    yard.fails(2)
    yard.build()
    assert (yard.state(2), yard.run_of(2).attempt) == (PrState.TESTING, 1)


def test_a_confirmation_that_went_red_while_the_queue_was_paused_is_run_again():
    yard = a_confirmation()
    red = yard.run_of(2)
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.fails(2)
    yard.tell(e.StateRequested(state=QueueState.RUNNING))
    yard.build()
    assert (yard.state(2), yard.run_of(2).id != red.id) == (PrState.TESTING, True)


def test_a_confirmation_waits_for_room():
    """The only place is taken by the search through 3 and 4."""
    yard = a_yard(prs=4, batch=2, bisection_concurrency=1)
    yard.fails(1, 2)
    yard.build()
    yard.fails(3, 4)
    yard.passes(1)
    yard.build()
    yard.passes(1)
    yard.perform_all()
    assert (yard.state(1), yard.picture) == (PrState.MERGED, "main ⋔ 2 ⋔ 3+4 : 3…")


def test_a_confirmation_that_is_repeated_waits_for_room():
    yard = a_yard(prs=4, batch=2, bisection_concurrency=2, test_retries=1)
    for _ in range(2):
        yard.fails(1, 2)
        yard.build()
    yard.passes(1)
    for _ in range(2):
        yard.fails(3, 4)
        yard.build()
    yard.passes(1)
    yard.perform_all()
    yard.tell(e.SettingsSaved(config=a_config(batch=2, bisection_concurrency=1, test_retries=1)))
    yard.fails(2)
    assert (yard.run_of(2).active, yard.picture) == (False, "main ⋔ 2 ⋔ 3+4 : 3…")


def test_without_a_target_branch_nothing_is_confirmed():
    yard = a_suspect()
    yard.intend()
    yard.tell(e.StateRequested(state=QueueState.PAUSED))
    yard.perform(t.Land)
    gone = e.TargetSeen(tip=None, as_of=yard.queue.counters.turns, required=yard.host.required)
    yard.tell(gone, e.StateRequested(state=QueueState.RUNNING))
    assert yard.picture == "main ⋔ 2"


# Upon a base that nobody saw.


def test_a_suspect_that_is_red_upon_an_unseen_base_waits_for_a_bare_run():
    yard = upon_an_unseen_push()
    yard.fails(2)
    assert (yard.state(2), yard.picture) == (PrState.PENDING_FAILURE, "main ? ⋔ 2")


def test_a_suspect_that_is_red_upon_a_base_that_is_green_by_itself_fails():
    yard = upon_an_unseen_push()
    yard.fails(2)
    yard.build()
    yard.passes()
    assert (yard.state(2), yard.reason(2)) == (PrState.FAILED, Reason.TEST_RUN_FAILED)


def test_a_suspect_that_is_red_upon_a_base_that_is_red_by_itself_steps_aside():
    yard = upon_an_unseen_push()
    yard.fails(2)
    yard.build()
    yard.fails()
    assert (yard.state(2), yard.reason(2), yard.queue.bisections) == (PrState.PENDING, Reason.BASE_BROKEN, ())


# Red by itself.


def test_one_that_is_red_by_itself_upon_an_unseen_base_waits_for_a_bare_run():
    yard = a_red_prefix_upon_an_unseen_tip()
    assert (yard.state(3), yard.picture) == (PrState.PENDING_FAILURE, "main ← 4… ? ⋔ 3")


def test_one_that_is_red_by_itself_upon_a_base_that_is_green_fails():
    yard = a_red_prefix_upon_an_unseen_tip()
    yard.passes()
    assert (yard.state(3), yard.reason(3), yard.stay(3).upon) == (PrState.FAILED, Reason.TEST_RUN_FAILED, ())


def test_one_that_is_red_by_itself_upon_a_base_that_is_red_too_steps_aside():
    yard = a_red_prefix_upon_an_unseen_tip()
    yard.fails()
    assert (yard.state(3), yard.waits(3), yard.queue.bisections) == (PrState.PENDING, a_wait(Reason.BASE_BROKEN), ())
