"""Tasks can be stored and read again."""

import msgspec
import pytest

from mergeyard.domain import tasks as t
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha
from tests.support.builders import ROOT, a_member, a_step

RUN = RunId("run")
ONE_OF_EACH: list[t.Task] = [
    t.ReadTargetBranch(known_tip=None),
    t.ReadPullRequest(number=PullRequestNumber(1)),
    t.ReadChecks(run=RUN),
    t.BuildRun(
        run=RUN,
        onto=ROOT,
        base=ROOT,
        built_members=(a_member(1),),
        members=(a_member(2),),
        merge_method=MergeMethod.SQUASH,
        forbidden_commits=frozenset({Sha("gone")}),
        read_head_checks=True,
    ),
    t.DeleteBranch(run=RUN),
    t.RebaseLanding(landing=1, base=ROOT, onto=ROOT, members=(a_member(1),), tested_steps=(a_step("1"),)),
    t.ReadPullRequests(landing=1, numbers=(PullRequestNumber(1),)),
    t.Land(
        landing=1,
        run=RUN,
        landing_method=LandingMethod.TESTED_COMMIT,
        expected_tip=ROOT,
        members=(a_member(1),),
        steps=(a_step("1"),),
        test_branch_tip=Sha("1"),
    ),
]


def test_there_is_an_example_of_each():
    assert {type(task) for task in ONE_OF_EACH} == set(t.TaskBase.__subclasses__())


@pytest.mark.parametrize("task", ONE_OF_EACH, ids=lambda task: type(task).__name__)
def test_a_task_is_the_same_after_a_json_round_trip(task: t.Task):
    assert msgspec.json.decode(msgspec.json.encode(task), type=t.Task) == task
