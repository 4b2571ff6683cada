"""The same request, or two conflicting requests, at several replicas at the same time: one effect, one response."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.replicas.installation import Installation
from tests.support.api_client import ApiClient, ApiRefused
from tests.support.environment import QueueEnvironment

REPETITIONS = 15

Request = Callable[[ApiClient], dict[str, Any]]


def send_concurrently(
    installation: Installation, queue: QueueEnvironment, *requests: Request
) -> list[dict[str, Any] | str]:
    """Each request goes through another replica. Returns responses, or the codes of refusals."""
    apis = [installation.api_of(replica, queue) for replica in installation.replicas]

    def ask(request: Request, api: ApiClient) -> dict[str, Any] | str:
        try:
            return request(api)
        except ApiRefused as refused:
            return refused.code

    with ThreadPoolExecutor() as threads:
        return list(threads.map(ask, requests, apis))


@pytest.mark.long
def test_same_key_at_the_same_time_has_one_effect_and_one_response(trio: Installation):
    queue = trio.queue("same-key")
    queue.update_queue(state="PAUSED")
    for at in range(REPETITIONS):
        pull_request = {"number": queue.open_pr({f"{at}.txt": "1"})}
        for path in ("submitPullRequest", "cancelPullRequest", "submitPullRequest"):
            key = f"{path} {pull_request} {len(queue.api.requests)}"

            def ask(
                api: ApiClient, path: str = path, key: str = key, pull_request: dict[str, int] = pull_request
            ) -> dict[str, Any]:
                return api.post(path, key=key, pr=pull_request)

            first, *others = send_concurrently(trio, queue, ask, ask, ask)
            assert isinstance(first, dict)
            assert others == [first, first]
        queue.cancel(pull_request["number"])
    submissions = queue.api.post("listPullRequests", take=100)["pullRequests"]
    assert len(submissions) == 2 * REPETITIONS


def test_of_concurrent_creations_of_one_queue_one_succeeds(trio: Installation):
    queue = trio.without_queue("contested")

    def create(api: ApiClient) -> dict[str, Any]:
        return api.post("createQueue", requiredStatuses=["unit"])

    for _ in range(REPETITIONS):
        answers = send_concurrently(trio, queue, create, create, create)
        assert sorted(str(answer) for answer in answers if isinstance(answer, str)) == ["queue_already_exists"] * 2
        queue.api.post("deleteQueue")
    queue.create_queue()


@pytest.mark.long
def test_same_creation_or_deletion_happens_once_and_gets_the_same_response(trio: Installation):
    queue = trio.without_queue("created")
    for at in range(REPETITIONS):

        def create(api: ApiClient, key: str = f"create {at}") -> dict[str, Any]:
            return api.post("createQueue", key=key, requiredStatuses=["unit"])

        def delete(api: ApiClient, key: str = f"delete {at}") -> dict[str, Any]:
            return api.post("deleteQueue", key=key)

        for ask in (create, delete):
            first, *others = send_concurrently(trio, queue, ask, ask, ask)
            assert isinstance(first, dict)
            assert others == [first, first]
    queue.create_queue()


@pytest.mark.long
def test_concurrent_deletion_and_submission_have_one_effect(trio: Installation):
    queue = trio.without_queue("leaving")
    number = queue.open_pr({"a.txt": "1"})
    outcomes = set[bool]()
    for _ in range(REPETITIONS):
        queue.create_queue()
        queue.update_queue(state="PAUSED")

        def delete(api: ApiClient) -> dict[str, Any]:
            return api.post("deleteQueue")

        def submit(api: ApiClient) -> dict[str, Any]:
            return api.post("submitPullRequest", pr={"number": number})

        deleted, submitted = send_concurrently(trio, queue, delete, submit)
        outcomes.add(isinstance(submitted, dict))
        if isinstance(submitted, dict):
            assert deleted == "queue_not_empty"
            assert queue.cancel(number)["id"] == submitted["id"]
            queue.evidence.collect()
            queue.api.post("deleteQueue")
        else:
            assert submitted == "queue_not_found"
            assert isinstance(deleted, dict)
    queue.create_queue()
    assert outcomes
