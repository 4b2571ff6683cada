"""The fake GitLab matches GitLab's published API description."""

from typing import Any

import httpx
import pytest

from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.forges.gitlab.api_routes import ApiRoutes
from tests.support.forges.gitlab.description import OPERATIONS, DescriptionMismatch, check_request, check_response
from tests.support.forges.gitlab.payloads import Payloads
from tests.support.forges.gitlab.world import BOT, TOKEN

ONE = "GET /projects/:id/merge_requests/:iid"


def read_merge_request(gitlab: GitlabEnvironment) -> dict[str, Any]:
    gitlab.open(1)
    return Payloads("http://gitlab.test", gitlab.world.user(BOT)).merge_request(gitlab.project, gitlab.request())


def test_the_responses_of_the_fake_match_the_api_description(gitlab: GitlabEnvironment):
    check_response(ONE, read_merge_request(gitlab))


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
def test_a_response_that_differs_from_the_description_is_caught(gitlab: GitlabEnvironment, drift: dict[str, Any]):
    with pytest.raises(DescriptionMismatch):
        check_response(ONE, read_merge_request(gitlab) | drift)


def test_a_member_that_is_missing_is_caught(gitlab: GitlabEnvironment):
    answer = read_merge_request(gitlab)
    del answer["draft"]
    with pytest.raises(DescriptionMismatch, match="draft"):
        check_response(ONE, answer)


def test_a_request_that_gitlab_would_not_accept_is_caught():
    check_request("GET /projects/:id/merge_requests", {"state", "sort"})
    with pytest.raises(DescriptionMismatch, match="sorted_by"):
        check_request("GET /projects/:id/merge_requests", {"state", "sorted_by"})


def test_every_endpoint_of_the_fake_is_described(gitlab: GitlabEnvironment):
    assert ApiRoutes(gitlab.world, gitlab.acts).handlers().keys() == OPERATIONS.keys()


def test_a_response_that_differs_is_an_error_for_the_client(gitlab: GitlabEnvironment):
    gitlab.project.merge_method = "octopus"
    address = f"{gitlab.world.web_url}/api/v4/projects/acme%2Fapp"
    answer = httpx.get(address, headers={"private-token": TOKEN}, trust_env=False)
    assert answer.status_code == 500
    assert "merge_method" in answer.text
