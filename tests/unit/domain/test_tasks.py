"""Tasks can be stored and read again."""

import msgspec
import pytest

from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PrNumber, RunId, Sha, Ticket
from tests.support.builders import ROOT, a_member, a_step

RUN = RunId("run")
ONE_OF_EACH: list[t.Task] = [
    t.LookAtTarget(known_tip=None, removed=frozenset({Sha("gone")})),
    t.LookAtPull(number=PrNumber(1)),
    t.LookAtChecks(run=RUN),
    t.BuildRun(
        run=RUN,
        onto=ROOT,
        base=ROOT,
        beneath=(a_member(1),),
        members=(a_member(2),),
        method=MergeMethod.SQUASH,
        forbidden=frozenset(),
    ),
    t.DeleteBranch(run=RUN),
    t.ExamineHead(ticket=Ticket(1), number=PrNumber(1), head=Sha("head"), tip=ROOT, forbidden=frozenset({Sha("gone")})),
    t.ComposeLanding(landing=1, base=ROOT, onto=ROOT, members=(a_member(1),), tested=(a_step("1"),)),
    t.ReadPulls(landing=1, numbers=(PrNumber(1),)),
    t.Land(
        landing=1,
        run=None,
        method=LandingMethod.TESTED_COMMIT,
        expected=ROOT,
        members=(a_member(1),),
        steps=(a_step("1"),),
        tested_tip=None,
    ),
]


def test_there_is_an_example_of_each():
    assert {type(task) for task in ONE_OF_EACH} == set(t.ToDo.__subclasses__())


@pytest.mark.parametrize("task", ONE_OF_EACH, ids=lambda task: type(task).__name__)
def test_a_task_is_the_same_after_a_journey_through_json(task: t.Task):
    assert msgspec.json.decode(msgspec.json.encode(task), type=t.Task) == task
