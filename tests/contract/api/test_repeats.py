"""A request with an idempotency key can be sent again: it is answered as before, and has no second effect."""

import asyncio
from pathlib import Path
from typing import Any

from msgspec import json

from mergeyard.domain.tokens import Scope
from tests.contract.api.desk import QUEUE, REPOSITORY, a_desk, an_empty_desk, code_of
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
async def test_the_same_key_and_request_gives_the_stored_answer_without_a_second_effect(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        await desk.submit(1)
        first = await desk.post("restartTestsOnPullRequest", pr={"number": 1}, key="again")
        run = await desk.run(1)
        body = b'{ "pr":{"number":1},"targetBranch":"main","repo":' + json.encode(REPOSITORY) + b"}"
        second = await desk.send("restartTestsOnPullRequest", body, headers={"idempotency-key": "again"})
        assert second.content == first.content
        assert "idempotency-replayed" not in first.headers
        assert second.headers["idempotency-replayed"] == "true"
        assert (await desk.run(1))["id"] == run["id"]


@asynchronous
async def test_a_key_is_for_one_request_of_one_token_and_a_day(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        await desk.ask("updateQueue", concurrency=7, key="k")
        assert await desk.refuses("updateQueue", concurrency=8, key="k") == "idempotency_key_reused"
        assert await desk.refuses("deleteQueue", key="k") == "idempotency_key_reused"
        other = await desk.token(Scope.ADMIN)
        assert (await desk.ask("updateQueue", concurrency=8, key="k", token=other))["concurrency"] == 8
        await desk.ask("getQueue", key="k")
        await desk.let_pass(24 * 60 * MINUTE)
        assert (await desk.ask("updateQueue", concurrency=9, key="k"))["concurrency"] == 9


@asynchronous
async def test_only_success_is_stored(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        assert await desk.refuses("submitPullRequest", pr={"number": 1}, key="k") == "pr_not_found"
        desk.world.open(1)
        answer = await desk.post("submitPullRequest", pr={"number": 1}, key="k")
        assert (answer.status_code, "idempotency-replayed" in answer.headers) == (200, False)


@asynchronous
async def test_twins_in_flight_have_one_effect(tmp_path: Path):
    async with an_empty_desk(tmp_path) as desk:
        calls = (desk.call("createQueue", QUEUE, headers={"idempotency-key": "k"}) for _ in range(3))
        answers = await asyncio.gather(*calls)
        assert [answer.status_code for answer in answers] == [200] * 3
        assert sorted("idempotency-replayed" in answer.headers for answer in answers) == [False, True, True]


@asynchronous
async def test_submitting_the_same_at_once_is_one_submission(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        desk.world.open(1)
        answers = await asyncio.gather(*(desk.call("submitPullRequest", QUEUE | PR) for _ in range(4)))
        assert len({answer.json()["id"] for answer in answers}) == 1
        assert len((await desk.ask("listPullRequests"))["pullRequests"]) == 1


@asynchronous
async def test_every_write_keeps_its_answer(tmp_path: Path):
    async with an_empty_desk(tmp_path) as desk:
        desk.world.open(1)
        for endpoint, members in WRITES.items():
            first = await desk.post(endpoint, key=endpoint, **members)
            second = await desk.post(endpoint, key=endpoint, **members)
            assert (first.status_code, second.content) == (200, first.content), endpoint
            assert second.headers.get("idempotency-replayed") == "true", endpoint


@asynchronous
async def test_a_key_that_is_none_is_refused(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        for key in ("", "é", "x" * 256, "a\tb"):
            headers = {b"x-api-token": desk.secret.encode(), b"content-type": b"application/json"}
            headers |= {b"idempotency-key": key.encode()}
            answer = await desk.client.post(
                "/v1/updateQueue", content=json.encode(QUEUE), headers=list(headers.items())
            )
            assert code_of(answer) == "invalid_request"


@asynchronous
async def test_the_longest_key_is_taken(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        await desk.ask("updateQueue", key=" ~" * 127 + "x")
