"""Random requests, valid and invalid by our OpenAPI document, to a busy queue: every response matches the document."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, cast

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case

from mergeyard.adapters.signing import SshKey
from mergeyard.ports.git import Identity
from tests.contract.api.harness import QUEUE, REPOSITORY, ApiHarness, SharedApi, shared_api
from tests.contract.api.random_requests import check_response, make_request_test, operations, to_outgoing_request
from tests.support.scenario import ScenarioSetup

PULLS = 8
MERGED = 2
BRANCHES = {"/createQueue": "one-without-a-queue", "/deleteQueue": "one-with-a-queue"}
"""All other endpoints are called for main."""
OURS = "https://ours.example"
SIGNED = ScenarioSetup(identity=Identity("Mergeyard", "queue@example.org", SshKey(Ed25519PrivateKey.generate())))
"""Without a key there is no provenance."""


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedApi]:
    folder, settings = tmp_path_factory.mktemp("schemathesis"), {"batch": True, "batchingMinSize": 2}
    with shared_api(folder, SIGNED, **settings) as standing:
        for branch in BRANCHES.values():
            standing.api.world.origin.branch(branch, base="main")
        standing.wait_for(_begin(standing.api))
        yield standing


@pytest.fixture
def answered(standing: SharedApi) -> Iterator[set[int]]:
    """The statuses of all responses. Each endpoint finds an active queue."""
    standing.wait_for(_set_to_work(standing.api))
    statuses = set[int]()
    yield statuses
    standing.wait_for(standing.api.world.wait_until_idle())


async def _begin(api: ApiHarness) -> None:
    """Two pull requests are merged, one is removed, and one will never be ready."""
    api.world.open(*range(1, PULLS + 1))
    api.world.set_pull_request(PULLS, draft=True)
    await api.submit(1, 2)
    await api.passes(1, 2)
    await api.submit(3)
    await api.ask("cancelPullRequest", pr={"number": 3})


REVOKED_IDS: list[str] = []
"""The id of the token that `revokeToken` revokes."""


async def _set_to_work(api: ApiHarness) -> None:
    await api.post("createQueue", targetBranch=BRANCHES["/deleteQueue"])
    await api.post("deleteQueue", targetBranch=BRANCHES["/createQueue"])
    for webhook in (await api.send("listWebhooks", {})).json()["webhooks"]:
        await api.send("deleteWebhook", {"id": webhook["id"]})
    made = (await api.send("createWebhook", {"url": OURS})).json()
    api.world.sender.secrets = {made["id"]: made["secret"]}
    REVOKED_IDS[:] = [(await api.send("createToken", {"name": "revoked"})).json()["id"]]
    await api.ask("updateQueue", state="PAUSED")
    await api.ask("updateQueue", state="RUNNING", batch=False, concurrency=5, requiredStatuses=["unit"])
    for number in range(4, PULLS + 1):
        await api.call("setImpactedTargets", QUEUE | {"pr": {"number": number}, "impactedTargets": ["//app"]})
        await api.post("submitPullRequest", pr={"number": number})


THOROUGHNESS = {"quick": (Phase.generate,), "thorough": (Phase.explicit, Phase.generate)}
"""The explicit phase sends a request for each bound of each field in the document."""
EXAMPLES = {"quick": 5, "thorough": 30}


@pytest.mark.parametrize("extent", ["quick", pytest.param("thorough", marks=pytest.mark.long)])
@pytest.mark.parametrize("operation", operations(), ids=lambda operation: operation.label)
def test_every_response_matches_the_openapi_document(
    operation: Any, extent: str, standing: SharedApi, answered: set[int]
):
    @settings(
        max_examples=EXAMPLES[extent],
        phases=THOROUGHNESS[extent],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list[Any](HealthCheck),
    )
    def every_answer_fits(case: Case[Any]) -> None:
        _name_what_is_there(case, standing.api)
        response = standing.wait_for(_answer(case, standing.api))
        check_response(case, response)
        answered.add(response.status_code)

    make_request_test(operation, every_answer_fits)()
    if extent == "thorough":
        assert answered > {httpx2.codes.OK.value}  # some calls succeed, and some are refused


def _name_what_is_there(case: Case[Any], api: ApiHarness) -> None:
    """Replaces valid random names with those of our queue, because random names match nothing."""
    if not isinstance(case.body, dict):
        return
    case.body = deepcopy(case.body)  # examples share this object
    members = cast(dict[str, Any], case.body)
    if _is_good(members.get("repo"), *REPOSITORY):
        members["repo"] = REPOSITORY
    if isinstance(members.get("targetBranch"), str):
        members["targetBranch"] = BRANCHES.get(case.path, "main")
    if isinstance(members.get("waitSeconds"), int | float):  # 5.0 is an integer too
        members["waitSeconds"] = min(members["waitSeconds"], 0)  # the clock does not move meanwhile
    if isinstance(members.get("testRunId"), str):
        members["testRunId"] = next(iter(api.world.queue_actor.queue.runs), "none")
    if isinstance(members.get("id"), str):
        (members["id"],) = REVOKED_IDS if case.path == "/revokeToken" else api.world.sender.secrets
    if isinstance(members.get("eventId"), str):
        members["eventId"] = [received.id for received in api.world.sender.received if received.url == OURS][-1]
    pr = members.get("pr")
    if isinstance(pr, dict) and isinstance(cast(Any, pr).get("number"), int):
        pr["number"] = cast(int, pr["number"]) % (MERGED + 2 if case.path == "/getProvenance" else PULLS + 2)


def _is_good(value: Any, *names: str) -> bool:
    return isinstance(value, dict) and all(isinstance(cast(Any, value).get(name), str) for name in names)


async def _answer(case: Case[Any], api: ApiHarness) -> httpx2.Response:
    sent = to_outgoing_request(case, "http://queue/v1", api.secret)
    return await api.client.request(
        sent.method, sent.url, params=sent.params, headers=sent.headers, content=sent.content
    )
