"""Tokens are created, listed and revoked over the API, and never with more access than their creator has."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from mergeyard import __version__
from mergeyard.domain.access import Scope
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import DAY
from mergeyard.ports.store import AuditQuery
from tests.contract.api.harness import REPOSITORY, ApiHarness, api_with_queue, code_of
from tests.support.asynchronous import asynchronous
from tests.support.scenario import REPO

OTHER = Repo("git.local", "acme", "other")
OTHER_REPOSITORY = {"host": OTHER.host, "owner": OTHER.owner, "name": OTHER.name}
TOMORROW = "2023-11-15T22:13:20.000Z"
"""A day after the start of the tests' clock."""
LATER = "2023-11-16T00:00:00.000Z"


async def ask(api: ApiHarness, endpoint: str, token: str | None = None, **members: Any) -> Any:
    response = await api.send(endpoint, members, token=token)
    assert response.status_code == 200, response.text
    return response.json()


async def refuses(api: ApiHarness, endpoint: str, token: str | None = None, **members: Any) -> str:
    return code_of(await api.send(endpoint, members, token=token))


@asynchronous
async def test_a_new_token_has_the_requested_access_until_it_is_revoked(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made = await ask(
            api, "createToken", name="ci", scopes=["READ"], repositories=[REPOSITORY], expiresAt="2023-11-15T22:13:20Z"
        )
        assert made == {
            "id": made["id"],
            "name": "ci",
            "scopes": ["read"],
            "repositories": [REPOSITORY],
            "createdAt": "2023-11-14T22:13:20.000Z",
            "expiresAt": TOMORROW,
            "revokedAt": None,
            "lastUsedAt": None,
            "lastUsedFrom": None,
            "secret": made["secret"],
        }
        assert len((await ask(api, "listQueues", made["secret"]))["queues"]) == 1
        assert await refuses(api, "listTokens", made["secret"]) == "insufficient_scope"
        listed = {each["name"]: each for each in (await ask(api, "listTokens"))["tokens"]}
        assert listed["ci"]["lastUsedFrom"] == "127.0.0.1"
        assert all("secret" not in each for each in listed.values())
        revoked = await ask(api, "revokeToken", id=made["id"])
        assert (revoked["name"], revoked["revokedAt"]) == ("ci", "2023-11-14T22:13:20.000Z")
        assert await refuses(api, "listQueues", made["secret"]) == "invalid_token"
        assert await ask(api, "revokeToken", id=made["id"]) == revoked


@asynchronous
async def test_without_scopes_repositories_and_expiry_a_token_gets_the_defaults(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made = await ask(api, "createToken", name="ci")
        assert made["scopes"] == ["read", "submit", "targets"]
        assert (made["repositories"], made["expiresAt"]) == ([], None)


@asynchronous
async def test_the_newest_token_is_listed_first(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        for name in ("first", "second"):
            await api.advance(1000)
            await ask(api, "createToken", name=name)
        names = [each["name"] for each in (await ask(api, "listTokens"))["tokens"]]
        assert names[:2] == ["second", "first"]


@asynchronous
async def test_the_stored_response_of_a_repeated_request_has_no_secret(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        key = {"idempotency-key": "once"}
        first = await api.send("createToken", {"name": "ci"}, headers=key)
        again = await api.send("createToken", {"name": "ci"}, headers=key)
        secret = first.json()["secret"]
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json() == {name: value for name, value in first.json().items() if name != "secret"}
        (creator,) = [each for each in await api.world.store.tokens() if each.name == "tests"]
        stored = await api.world.store.response(creator.id, "once")
        assert stored is not None
        assert secret.encode() not in stored.body
        assert [each.name for each in await api.world.store.tokens()].count("ci") == 1
        made = first.json()["id"]
        revoked = await api.send("revokeToken", {"id": made}, headers={"idempotency-key": "twice"})
        repeated = await api.send("revokeToken", {"id": made}, headers={"idempotency-key": "twice"})
        assert repeated.headers["idempotency-replayed"] == "true"
        assert repeated.json() == revoked.json()


@asynchronous
async def test_the_audit_log_names_the_token_that_created_or_revoked_another(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made = await ask(api, "createToken", name="ci")
        await ask(api, "revokeToken", id=made["id"])
        entries = [json.decode(each.body) for each in await api.world.store.audit_entries(AuditQuery(take=2))]
        (creator,) = [each for each in await api.world.store.tokens() if each.name == "tests"]
        assert [(each["type"], each["name"], each["actor"]) for each in entries] == [
            ("TokenRevoked", "ci", f"tests#{creator.id}"),
            ("TokenCreated", "ci", f"tests#{creator.id}"),
        ]


@asynchronous
async def test_a_limited_token_manages_only_tokens_of_its_repositories(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        limited = await api.token(Scope.ADMIN, repos=[REPO])
        unlimited_id = (await ask(api, "createToken", name="unlimited"))["id"]
        other_id = (await api.world.service.tokens.create("other", repos=[OTHER]))[0].id
        both_id = (await api.world.service.tokens.create("both", repos=[REPO, OTHER]))[0].id
        assert await refuses(api, "createToken", limited, name="mine") == "insufficient_scope"
        for repositories in ([OTHER_REPOSITORY], [REPOSITORY, OTHER_REPOSITORY]):
            code = await refuses(api, "createToken", limited, name="mine", repositories=repositories)
            assert code == "repository_not_found"
        mine = await ask(api, "createToken", limited, name="mine", repositories=[REPOSITORY])
        listed = (await ask(api, "listTokens", limited))["tokens"]
        assert {each["name"] for each in listed} == {"mine", "tests"}
        assert all(each["repositories"] == [REPOSITORY] for each in listed)
        for outside in (unlimited_id, other_id, both_id):
            assert await refuses(api, "revokeToken", limited, id=outside) == "token_not_found"
        assert not [each for each in await api.world.store.tokens() if each.revoked_at is not None]
        assert (await ask(api, "revokeToken", limited, id=mine["id"]))["revokedAt"]


@asynchronous
async def test_a_token_does_not_outlive_its_creator(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        expiring = (await api.world.service.tokens.create("expiring", [Scope.ADMIN], lifetime_ms=DAY))[1]
        assert await refuses(api, "createToken", expiring, name="mine") == "insufficient_scope"
        assert await refuses(api, "createToken", expiring, name="mine", expiresAt=LATER) == "insufficient_scope"
        assert (await ask(api, "createToken", expiring, name="mine", expiresAt=TOMORROW))["expiresAt"] == TOMORROW


@pytest.mark.parametrize(
    "members",
    [
        {"name": ""},
        {"name": "a#b"},
        {"name": "operator"},
        {"name": "ci", "scopes": []},
        {"name": "ci", "scopes": ["everything"]},
        {"name": "ci", "expiresAt": "2023-11-14T22:13:20Z"},
        {"scopes": ["read"]},
    ],
    ids=str,
)
@asynchronous
async def test_a_token_that_makes_no_sense_is_refused(members: dict[str, Any], tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        assert await refuses(api, "createToken", **members) == "invalid_request"
        assert len(await api.world.store.tokens()) == 1


@pytest.mark.parametrize("scope", list(Scope))
@asynchronous
async def test_every_token_can_read_what_it_can_do(scope: Scope, tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        token, secret = await api.world.service.tokens.create("mine", [scope], [REPO], lifetime_ms=DAY)
        assert await ask(api, "getCurrentToken", secret) == {
            "id": token.id,
            "name": "mine",
            "scopes": [scope],
            "repositories": [REPOSITORY],
            "expiresAt": TOMORROW,
            "serverVersion": __version__,
        }
        await api.world.service.tokens.revoke(token.id)
        assert await refuses(api, "getCurrentToken", secret) == "invalid_token"
