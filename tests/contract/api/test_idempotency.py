"""A request with an idempotency key can be repeated: the response is the same, and there is no second effect."""

import asyncio
from pathlib import Path
from typing import Any

from msgspec import json

from mergeyard.domain.access import Scope
from tests.contract.api.harness import QUEUE, REPOSITORY, api_with_queue, api_without_queue, code_of
from tests.support.asynchronous import asynchronous
from tests.support.scenario import MINUTE

PR = {"pr": {"number": 1}}
WRITES: dict[str, dict[str, Any]] = {
    "createQueue": {},
    "updateQueue": {"concurrency": 2},
    "setImpactedTargets": PR | {"impactedTargets": ["a"]},
    "submitPullRequest": PR,
    "restartTestsOnPullRequest": PR,
    "reportCommitStatus": {"sha": "1" * 40, "context": "unit", "state": "success"},
    "cancelPullRequest": PR,
    "deleteQueue": {},
}
"""In an order in which each can be carried out."""


@asynchronous
async def test_the_same_key_and_request_returns_the_stored_response_without_a_second_effect(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        await api.submit(1)
        first = await api.post("restartTestsOnPullRequest", pr={"number": 1}, key="again")
        run = await api.run(1)
        body = b'{ "pr":{"number":1},"targetBranch":"main","repo":' + json.encode(REPOSITORY) + b"}"
        second = await api.send("restartTestsOnPullRequest", body, headers={"idempotency-key": "again"})
        assert second.content == first.content
        assert "idempotency-replayed" not in first.headers
        assert second.headers["idempotency-replayed"] == "true"
        assert (await api.run(1))["id"] == run["id"]


@asynchronous
async def test_a_key_is_valid_for_one_request_of_one_token_for_a_day(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        await api.ask("updateQueue", concurrency=7, key="k")
        assert await api.refusal_code("updateQueue", concurrency=8, key="k") == "idempotency_key_reused"
        assert await api.refusal_code("deleteQueue", key="k") == "idempotency_key_reused"
        other = await api.token(Scope.ADMIN)
        assert (await api.ask("updateQueue", concurrency=8, key="k", token=other))["concurrency"] == 8
        await api.ask("getQueue", key="k")
        await api.advance(24 * 60 * MINUTE)
        assert (await api.ask("updateQueue", concurrency=9, key="k"))["concurrency"] == 9


@asynchronous
async def test_only_success_is_stored(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        assert await api.refusal_code("submitPullRequest", pr={"number": 1}, key="k") == "pr_not_found"
        api.world.open(1)
        answer = await api.post("submitPullRequest", pr={"number": 1}, key="k")
        assert (answer.status_code, "idempotency-replayed" in answer.headers) == (200, False)


@asynchronous
async def test_concurrent_requests_with_one_key_have_one_effect(tmp_path: Path):
    async with api_without_queue(tmp_path) as api:
        calls = (api.call("createQueue", QUEUE, headers={"idempotency-key": "k"}) for _ in range(3))
        answers = await asyncio.gather(*calls)
        assert [answer.status_code for answer in answers] == [200] * 3
        assert sorted("idempotency-replayed" in answer.headers for answer in answers) == [False, True, True]


@asynchronous
async def test_submitting_a_pull_request_concurrently_makes_one_submission(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        api.world.open(1)
        answers = await asyncio.gather(*(api.call("submitPullRequest", QUEUE | PR) for _ in range(4)))
        assert len({answer.json()["id"] for answer in answers}) == 1
        assert len((await api.ask("listPullRequests"))["pullRequests"]) == 1


@asynchronous
async def test_every_write_stores_its_response(tmp_path: Path):
    async with api_without_queue(tmp_path) as api:
        api.world.open(1)
        for endpoint, members in WRITES.items():
            first = await api.post(endpoint, key=endpoint, **members)
            second = await api.post(endpoint, key=endpoint, **members)
            assert (first.status_code, second.content) == (200, first.content), endpoint
            assert second.headers.get("idempotency-replayed") == "true", endpoint


@asynchronous
async def test_an_invalid_key_is_refused(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        for key in ("", "é", "x" * 256, "a\tb"):
            headers = {b"x-api-token": api.secret.encode(), b"content-type": b"application/json"}
            headers |= {b"idempotency-key": key.encode()}
            answer = await api.client.post("/v1/updateQueue", content=json.encode(QUEUE), headers=list(headers.items()))
            assert code_of(answer) == "invalid_request"


@asynchronous
async def test_the_longest_allowed_key_is_accepted(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        await api.ask("updateQueue", key=" ~" * 127 + "x")
