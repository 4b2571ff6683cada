"""The states of pull requests are named from where they stand and what their runs say."""

import pytest

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import PrNumber, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import CheckState, PrState
from mergeyard.domain.transitions import IllegalTransition
from mergeyard.engine import naming
from tests.support.builders import Yard, a_config, a_plain_queue, a_submission, a_yard, prs_tested

ONE = Ticket(1)
NOON = Instant(12)


def in_one_turn(yard: Yard, verdict: CheckState) -> None:
    """The only run is built and decided before anybody looks."""
    (build,) = yard.outstanding(t.BuildRun)
    built = yard.host.perform(build, 0)
    (run,) = yard.queue.runs
    state = {"unit": verdict}
    yard.tell(built, e.ChecksSeen(run=run, checks=state, as_of=yard.queue.counters.turns))


# Renaming.


def test_a_new_name_has_its_reason_and_time():
    queue = naming.rename(
        a_plain_queue(a_submission(1)), ONE, PrState.TESTING, Reason.TEST_RUN_STARTED, NOON, words="hello"
    )
    renamed = queue.submissions[ONE]
    assert (renamed.state, renamed.reason, renamed.state_changed_at, renamed.words) == (
        *(PrState.TESTING, Reason.TEST_RUN_STARTED),
        *(NOON, "hello"),
    )


def test_an_illegal_name_raises():
    with pytest.raises(IllegalTransition):
        naming.rename(a_plain_queue(a_submission(1)), ONE, PrState.MERGED, Reason.MERGED_BY_QUEUE, NOON)


def test_after_an_illegal_name_nothing_is_changed():
    queue = a_plain_queue(a_submission(1))
    before = queue.submissions[ONE]
    with pytest.raises(IllegalTransition):
        naming.rename(queue, ONE, PrState.MERGED, Reason.MERGED_BY_QUEUE, NOON)
    assert (queue.submissions[ONE], len(queue.news.journal)) == (before, 0)


@pytest.mark.parametrize("state", [PrState.NOT_READY, PrState.PENDING])
def test_one_that_was_not_tested_has_nothing_to_lose(state: PrState):
    queue = a_plain_queue(a_submission(1, state=state))
    assert naming.set_back(queue, ONE, Reason.TARGET_BRANCH_MOVED, NOON) is queue


def test_one_that_was_tested_is_set_back():
    queue = a_plain_queue(a_submission(1, state=PrState.TESTS_PASSED))
    after = naming.set_back(queue, ONE, Reason.TARGET_BRANCH_MOVED, NOON).submissions[ONE]
    assert (after.state, after.reason) == (PrState.PENDING, Reason.TARGET_BRANCH_MOVED)


# In the line.


def test_one_whose_run_is_not_built_is_pending():
    yard = a_yard()
    yard.submit(1)
    assert yard.state(1) is PrState.PENDING


def test_one_whose_run_is_in_progress_is_testing():
    yard = a_yard(prs=1)
    assert (yard.state(1), yard.reason(1)) == (PrState.TESTING, Reason.TEST_RUN_STARTED)


def test_one_whose_run_passed_has_passed():
    yard = a_yard(prs=2)
    yard.passes(2)
    assert (yard.state(2), yard.reason(2)) == (PrState.TESTS_PASSED, Reason.TEST_RUN_PASSED)


def test_one_whose_run_is_red_waits_to_be_judged():
    yard = a_yard(prs=2)
    yard.fails(2)
    assert (yard.state(2), yard.reason(2)) == (PrState.PENDING_FAILURE, Reason.TEST_RUN_FAILED)


def test_one_whose_time_ran_out_says_so():
    yard = a_yard(prs=2, testing_timeout_minutes=1)
    yard.pass_time(60_000)
    yard.tell(yard.checks_seen(yard.run_of(2), {}))
    assert (yard.state(2), yard.reason(2)) == (PrState.PENDING_FAILURE, Reason.TEST_RUN_TIMEOUT)


def test_one_that_a_run_behind_cleared_has_passed():
    yard = a_yard(prs=2, depth=0)
    yard.passes(2)
    assert (yard.state(1), yard.reason(1)) == (PrState.TESTS_PASSED, Reason.SUCCESSOR_PASSED)


def test_every_member_of_a_batch_has_the_same_name():
    yard = a_yard(prs=3, batch=3)
    assert [yard.state(number) for number in (1, 2, 3)] == [PrState.TESTING] * 3


def test_one_that_is_in_a_run_shows_it():
    yard = a_yard(prs=1)
    assert (yard.stay(1).run, yard.stay(1).was_in_run) == (yard.run_of(1).id, True)


def test_one_that_is_tested_again_shows_the_new_run():
    yard = a_yard(prs=1)
    yard.restart(1)
    yard.build()
    assert yard.stay(1).run == yard.run_of(1).id


def test_one_whose_red_run_is_to_be_repeated_is_still_testing():
    yard = a_yard(prs=1, test_retries=1)
    yard.fails(1)
    assert yard.timeline(1)[-1] == (PrState.TESTING, Reason.TEST_RUN_STARTED)


def test_a_red_one_that_gets_another_try_is_tested_again():
    yard = a_yard(prs=2)
    yard.fails(2)
    yard.tell(e.SettingsSaved(config=a_config(test_retries=1)))
    yard.build()
    assert yard.timeline(2)[-3:] == [
        (PrState.PENDING_FAILURE, Reason.TEST_RUN_FAILED),
        (PrState.PENDING, Reason.TESTS_RESTARTED),
        (PrState.TESTING, Reason.TEST_RUN_STARTED),
    ]


def test_the_timeline_skips_nothing_when_much_happens_in_one_turn():
    yard = a_yard(proven=False)
    yard.submit(1)
    in_one_turn(yard, CheckState.FAILED)
    assert [state for state, _ in yard.timeline(1)] == [
        PrState.NOT_READY,
        PrState.PENDING,
        PrState.TESTING,
        PrState.PENDING_FAILURE,
    ]


def test_one_may_pass_in_the_turn_in_which_its_run_is_built():
    yard = a_yard()
    yard.submit(1)
    in_one_turn(yard, CheckState.PASSED)
    assert yard.timeline(1)[-1] == (PrState.TESTS_PASSED, Reason.TEST_RUN_PASSED)


# In a bisection.


def a_search() -> Yard:
    """Through 1, 2, 3 and 4, one prefix at a time."""
    yard = a_yard(prs=4, batch=4, bisection_concurrency=1)
    yard.fails(1, 2, 3, 4)
    return yard


def test_those_of_a_red_batch_wait_to_be_judged():
    yard = a_search()
    assert [yard.state(number) for number in (1, 4)] == [PrState.PENDING_FAILURE] * 2


def test_those_under_test_in_a_bisection_are_testing():
    yard = a_search()
    yard.build()
    assert [yard.state(number) for number in (1, 2, 3, 4)] == [
        *[PrState.TESTING] * 2,
        *[PrState.PENDING_FAILURE] * 2,
    ]


def test_the_timeline_tells_that_the_guilty_one_is_sought():
    yard = a_search()
    yard.build()
    assert yard.timeline(1)[-2:] == [
        (PrState.PENDING, Reason.BISECTION),
        (PrState.TESTING, Reason.TEST_RUN_STARTED),
    ]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_one_in_several_probes_shows_one_of_them(number: int):
    yard = a_yard(prs=4, batch=4)
    yard.fails(1, 2, 3, 4)
    yard.build()
    shown = yard.stay(number).run
    assert shown is not None
    assert number in prs_tested(yard.queue.runs[shown])


def test_a_suspect_waits_to_be_judged_when_its_probe_is_over():
    yard = a_search()
    yard.build()
    yard.passes(1, 2)
    yard.build()
    yard.fails(1, 2, 3)
    assert (yard.state(3), yard.reason(3)) == (PrState.PENDING_FAILURE, Reason.TEST_RUN_FAILED)


def test_those_of_a_batch_whose_time_ran_out_say_so():
    yard = a_yard(prs=2, batch=2, testing_timeout_minutes=1)
    yard.pass_time(60_000)
    yard.perform(t.LookAtChecks)
    assert (yard.state(2), yard.reason(2)) == (PrState.PENDING_FAILURE, Reason.TEST_RUN_TIMEOUT)


def test_an_entry_names_the_run_that_is_shown():
    yard = a_yard(prs=1)
    run = yard.run_of(1)
    (entry,) = yard.fails(1).journal
    assert (entry.reason, getattr(entry, "run", None), getattr(entry, "number", None)) == (
        *(Reason.TEST_RUN_FAILED, run.id),
        PrNumber(1),
    )
