"""The only door of the engine: news and the time go in, the queue as it should be comes out."""

from collections.abc import Callable

import pytest

from mergeyard.domain import events as e
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.journal import PrChanged
from mergeyard.domain.queue import News
from mergeyard.domain.reasons import Reason, Refusal
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.engine.decide import OF_WHAT_IS_UNDER_TEST, STEPS, Unsettled, decide
from mergeyard.sim.world import REQUIRED, START
from tests.model.planted import BUGS, planted
from tests.support.builders import Yard, a_config, a_parallel_yard, a_queue, a_red_prefix_upon_an_unseen_tip, a_yard


def test_deciding_again_without_news_gives_the_very_same_queue():
    queue = a_queue(prs=3)
    assert decide(queue, (), START).queue is queue


def test_news_that_changes_nothing_gives_the_very_same_queue():
    queue = a_queue(prs=3)
    assert decide(queue, [e.PullTouched(number=PrNumber(99))], START).queue is queue


def test_a_turn_that_changed_something_is_counted():
    queue = a_queue()
    assert decide(queue, [e.TargetTouched()], START).queue.counters.turns == queue.counters.turns + 1


def test_the_events_of_one_turn_are_taken_in_their_order():
    yard = a_yard()
    yard.open(1)
    yard.tell(yard.submission(1), e.CancelRequested(number=PrNumber(1)))
    assert yard.state(1) is PrState.CANCELLED


def test_a_refused_request_is_told_by_its_place():
    refused = e.CancelRequested(number=PrNumber(99))
    assert decide(a_queue(), [e.TargetTouched(), refused], START).refusals == {1: Refusal.PR_NOT_SUBMITTED}


def test_a_refused_request_does_not_stop_the_other_news():
    refused = e.CancelRequested(number=PrNumber(99))
    assert decide(a_queue(), [refused, e.TargetTouched()], START).queue.target.look


def test_every_change_is_in_the_journal():
    yard = a_yard()
    yard.open(1)
    told = [entry.reason for entry in yard.tell(yard.submission(1)).journal]
    assert told == [Reason.SUBMITTED, Reason.READY]


def test_an_entry_of_the_journal_tells_time_actor_and_run():
    yard = a_yard(prs=1)
    run = yard.run_of(1)
    (entry,) = yard.passes(1).journal
    assert entry == PrChanged(
        at=yard.now,
        ticket=yard.ticket(1),
        number=PrNumber(1),
        source=PrState.TESTING,
        to=PrState.TESTS_PASSED,
        reason=Reason.TEST_RUN_PASSED,
        run=run.id,
    )


def test_a_stay_that_ended_is_handed_out_and_forgotten():
    yard = a_yard(prs=1)
    decision = yard.cancel(1)
    assert ([each.number for each in decision.concluded], len(decision.queue.submissions)) == ([1], 0)


def test_a_run_that_nothing_depends_on_is_handed_out_and_forgotten():
    yard = a_yard(prs=1)
    run = yard.run_of(1)
    yard.cancel(1)
    decision = yard.tell(e.BranchDeleted(run=run.id))
    assert ([(each.id, each.status) for each in decision.finished], decision.queue.runs) == (
        [(run.id, RunStatus.CANCELLED)],
        {},
    )


def test_between_turns_the_queue_has_no_news():
    assert a_queue(prs=3).news == News()


def test_one_turn_goes_on_until_nothing_more_follows():
    """A leaves for its own failure, so B fits no longer and starts again, all at once."""
    yard = a_yard(prs=2)
    yard.fails(1)
    assert yard.picture == "main ← 2…"


# Steps that are left out.


def in_the_line() -> Yard:
    return a_yard(prs=3, concurrency=2)


def red_behind_others() -> Yard:
    yard = a_yard(prs=3)
    yard.fails(2)
    return yard


def cleared() -> Yard:
    yard = a_yard(prs=2, depth=1)
    yard.fails(1)
    yard.passes(2)
    return yard


def about_to_land() -> Yard:
    yard = a_parallel_yard("x", "y")
    yard.passes(1)
    yard.intend()
    return yard


def in_a_bisection() -> Yard:
    yard = a_yard(prs=4, batch=4, bisection_concurrency=1)
    yard.fails(1, 2, 3, 4)
    yard.build()
    return yard


def test_only_steps_are_left_out():
    assert set(STEPS) > OF_WHAT_IS_UNDER_TEST


@pytest.mark.parametrize(
    "yard_of",
    [in_the_line, red_behind_others, cleared, about_to_land, in_a_bisection, a_red_prefix_upon_an_unseen_tip],
)
def test_after_news_of_those_that_wait_no_step_that_was_left_out_has_anything_to_do(yard_of: Callable[[], Yard]):
    yard = yard_of()
    yard.open(99)
    yard.change(99, draft=True)
    yard.submit(99)
    yard.tell(e.PullTouched(number=PrNumber(99)))
    yard.cancel(99)
    assert [step for step in STEPS if step(yard.queue, yard.now) is not yard.queue] == []


@pytest.mark.parametrize(
    ("news", "reason"),
    [
        (e.SettingsSaved(config=a_config(required_statuses=("unit", "lint"))), Reason.REQUIRED_STATUSES_CHANGED),
        (e.TargetSeen(tip=Sha("moved"), as_of=99, required=REQUIRED), Reason.TARGET_BRANCH_MOVED),
        (e.CancelRequested(number=PrNumber(1)), Reason.PREREQUISITE_REMOVED),
    ],
    ids=["settings", "target", "line"],
)
def test_news_of_what_is_under_test_is_followed_in_the_same_turn(news: e.Event, reason: Reason):
    yard = a_yard(prs=2)
    before = yard.run_of(2)
    yard.tell(news)
    assert (yard.reason(2), yard.run_of(2).id != before.id) == (reason, True)


def test_an_engine_that_never_comes_to_rest_says_so_and_decides_nothing():
    (restless,) = [bug for bug in BUGS if bug.bug == "a step that is never done"]
    with planted(restless), pytest.raises(Unsettled, match="still changing"):
        a_yard(prs=1)
