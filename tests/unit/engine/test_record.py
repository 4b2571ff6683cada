"""Events become facts; those about something else than what is known change nothing."""

import pytest
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode
from mergeyard.domain.ids import RunId, Sha, Ticket
from mergeyard.domain.pulls import HeadExam
from mergeyard.engine.record import record
from mergeyard.sim.world import START
from tests.support.builders import Yard, a_pull, a_queue, a_step, a_yard, an_exam

STRANGE = RunId("a run that nobody knows")
OF_A_RUN: list[e.Event] = [
    e.RunBuilt(run=STRANGE, steps=(a_step("1"),)),
    e.GroundLost(run=STRANGE),
    e.RunRefused(run=STRANGE, ticket=Ticket(1), refusal=e.BuildRefusal.REFUSED),
    e.BranchDeleted(run=STRANGE),
    e.ChecksSeen(run=STRANGE, checks={}, as_of=99),
]
OF_A_LANDING: list[e.Event] = [
    e.LandingComposed(landing=99, steps=(a_step("1"),)),
    e.CompositionRefused(landing=99),
    e.LandingRead(landing=99, pulls=(a_pull(1),), as_of=99),
    e.LandingSucceeded(landing=99, steps=(a_step("1"),)),
    e.LandingMissed(landing=99),
    e.LandingRefused(landing=99, words="no"),
    e.LandingLost(landing=99),
]


def names(event: e.Event) -> str:
    return type(event).__name__


def an_intended_yard() -> Yard:
    yard = a_yard(prs=1)
    yard.passes(1)
    yard.intend()
    return yard


@pytest.mark.parametrize("event", OF_A_RUN, ids=names)
def test_news_of_a_run_that_nobody_knows_changes_nothing(event: e.Event):
    queue = a_queue(prs=1)
    assert record(queue, event, START) is queue


@pytest.mark.parametrize("event", OF_A_LANDING, ids=names)
def test_news_of_another_landing_changes_nothing(event: e.Event):
    queue = an_intended_yard().queue
    assert record(queue, event, START) is queue


@pytest.mark.parametrize("event", OF_A_LANDING, ids=names)
def test_news_of_a_landing_changes_nothing_when_there_is_none(event: e.Event):
    queue = a_queue(prs=1)
    assert record(queue, event, START) is queue


def test_the_first_loss_of_the_host_counts():
    yard = a_yard()
    yard.tell(e.HostLost())
    lost_at = yard.now
    yard.pass_time(1000)
    yard.tell(e.HostLost())
    assert yard.queue.host_lost_at == lost_at


def test_a_host_that_answers_is_lost_no_longer():
    yard = a_yard()
    yard.tell(e.HostLost())
    yard.tell(e.HostFound())
    assert yard.queue.host_lost_at is None


def examined(exam: HeadExam, *forbidden: Sha) -> e.HeadExamined:
    return e.HeadExamined(ticket=Ticket(1), exam=exam, forbidden=frozenset(forbidden))


def test_an_examined_head_is_remembered():
    yard = a_yard(direct_merge_mode=DirectMergeMode.ALWAYS)
    yard.submit(1)
    yard.perform(t.ExamineHead)
    exam = yard.stay(1).exam
    assert exam is not None
    assert (exam.tip, exam.passed) == (yard.host.tip, frozenset[str]())


def test_an_exam_upon_another_tip_is_not_believed():
    queue = a_queue(prs=1)
    assert (
        record(queue, e.HeadExamined(ticket=Ticket(1), exam=an_exam("another tip"), forbidden=frozenset()), START)
        is queue
    )


def test_an_exam_of_one_that_left_is_not_believed():
    """In this very turn: it is still called the one to be examined."""
    queue = replace(a_queue(), direct=Ticket(1))
    assert queue.target.tip is not None
    assert (
        record(queue, e.HeadExamined(ticket=Ticket(1), exam=an_exam(queue.target.tip), forbidden=frozenset()), START)
        is queue
    )


def test_an_exam_of_one_whose_turn_has_passed_is_not_believed():
    queue = a_queue(prs=1)
    assert queue.target.tip is not None
    assert record(queue, examined(an_exam(queue.target.tip)), START) is queue


def test_an_exam_against_less_than_must_not_come_back_is_not_believed():
    queue = replace(a_queue(prs=1), direct=Ticket(1))
    assert queue.target.tip is not None
    assert record(queue, examined(an_exam(queue.target.tip), Sha("x")), START) is queue
    assert record(queue, examined(an_exam(queue.target.tip)), START) is not queue
