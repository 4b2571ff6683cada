"""The fake GitLab cannot drift away from what GitLab publishes."""

from typing import Any

import httpx
import pytest

from tests.contract.host.gitlab_stage import GitlabStage
from tests.support.forges.gitlab.description import DESCRIPTION, Drift, check_answer, check_question
from tests.support.forges.gitlab.desk import Desk
from tests.support.forges.gitlab.showing import Showing
from tests.support.forges.gitlab.world import OURS, TOKEN

ONE = "GET /projects/:id/merge_requests/:iid"


def shown(gitlab: GitlabStage) -> dict[str, Any]:
    gitlab.open(1)
    return Showing("http://gitlab.test", gitlab.world.person(OURS)).merge_request(gitlab.project, gitlab.request())


def test_what_the_fake_shows_is_what_gitlab_shows(gitlab: GitlabStage):
    check_answer(ONE, shown(gitlab))


@pytest.mark.parametrize(
    "drift",
    [
        {"iid": "1"},
        {"detailed_merge_status": "fine"},
        {"created_at": "yesterday"},
        {"is_mergeable": True},
        {"user": {}},
    ],
)
def test_an_answer_that_drifted_is_caught(gitlab: GitlabStage, drift: dict[str, Any]):
    with pytest.raises(Drift):
        check_answer(ONE, shown(gitlab) | drift)


def test_a_member_that_is_missing_is_caught(gitlab: GitlabStage):
    answer = shown(gitlab)
    del answer["draft"]
    with pytest.raises(Drift, match="draft"):
        check_answer(ONE, answer)


def test_a_question_that_gitlab_would_not_understand_is_caught():
    check_question("GET /projects/:id/merge_requests", {"state", "sort"})
    with pytest.raises(Drift, match="sorted_by"):
        check_question("GET /projects/:id/merge_requests", {"state", "sorted_by"})


def test_everything_that_the_fake_answers_is_described(gitlab: GitlabStage):
    assert Desk(gitlab.world, gitlab.acts).answers().keys() == DESCRIPTION.keys()


def test_drift_shows_as_trouble_to_whoever_asks(gitlab: GitlabStage):
    gitlab.project.merge_method = "octopus"
    address = f"{gitlab.world.pages}/api/v4/projects/acme%2Fapp"
    answer = httpx.get(address, headers={"private-token": TOKEN}, trust_env=False)
    assert answer.status_code == 500
    assert "merge_method" in answer.text
