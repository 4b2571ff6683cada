"""Every row of `spec/api.md`, checked against real responses in real situations."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from mergeyard.domain.access import Scope
from tests.contract.api import spec_tables as doc
from tests.contract.api.harness import QUEUE, api_with_queue, code_of
from tests.contract.api.spec_tables import Row
from tests.contract.api.walkthrough import Answers, Walkthrough, record_walkthrough
from tests.support.asynchronous import asynchronous


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Walkthrough:
    async def recorded() -> Walkthrough:
        async with api_with_queue(tmp_path_factory.mktemp("tour")) as api:
            return await record_walkthrough(api)

    return asyncio.run(recorded())


def named(row: Row) -> str:
    return row.name


def is_of(kind: str, value: Any) -> bool:
    """Integers are encoded as integers: 1.0 is not a pull request number."""
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
def test_a_submitted_pull_request_has_the_field(row: Row, tour: Walkthrough):
    assert fits(row, tour.pull_requests)
    assert any(row.name in pull_request for pull_request in tour.pull_requests)


@pytest.mark.parametrize("row", doc.READINESS, ids=named)
def test_readiness_has_the_signal(row: Row, tour: Walkthrough):
    assert fits(row, [pull_request["readiness"] for pull_request in tour.pull_requests])


def test_required_fields_of_a_pull_request_are_never_empty(tour: Walkthrough):
    for pull_request in tour.pull_requests:
        assert all(
            (
                pull_request["id"],
                pull_request["priorityName"],
                pull_request["prTitle"],
                pull_request["prSha"],
                pull_request["prBaseBranch"],
            )
        )


def test_every_tested_pull_request_was_ready_by_the_readiness_rule(tour: Walkthrough):
    for pull_request in tour.pull_requests:
        if pull_request["state"] in {"testing", "tests_passed", "pending_failure", "merged"}:
            ready = pull_request["readiness"]
            assert ready["doesBaseBranchMatch"]
            assert ready["hasImpactedTargets"] or not ready["requiresImpactedTargets"]


def test_the_default_priority_is_named_only_if_it_was_used(tour: Walkthrough):
    used = {
        pull_request["prNumber"]: pull_request.get("usedDefaultPriorityName") for pull_request in tour.pull_requests
    }
    assert (used[1], used[5]) == ("medium", None)


# 2.4


@pytest.mark.parametrize("row", doc.TEST_RUN_DETAILS, ids=named)
def test_a_run_has_the_field(row: Row, tour: Walkthrough):
    assert fits(row, tour.runs)
    assert any(row.name in run for run in tour.runs)


@pytest.mark.parametrize("row", doc.STATUS_CHECK, ids=named)
def test_a_status_check_has_the_field(row: Row, tour: Walkthrough):
    assert fits(row, [check for run in tour.runs for check in run["statusChecks"]])


@pytest.mark.parametrize("row", doc.TESTED_PULL_REQUEST, ids=named)
def test_a_tested_pull_request_has_the_field(row: Row, tour: Walkthrough):
    assert fits(row, [pull_request for run in tour.runs for pull_request in run["testedPullRequests"]])


def test_impacted_targets_are_returned_only_after_an_upload(tour: Walkthrough):
    found = ["impactedTargets" in run for run in tour.runs]
    assert found == sorted(found)
    assert {True, False} == set(found)
    assert found == ["impactedTargetsForTestedPrs" in run for run in tour.runs]


def test_a_run_has_the_impacted_targets_of_its_stack_and_of_its_tested_pull_requests(tour: Walkthrough):
    last = tour.runs[-1]
    assert [pull_request["prNumber"] for pull_request in last["testedPullRequests"]] == [8]
    assert last["dependentPrs"] == [7]
    assert last["impactedTargets"] == ["//app", "//lib"]
    assert last["impactedTargetsForTestedPrs"] == ["//lib"]


def test_every_source_of_required_statuses_of_a_plain_host_occurs(tour: Walkthrough):
    """A plain host protects no branch."""
    found = {run["requiredStatusesSource"] for run in tour.runs}
    assert found == doc.REQUIRED_STATUSES_SOURCES - {"repo_provider_branch_protection"}


def test_times_are_iso_8601_in_utc(tour: Walkthrough):
    times = [pull_request["stateChangedAt"] for pull_request in tour.pull_requests] + [
        run["createdAt"] for run in tour.runs
    ]
    assert set(times) == {"2023-11-14T22:13:20.000Z"}


# 2.5, 3


def test_a_queue_has_its_state_settings_and_pull_requests(tour: Walkthrough):
    queue = tour.queues[0]
    assert queue["state"] == "RUNNING"
    assert (queue["mode"], queue["concurrency"], queue["batch"]) == ("single", 1, False)
    enqueued = {pull_request["prNumber"]: pull_request["state"] for pull_request in queue["enqueuedPullRequests"]}
    assert enqueued == {5: "testing", 6: "pending", 4: "not_ready"}


def test_every_state_of_a_pull_request_is_reached(tour: Walkthrough):
    assert {pull_request["state"] for pull_request in tour.pull_requests} == doc.PR_STATES


def test_every_state_of_a_queue_is_reached(tour: Walkthrough):
    assert {queue["state"] for queue in tour.queues} == doc.QUEUE_STATES


def test_every_status_of_a_run_is_reached(tour: Walkthrough):
    assert {run["status"] for run in tour.runs} == doc.RUN_STATUSES


# 1, 4, 5


def test_every_response_except_metrics_is_a_json_object(tour: Walkthrough):
    for path, kinds in tour.content_by_path.items():
        metrics = path == f"{doc.PREFIX}/getMergeQueueMetrics"
        assert set(kinds) == {f"{doc.METRICS_TYPE} #" if metrics else "application/json {"}


def test_the_walkthrough_calls_every_endpoint_except_delete_queue(tour: Walkthrough):
    assert {doc.PREFIX + path for path in doc.ENDPOINTS} - tour.content_by_path.keys() == {"/v1/deleteQueue"}


@asynchronous
async def test_a_queue_is_deleted_only_when_it_is_empty(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        await api.submit(1)
        assert await api.refusal_code("deleteQueue") == "queue_not_empty"
        await api.ask("cancelPullRequest", pr={"number": 1})
        await api.ask("deleteQueue")
        assert await api.refusal_code("getQueue") == "queue_not_found"


@asynchronous
async def test_an_endpoint_has_its_address_its_method_and_its_required_members(tmp_path: Path):
    whole: dict[str, Any] = QUEUE | {"pr": {"number": 1}, "impactedTargets": [], "testRunId": "x"}
    async with api_with_queue(tmp_path) as api:
        for path, (method, members) in doc.ENDPOINTS.items():
            other = {"GET": "POST", "POST": "GET"}[method]
            refused = await api.client.request(other, doc.PREFIX + path)
            assert code_of(refused) == "method_not_allowed"
            assert method in refused.headers["allow"].split(", ")
            for member in members:
                body = {name: value for name, value in whole.items() if name in members - {member}}
                assert code_of(await api.send(path[1:], body)) == "invalid_request", (path, member)


@asynchronous
async def test_every_endpoint_requires_a_token(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        for path, (method, _) in doc.ENDPOINTS.items():
            refused = await api.client.request(method, doc.PREFIX + path)
            assert (code_of(refused), refused.status_code) == ("missing_token", 401)
            refused = await api.client.request(method, doc.PREFIX + path, headers={doc.TOKEN_HEADER: "my_own"})
            assert (code_of(refused), refused.status_code) == ("invalid_token", 401)


@asynchronous
async def test_every_endpoint_with_a_body_accepts_only_json(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        for path, (method, _) in doc.ENDPOINTS.items():
            if method == "POST":
                refused = await api.send(path[1:], b"{}", headers={"content-type": "text/plain"})
                assert code_of(refused) == "unsupported_media_type"


# 4.3, 4.6, 8


@asynchronous
async def test_impacted_targets_are_a_list_or_all(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        for targets, found in ((["a", "b"], 2), ("ALL", "ALL"), ([], 0)):
            answer = await api.ask("setImpactedTargets", pr={"number": 1}, impactedTargets=targets)
            assert answer["impactedTargets"] == found


@asynchronous
async def test_metrics_are_of_all_repositories_or_of_one(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        everything = await api.metrics()
        assert everything.headers["content-type"] == doc.METRICS_TYPE
        assert (await api.metrics("?repo=acme/app&repoHost=git.local")).text == everything.text
        assert code_of(await api.metrics("?repo=acme/app")) == "invalid_request"
        limited = await api.token(Scope.READ)
        assert (await api.metrics(token=limited)).status_code == 200


async def in_parts(body: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(body), 1024 * 1024):
        yield body[at : at + 1024 * 1024]


@pytest.mark.parametrize("whole", [True, False], ids=["at once", "in chunks"])
@asynchronous
async def test_a_body_of_20_mib_is_served_and_one_byte_more_is_not(tmp_path: Path, whole: bool):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        body = json.encode(QUEUE | {"pr": {"number": 1}, "impactedTargets": [f"//{at:01000}" for at in range(20_000)]})
        body = body.ljust(doc.MAX_BODY_BYTES)
        served = await api.send("setImpactedTargets", body if whole else in_parts(body))
        assert served.json()["impactedTargets"] == 20_000
        refused = await api.send("setImpactedTargets", body + b" " if whole else in_parts(body + b" "))
        assert (code_of(refused), refused.status_code) == ("body_too_large", 413)
