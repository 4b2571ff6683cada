"""Whatever the OpenAPI document allows, and much that it does not, is sent to a busy queue; every answer fits it."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, cast

import httpx
import pytest
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case

from tests.contract.api.desk import QUEUE, REPOSITORY, Desk, StandingDesk, a_standing_desk
from tests.contract.api.random_requests import as_sent, drawn, judge, operations

PULLS = 8
BRANCHES = {"/createQueue": "one-without-a-queue", "/deleteQueue": "one-with-a-queue"}
"""All others ask about main."""
OURS = "https://ours.example"


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandingDesk]:
    with a_standing_desk(tmp_path_factory.mktemp("schemathesis"), batch=True, batchingMinSize=2) as standing:
        for branch in BRANCHES.values():
            standing.desk.world.origin.branch(branch, upon="main")
        standing.wait_for(_begin(standing.desk))
        yield standing


@pytest.fixture
def answered(standing: StandingDesk) -> Iterator[set[int]]:
    """The statuses of all answers; each endpoint finds the queue at work, and some of its calls reach deep."""
    standing.wait_for(_set_to_work(standing.desk))
    statuses = set[int]()
    yield statuses
    standing.wait_for(standing.desk.world.rest())
    assert statuses > {httpx.codes.OK.value}


async def _begin(desk: Desk) -> None:
    """Two merged, one is no longer there, and one will never be ready."""
    desk.world.open(*range(1, PULLS + 1))
    desk.world.set_pull(PULLS, draft=True)
    await desk.submit(1, 2)
    await desk.passes(1, 2)
    await desk.submit(3)
    await desk.ask("cancelPullRequest", pr={"number": 3})


async def _set_to_work(desk: Desk) -> None:
    await desk.post("createQueue", targetBranch=BRANCHES["/deleteQueue"])
    await desk.post("deleteQueue", targetBranch=BRANCHES["/createQueue"])
    for webhook in (await desk.send("listWebhooks", {})).json()["webhooks"]:
        await desk.send("deleteWebhook", {"id": webhook["id"]})
    made = (await desk.send("createWebhook", {"url": OURS})).json()
    desk.world.sender.secrets = {made["id"]: made["secret"]}
    await desk.ask("updateQueue", state="PAUSED")
    await desk.ask("updateQueue", state="RUNNING", batch=False, concurrency=5, requiredStatuses=["unit"])
    for number in range(4, PULLS + 1):
        await desk.call("setImpactedTargets", QUEUE | {"pr": {"number": number}, "impactedTargets": ["//app"]})
        await desk.post("submitPullRequest", pr={"number": number})


DRAWING = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list[Any](HealthCheck),
)


@pytest.mark.parametrize("operation", operations(), ids=lambda operation: operation.label)
def test_every_answer_fits_the_document(operation: Any, standing: StandingDesk, answered: set[int]):
    @DRAWING
    def every_answer_fits(case: Case[Any]) -> None:
        _name_what_is_there(case, standing.desk)
        response = standing.wait_for(_answer(case, standing.desk))
        judge(case, response)
        answered.add(response.status_code)

    drawn(operation, every_answer_fits)()


def _name_what_is_there(case: Case[Any], desk: Desk) -> None:
    """Random names lead nowhere: good ones are exchanged for those of our queue."""
    if not isinstance(case.body, dict):
        return
    case.body = deepcopy(case.body)  # an example is the very object that others read
    members = cast(dict[str, Any], case.body)
    if _is_good(members.get("repo"), *REPOSITORY):
        members["repo"] = REPOSITORY
    if isinstance(members.get("targetBranch"), str):
        members["targetBranch"] = BRANCHES.get(case.path, "main")
    if isinstance(members.get("waitSeconds"), int | float):  # 5.0 is a whole number too
        members["waitSeconds"] = min(members["waitSeconds"], 0)  # Nobody moves the clock meanwhile.
    if isinstance(members.get("testRunId"), str):
        members["testRunId"] = next(iter(desk.world.keeper.queue.runs), "none")
    if isinstance(members.get("id"), str):
        (members["id"],) = desk.world.sender.secrets
    if isinstance(members.get("eventId"), str):
        members["eventId"] = [heard.id for heard in desk.world.sender.received if heard.url == OURS][-1]
    pr = members.get("pr")
    if isinstance(pr, dict) and isinstance(cast(Any, pr).get("number"), int):
        pr["number"] = cast(int, pr["number"]) % (PULLS + 2)


def _is_good(value: Any, *names: str) -> bool:
    return isinstance(value, dict) and all(isinstance(cast(Any, value).get(name), str) for name in names)


async def _answer(case: Case[Any], desk: Desk) -> httpx.Response:
    sent = as_sent(case, "http://yard/v1", desk.secret)
    return await desk.client.request(
        sent.method, sent.url, params=sent.params, headers=sent.headers, content=sent.content
    )
