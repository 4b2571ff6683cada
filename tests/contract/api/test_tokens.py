"""Tokens: what their scopes allow, what they cannot see, and when they end."""

from pathlib import Path
from typing import Any

from msgspec import json
from structlog.testing import capture_logs

from mergeyard.api import routes
from mergeyard.domain.access import DEFAULT_SCOPES, Scope
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import Instant
from mergeyard.service.tokens import generate_secret
from tests.contract.api.harness import QUEUE, REPOSITORY, api_with_queue, api_without_queue, code_of
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin
from tests.support.scenario import MINUTE, REPO

WHOLE: dict[str, Any] = QUEUE | {
    "pr": {"number": 1}, "prs": [], "impactedTargets": [], "testRunId": "x", "since": "2023-11-14T00:00:00Z",
    "sha": "1" * 40, "context": "unit", "state": "success",
    "url": "https://there.example", "id": "x", "eventId": "x", "action": "cancel", "name": "made",
}  # fmt: skip
NEEDED = {
    "submitPullRequest": Scope.SUBMIT,
    "cancelPullRequest": Scope.SUBMIT,
    "restartTestsOnPullRequest": Scope.SUBMIT,
    "previewPullRequestAction": Scope.SUBMIT,
    "previewCommitMessage": Scope.READ,
    "listOpenPullRequests": Scope.SUBMIT,
    "getSubmittedPullRequest": Scope.READ,
    "getSubmittedPullRequests": Scope.READ,
    "getProvenance": Scope.READ,
    "setImpactedTargets": Scope.TARGETS,
    "getMergeQueueTestingDetails": Scope.READ,
    "listMergeQueueTestingResults": Scope.READ,
    "createQueue": Scope.ADMIN,
    "deleteQueue": Scope.ADMIN,
    "updateQueue": Scope.ADMIN,
    "getQueue": Scope.READ,
    "listPullRequests": Scope.READ,
    "listQueues": Scope.READ,
    "listEvents": Scope.READ,
    "verifyLandings": Scope.ADMIN,
    "replayQueue": Scope.READ,
    "reportCommitStatus": Scope.STATUS,
    "createWebhook": Scope.ADMIN,
    "listWebhooks": Scope.ADMIN,
    "updateWebhook": Scope.ADMIN,
    "deleteWebhook": Scope.ADMIN,
    "testWebhook": Scope.ADMIN,
    "listWebhookDeliveries": Scope.ADMIN,
    "resendWebhookEvent": Scope.ADMIN,
    "createToken": Scope.ADMIN,
    "listTokens": Scope.ADMIN,
    "revokeToken": Scope.ADMIN,
}
WITHOUT_SCOPE = {"getCurrentToken"}
WITHOUT_QUEUE = {
    "createQueue", "listQueues", *(endpoint for endpoint in NEEDED if "Webhook" in endpoint or "Token" in endpoint)
}  # fmt: skip
JUST_THE_QUEUE = {"createQueue", "deleteQueue", "updateQueue", "listPullRequests", "replayQueue"}
OTHER = Repo("git.local", "acme", "other")


def body_for(endpoint: str) -> dict[str, Any]:
    return QUEUE if endpoint in JUST_THE_QUEUE else WHOLE


def test_every_endpoint_has_a_row_above():
    assert {*NEEDED, *WITHOUT_SCOPE, "getMergeQueueMetrics"} == routes.TABLE.keys()


@asynchronous
async def test_every_endpoint_needs_its_scope_and_no_other(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        for endpoint, scope in NEEDED.items():
            others = await api.token(*(set(Scope) - {scope, Scope.ADMIN}))
            refused = await api.send(endpoint, body_for(endpoint), token=others)
            assert code_of(refused) == "insufficient_scope", endpoint
            if endpoint != "deleteQueue":
                answer = await api.send(endpoint, body_for(endpoint), token=await api.token(scope))
                assert answer.status_code in {200, 404, 409}, (endpoint, answer.text)
        assert code_of(await api.metrics(token=await api.token(Scope.SUBMIT))) == "insufficient_scope"


@asynchronous
async def test_what_lies_outside_looks_exactly_like_what_does_not_exist(tmp_path: Path):
    """The same bytes except for the request id, which a client can choose."""
    same_id = {"x-request-id": "the-same"}
    async with api_without_queue(tmp_path) as api:
        Origin.create(tmp_path / "repos" / "acme" / "other.git").commit("main", {"a": "1"})
        api.world.open(1)
        limited = await api.token(Scope.ADMIN, repos=[OTHER])
        asked = [endpoint for endpoint in NEEDED if endpoint not in WITHOUT_QUEUE]

        async def answers() -> dict[str, bytes]:
            responses = {
                endpoint: (await api.send(endpoint, body_for(endpoint), token=limited, headers=same_id)).content
                for endpoint in asked
            }
            query, headers = "?repo=acme/app&repoHost=git.local", {"x-api-token": limited} | same_id
            metrics = await api.client.get(f"/v1/getMergeQueueMetrics{query}", headers=headers)
            return responses | {"getMergeQueueMetrics": metrics.content}

        before = await answers()
        await api.ask("createQueue")
        await api.submit(1)
        after = await answers()
        assert [endpoint for endpoint in before if before[endpoint] != after[endpoint]] == []
        codes = {json.decode(answer)["code"] for answer in before.values()}
        assert codes == {"queue_not_found", "repository_not_found"}
        nowhere = QUEUE | {"repo": REPOSITORY | {"name": "nowhere"}}
        responses = [(await api.send("createQueue", body, token=limited)).json() for body in (QUEUE, nowhere)]
        assert responses[0]["detail"].replace("app", "nowhere") == responses[1]["detail"]
        assert responses[0]["code"] == responses[1]["code"] == "repository_not_found"
        assert (await api.ask("listQueues", token=limited)) == {"queues": []}
        assert (await api.metrics(token=limited)).text.count("acme/app") == 0


@asynchronous
async def test_a_limited_token_cannot_distinguish_configured_from_unknown_hosts(tmp_path: Path):
    same_id = {"x-request-id": "the-same"}
    async with api_with_queue(tmp_path) as api:
        limited = await api.token(Scope.ADMIN, repos=[Repo("elsewhere.example", "acme", "app")])
        unknown = "git.other"
        for endpoint in NEEDED:
            if "repo" not in body_for(endpoint) or endpoint in WITHOUT_QUEUE - {"createQueue"}:
                continue
            body = body_for(endpoint)
            known, other = [
                await api.send(endpoint, body | {"repo": REPOSITORY | {"host": host}}, token=limited, headers=same_id)
                for host in (REPO.host, unknown)
            ]
            assert code_of(known) == "host_not_allowed", endpoint
            assert known.text.replace(REPO.host, unknown) == other.text
        metrics = await api.metrics("?repo=acme/app&repoHost=git.local", token=limited)
        assert code_of(metrics) == "host_not_allowed"


@asynchronous
async def test_a_token_that_names_its_repository_works_there(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        token = await api.token(*DEFAULT_SCOPES, repos=[OTHER, Repo("git.local", "acme", "app")])
        assert (await api.ask("getQueue", token=token))["branch"] == "main"


@asynchronous
async def test_a_token_ends_when_it_expires_or_is_revoked(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        short = await api.token(Scope.READ, lifetime=MINUTE)
        await api.ask("getQueue", token=short)
        await api.advance(MINUTE)
        assert await api.refusal_code("getQueue", token=short) == "invalid_token"
        made, secret = await api.world.service.tokens.create("another", {Scope.READ})
        await api.ask("getQueue", token=secret)
        await api.world.service.tokens.revoke(made.id)
        assert await api.refusal_code("getQueue", token=secret) == "invalid_token"


@asynchronous
async def test_a_token_that_differs_slightly_is_rejected(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        secret = api.secret
        for almost in (secret.upper(), secret.lower(), secret[:-1], secret + "x", f"{secret}, {secret}", "my_é"):
            headers = {b"x-api-token": almost.encode(), b"content-type": b"application/json"}
            refused = await api.client.post("/v1/getQueue", content=json.encode(QUEUE), headers=list(headers.items()))
            assert code_of(refused) == "invalid_token"


@asynchronous
async def test_every_rejected_token_is_logged_and_no_part_of_it(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made, revoked = await api.world.service.tokens.create("old", {Scope.READ})
        await api.world.service.tokens.revoke(made.id)
        unknown = generate_secret()
        with capture_logs() as lines:
            for secret in (unknown, revoked, "my_nonsense"):
                assert await api.refusal_code("getQueue", token=secret) == "invalid_token"
            twice = [("x-api-token", api.secret), ("x-api-token", api.secret)]
            await api.client.post("/v1/getQueue", headers=twice)
            await api.client.post("/v1/getQueue")
        assert [line["event"] for line in lines] == ["token_rejected"] * 4
        assert [line.get("token_name") for line in lines] == [None, "old", None, None]
        assert {(line["client"], line["path"]) for line in lines} == {("127.0.0.1", "/v1/getQueue")}
        assert all(line["request_id"] for line in lines)
        secrets = (unknown, revoked, api.secret, "nonsense")
        assert [secret for secret in secrets if secret[3:20] in str(lines)] == []


@asynchronous
async def test_a_missing_scope_is_logged_with_the_name_of_the_token(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        token = await api.token(Scope.SUBMIT)
        api.world.open(1)
        with capture_logs() as lines:
            assert await api.refusal_code("getQueue", token=token) == "insufficient_scope"
            urgent = {"pr": {"number": 1}, "force": True}
            assert await api.refusal_code("submitPullRequest", token=token, **urgent) == "insufficient_scope"
            await api.metrics(token=token)
        responses = [(line["event"], line["token_name"], line["path"]) for line in lines]
        assert responses == [
            ("scope_missing", "tests", f"/v1/{endpoint}")
            for endpoint in ("getQueue", "submitPullRequest", "getMergeQueueMetrics")
        ]


@asynchronous
async def test_a_token_shows_when_and_from_where_it_was_last_used(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        tokens, clock = api.world.service.tokens, api.world.clock
        made, secret = await tokens.create("ci", {Scope.READ})

        async def last_use() -> tuple[Instant | None, str]:
            (token,) = [each for each in await tokens.list_manageable(None) if each.id == made.id]
            return token.last_used_at, token.last_used_from

        assert await last_use() == (None, "")
        await api.ask("getQueue", token=secret)
        first = clock.now()
        assert await last_use() == (first, "127.0.0.1")
        await api.advance(59 * MINUTE)
        await api.ask("getQueue", token=secret)
        assert await last_use() == (first, "127.0.0.1")
        await api.advance(MINUTE)
        await api.ask("getQueue", token=secret)
        assert await last_use() == (clock.now(), "127.0.0.1")


@asynchronous
async def test_a_request_is_answered_when_the_use_of_its_token_cannot_be_recorded(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        token = await api.token(Scope.READ)
        api.world.store.failing_commits = 1
        with capture_logs() as lines:
            assert (await api.post("getQueue", token=token)).status_code == 200
        assert "token_use_not_recorded" in {line["event"] for line in lines}


@asynchronous
async def test_two_token_headers_are_rejected(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        twice = [("x-api-token", api.secret), ("x-api-token", api.secret), ("content-type", "application/json")]
        refused = await api.client.post("/v1/getQueue", content=json.encode(QUEUE), headers=twice)
        assert (refused.status_code, code_of(refused)) == (401, "invalid_token")
        assert "www-authenticate" in refused.headers
