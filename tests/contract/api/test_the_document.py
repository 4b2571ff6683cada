"""Every row of the document, held against real answers in real situations."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from mergeyard.domain.tokens import Scope
from tests.contract.api import the_document as doc
from tests.contract.api.desk import QUEUE, a_desk, code_of
from tests.contract.api.the_document import Row
from tests.contract.api.tour import Answers, Tour, a_tour
from tests.support.asynchronous import asynchronous


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Tour:
    async def walked() -> Tour:
        async with a_desk(tmp_path_factory.mktemp("tour")) as desk:
            return await a_tour(desk)

    return asyncio.run(walked())


def named(row: Row) -> str:
    return row.name


def is_of(kind: str, value: Any) -> bool:
    """Integers are written as integers: 1.0 is no number of a pull request."""
    match kind:
        case "string" | "string enum":
            return isinstance(value, str)
        case "number":
            return isinstance(value, int) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "object":
            return isinstance(value, dict)
        case _:
            return isinstance(value, list) and all(is_of(kind.removesuffix("[]"), item) for item in value)  # pyright: ignore[reportUnknownVariableType]


def fits(row: Row, answers: Answers) -> bool:
    assert answers
    return all(is_of(row.kind, answer[row.name]) if row.name in answer else not row.required for answer in answers)


# 2.3


@pytest.mark.parametrize("row", doc.SUBMITTED_PULL_REQUEST, ids=named)
def test_a_submitted_pull_request_has_the_field(row: Row, tour: Tour):
    assert fits(row, tour.pulls)
    assert any(row.name in pull for pull in tour.pulls)


@pytest.mark.parametrize("row", doc.READINESS, ids=named)
def test_readiness_has_the_signal(row: Row, tour: Tour):
    assert fits(row, [pull["readiness"] for pull in tour.pulls])


def test_what_is_required_of_a_pull_request_is_never_an_empty_name(tour: Tour):
    for pull in tour.pulls:
        assert all((pull["id"], pull["priorityName"], pull["prTitle"], pull["prSha"], pull["prBaseBranch"]))


def test_whoever_is_tested_was_ready_by_the_readiness_rule(tour: Tour):
    for pull in tour.pulls:
        if pull["state"] in {"testing", "tests_passed", "pending_failure", "merged"}:
            ready = pull["readiness"]
            assert ready["doesBaseBranchMatch"]
            assert ready["hasImpactedTargets"] or not ready["requiresImpactedTargets"]


def test_the_default_priority_is_named_only_where_it_was_used(tour: Tour):
    used = {pull["prNumber"]: pull.get("usedDefaultPriorityName") for pull in tour.pulls}
    assert (used[1], used[5]) == ("medium", None)


# 2.4


@pytest.mark.parametrize("row", doc.TEST_RUN_DETAILS, ids=named)
def test_a_run_has_the_field(row: Row, tour: Tour):
    assert fits(row, tour.runs)
    assert any(row.name in run for run in tour.runs)


@pytest.mark.parametrize("row", doc.STATUS_CHECK, ids=named)
def test_a_status_check_has_the_field(row: Row, tour: Tour):
    assert fits(row, [check for run in tour.runs for check in run["statusChecks"]])


@pytest.mark.parametrize("row", doc.TESTED_PULL_REQUEST, ids=named)
def test_a_tested_pull_request_has_the_field(row: Row, tour: Tour):
    assert fits(row, [pull for run in tour.runs for pull in run["testedPullRequests"]])


def test_targets_are_told_only_once_some_were_uploaded(tour: Tour):
    told = ["impactedTargets" in run for run in tour.runs]
    assert told == sorted(told)
    assert {True, False} == set(told)
    assert told == ["impactedTargetsForTestedPrs" in run for run in tour.runs]


def test_the_targets_of_a_run_are_all_of_its_branch_or_of_those_it_tests(tour: Tour):
    last = tour.runs[-1]
    assert [pull["prNumber"] for pull in last["testedPullRequests"]] == [8]
    assert last["dependentPrs"] == [7]
    assert last["impactedTargets"] == ["//app", "//lib"]
    assert last["impactedTargetsForTestedPrs"] == ["//lib"]


def test_every_source_of_required_statuses_that_a_plain_host_has_is_told(tour: Tour):
    """A plain host protects no branch."""
    told = {run["requiredStatusesSource"] for run in tour.runs}
    assert told == doc.REQUIRED_STATUSES_SOURCES - {"repo_provider_branch_protection"}


def test_times_are_iso_8601_in_utc(tour: Tour):
    times = [pull["stateChangedAt"] for pull in tour.pulls] + [run["createdAt"] for run in tour.runs]
    assert set(times) == {"2023-11-14T22:13:20.000Z"}


# 2.5, 3


def test_a_queue_has_a_state_its_configuration_and_everybody_in_it(tour: Tour):
    queue = tour.queues[0]
    assert queue["state"] == "RUNNING"
    assert (queue["mode"], queue["concurrency"], queue["batch"]) == ("single", 1, False)
    enqueued = {pull["prNumber"]: pull["state"] for pull in queue["enqueuedPullRequests"]}
    assert enqueued == {5: "testing", 6: "pending", 4: "not_ready"}


def test_every_state_of_a_pull_request_is_reached(tour: Tour):
    assert {pull["state"] for pull in tour.pulls} == doc.PR_STATES


def test_every_state_of_a_queue_is_reached(tour: Tour):
    assert {queue["state"] for queue in tour.queues} == doc.QUEUE_STATES


def test_every_status_of_a_run_is_reached(tour: Tour):
    assert {run["status"] for run in tour.runs} == doc.RUN_STATUSES


# 1, 4, 5


def test_every_answer_is_a_json_object_but_the_metrics(tour: Tour):
    for path, kinds in tour.contents.items():
        metrics = path == f"{doc.PREFIX}/getMergeQueueMetrics"
        assert set(kinds) == {f"{doc.METRICS_TYPE} #" if metrics else "application/json {"}


def test_the_tour_asks_every_endpoint_but_the_one_that_ends_a_queue(tour: Tour):
    assert {doc.PREFIX + path for path in doc.ENDPOINTS} - tour.contents.keys() == {"/v1/deleteQueue"}


@asynchronous
async def test_a_queue_is_deleted_only_when_it_is_empty(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        await desk.submit(1)
        assert await desk.refuses("deleteQueue") == "queue_not_empty"
        await desk.ask("cancelPullRequest", pr={"number": 1})
        await desk.ask("deleteQueue")
        assert await desk.refuses("getQueue") == "queue_not_found"


@asynchronous
async def test_an_endpoint_has_its_address_its_method_and_its_required_members(tmp_path: Path):
    whole: dict[str, Any] = QUEUE | {"pr": {"number": 1}, "impactedTargets": [], "testRunId": "x"}
    async with a_desk(tmp_path) as desk:
        for path, (method, members) in doc.ENDPOINTS.items():
            other = {"GET": "POST", "POST": "GET"}[method]
            refused = await desk.client.request(other, doc.PREFIX + path)
            assert (code_of(refused), refused.headers["allow"]) == ("method_not_allowed", method)
            for member in members:
                body = {name: value for name, value in whole.items() if name in members - {member}}
                assert code_of(await desk.send(path[1:], body)) == "invalid_request", (path, member)


@asynchronous
async def test_every_endpoint_asks_for_the_token(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        for path, (method, _) in doc.ENDPOINTS.items():
            refused = await desk.client.request(method, doc.PREFIX + path)
            assert (code_of(refused), refused.status_code) == ("missing_token", 401)
            refused = await desk.client.request(method, doc.PREFIX + path, headers={doc.TOKEN_HEADER: "my_own"})
            assert (code_of(refused), refused.status_code) == ("invalid_token", 401)


@asynchronous
async def test_every_endpoint_with_a_body_takes_only_json(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        for path, (method, _) in doc.ENDPOINTS.items():
            if method == "POST":
                refused = await desk.send(path[1:], b"{}", headers={"content-type": "text/plain"})
                assert code_of(refused) == "unsupported_media_type"


# 4.3, 4.6, 8


@asynchronous
async def test_impacted_targets_are_a_list_or_all(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        for targets, told in ((["a", "b"], 2), ("ALL", "ALL"), ([], 0)):
            answer = await desk.ask("setImpactedTargets", pr={"number": 1}, impactedTargets=targets)
            assert answer["impactedTargets"] == told


@asynchronous
async def test_metrics_are_of_all_repositories_or_of_one(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        everything = await desk.metrics()
        assert everything.headers["content-type"] == doc.METRICS_TYPE
        assert (await desk.metrics("?repo=acme/app&repoHost=git.local")).text == everything.text
        for half in ("?repo=acme/app", "?repoHost=git.local"):
            assert code_of(await desk.metrics(half)) == "invalid_request"
        limited = await desk.token(Scope.READ)
        assert (await desk.metrics(token=limited)).status_code == 200


async def in_parts(body: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(body), 1024 * 1024):
        yield body[at : at + 1024 * 1024]


@pytest.mark.parametrize("whole", [True, False], ids=["at once", "in chunks"])
@asynchronous
async def test_a_body_of_20_mib_is_served_and_one_byte_more_is_not(tmp_path: Path, whole: bool):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        body = json.encode(QUEUE | {"pr": {"number": 1}, "impactedTargets": [f"//{at:01000}" for at in range(20_000)]})
        body = body.ljust(doc.MOST_BYTES)
        served = await desk.send("setImpactedTargets", body if whole else in_parts(body))
        assert served.json()["impactedTargets"] == 20_000
        refused = await desk.send("setImpactedTargets", body + b" " if whole else in_parts(body + b" "))
        assert (code_of(refused), refused.status_code) == ("body_too_large", 413)
