"""Webhooks are created, changed, tested and deleted over the API, and their deliveries are listed."""

from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from mergeyard.domain.access import Scope
from mergeyard.domain.ids import Repo
from mergeyard.ports.store import AuditQuery
from mergeyard.service.webhooks.webhooks import WebhookClient
from tests.contract.api.harness import QUEUE, REPOSITORY, ApiHarness, api_with_queue, code_of
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin
from tests.support.scenario import REPO

URL = "https://there.example/hook"


async def make(api: ApiHarness, **members: Any) -> dict[str, Any]:
    answer = await api.send("createWebhook", {"url": URL} | members)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def ask(api: ApiHarness, endpoint: str, **members: Any) -> Any:
    answer = await api.send(endpoint, members)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refuses(api: ApiHarness, endpoint: str, token: str | None = None, **members: Any) -> str:
    return code_of(await api.send(endpoint, members, token=token))


@asynchronous
async def test_a_new_webhook_receives_the_next_event(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made = await make(api, description="for the robots")
        assert made == {
            "id": made["id"],
            "kind": "webhook",
            "url": URL,
            "events": [],
            "queues": [],
            "description": "for the robots",
            "enabled": True,
            "disabled": None,
            "createdAt": "2023-11-14T22:13:20.000Z",
            "secret": made["secret"],
        }
        await api.ask("updateQueue", state="PAUSED")
        (received,) = api.world.sender.received
        assert received.payload["data"]["state"] == "PAUSED"
        assert received.payload["type"] == "queue.state_changed"
        verifier = Verifier(made["secret"])
        signature = verifier.sign(received.id, api.world.sender.time_of(received), received.body.decode())
        assert received.headers["webhook-signature"] == signature


@asynchronous
async def test_its_secret_is_shown_once(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        first = await api.send("createWebhook", {"url": URL}, headers={"idempotency-key": "k"})
        again = await api.send("createWebhook", {"url": URL}, headers={"idempotency-key": "k"})
        assert "secret" in first.json()
        assert again.headers["idempotency-replayed"] == "true"
        made = first.json()
        del made["secret"]
        assert again.json() == made
        assert await ask(api, "listWebhooks") == {"webhooks": [made]}


@asynchronous
async def test_possible_secrets_in_the_url_are_not_shown(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        for url, shown_url in (
            ("https://there.example/a?key=s3cret", "https://there.example/a?…"),
            ("https://there.example/api/webhooks/1234/s3cret?wait=1", "https://there.example/api/…"),
            (f"https://there.example/s3cret{'0' * 20}", "https://there.example/…"),
            ("https://there.example:8443", "https://there.example:8443"),
        ):
            assert (await make(api, url=url))["url"] == shown_url
        slack = await make(api, kind="SLACK", url="https://hooks.slack.com/services/T0/B0/s3cret")
        assert (slack["url"], "secret" in slack) == ("https://hooks.slack.com/…", False)
        assert "s3cret" not in (await api.send("listWebhooks", {})).text
        audited = await api.world.store.audit_entries(AuditQuery(take=99))
        assert [entry.body for entry in audited if b"s3cret" in entry.body] == []


@asynchronous
async def test_only_the_given_fields_of_a_webhook_change(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made = await make(api, events=["queue.updated"], queues=[QUEUE])
        del made["secret"]
        assert await ask(api, "updateWebhook", id=made["id"]) == made
        changed = await ask(api, "updateWebhook", id=made["id"], events=["QUEUE.STATE_CHANGED"], url=URL + "/2")
        assert changed == made | {"events": ["queue.state_changed"], "url": URL + "/…"}
        await api.ask("updateQueue", state="PAUSED", concurrency=7)
        assert [(received.url, received.payload["type"]) for received in api.world.sender.received] == [
            (URL + "/2", "queue.state_changed")
        ]
        assert (await ask(api, "updateWebhook", id=made["id"], queues=[{"repo": REPOSITORY}]))["queues"] == [
            {"repo": REPOSITORY}
        ]


@asynchronous
async def test_a_disabled_webhook_receives_events_after_it_is_enabled(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made = await make(api)
        disabled = await ask(api, "updateWebhook", id=made["id"], enabled=False)
        assert disabled["disabled"] == {"at": "2023-11-14T22:13:20.000Z", "reason": "asked", "message": ""}
        await api.ask("updateQueue", concurrency=7)
        assert api.world.sender.attempts == []
        await ask(api, "updateWebhook", id=made["id"], enabled=True)
        assert api.world.sender.received_types() == ["queue.updated"]


@asynchronous
async def test_a_deleted_webhook_receives_nothing_and_is_not_found(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made = await make(api)
        assert await ask(api, "deleteWebhook", id=made["id"]) == {"deleted": True, "id": made["id"]}
        await api.ask("updateQueue", concurrency=7)
        assert api.world.sender.attempts == []
        for endpoint in ("deleteWebhook", "updateWebhook", "testWebhook", "listWebhookDeliveries"):
            assert await refuses(api, endpoint, id=made["id"]) == "webhook_not_found"


@asynchronous
async def test_a_test_event_reports_its_delivery(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made = await make(api)
        delivery = await ask(api, "testWebhook", id=made["id"])
        assert (delivery["type"], delivery["delivered"], delivery["status"], delivery["attempt"]) == (
            "webhook.test",
            True,
            200,
            1,
        )
        api.world.sender.statuses["there.example"] = 0
        delivery = await ask(api, "testWebhook", id=made["id"])
        assert (delivery["delivered"], delivery["status"], delivery["message"]) == (False, None, "No response.")
        (received,) = api.world.sender.received
        assert received.payload["type"] == "webhook.test"


@asynchronous
async def test_an_event_is_resent_with_the_same_id(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made = await make(api)
        await api.ask("updateQueue", concurrency=7)
        (first,) = (await ask(api, "listWebhookDeliveries", id=made["id"]))["deliveries"]
        again = await ask(api, "resendWebhookEvent", id=made["id"], eventId=first["eventId"])
        assert again == first | {"attempt": 2}
        one, other = api.world.sender.received
        assert (one.id, one.body) == (other.id, other.body)
        listed = (await ask(api, "listWebhookDeliveries", id=made["id"], take=1))["deliveries"]
        assert listed == [again]


@asynchronous
async def test_a_test_event_cannot_be_resent(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made = await make(api)
        test = await ask(api, "testWebhook", id=made["id"])
        assert await refuses(api, "resendWebhookEvent", id=made["id"], eventId=test["eventId"]) == "event_not_found"


@asynchronous
async def test_every_write_stores_its_response(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made = await make(api)
        await api.ask("updateQueue", concurrency=7)
        (first,) = (await ask(api, "listWebhookDeliveries", id=made["id"]))["deliveries"]
        writes = {
            "updateWebhook": {"description": "x"},
            "testWebhook": {},
            "resendWebhookEvent": {"eventId": first["eventId"]},
            "deleteWebhook": {},
        }
        for endpoint, members in writes.items():
            body, key = {"id": made["id"]} | members, {"idempotency-key": endpoint}
            one, other = [await api.send(endpoint, body, headers=key) for _ in range(2)]
            assert (one.status_code, other.content) == (200, one.content), endpoint
            assert other.headers["idempotency-replayed"] == "true", endpoint
        assert len(api.world.sender.attempts) == 3


@pytest.mark.parametrize(
    "members",
    [
        {"url": ""},
        {"url": "https://there.example/" + "a" * 2048},
        {"url": URL, "events": ["pull_request.eaten"]},
        {"url": URL, "kind": "pigeon"},
        {"url": URL, "queues": [{"targetBranch": "main"}]},
        {"url": URL, "description": "a" * 201},
    ],
)
@asynchronous
async def test_an_invalid_webhook_is_refused(members: dict[str, Any], tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        assert await refuses(api, "createWebhook", **members) == "invalid_request"


@asynchronous
async def test_an_address_that_is_not_allowed_changes_nothing(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        made = await make(api)
        assert await refuses(api, "updateWebhook", id=made["id"], url="https://private.example") == (
            "address_not_allowed"
        )
        assert (await ask(api, "listWebhooks"))["webhooks"][0]["url"] == URL


# Limited tokens


@asynchronous
async def test_a_limited_token_sees_only_webhooks_of_its_repositories(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        inside = await api.token(Scope.ADMIN, repos=[REPO])
        outside = await api.token(Scope.ADMIN, repos=[Repo("git.local", "acme", "other")])
        everything, ours = await make(api), await make(api, queues=[QUEUE])
        listed = [
            [each["id"] for each in (await api.send("listWebhooks", {}, token=token)).json()["webhooks"]]
            for token in (inside, outside)
        ]
        assert listed == [[ours["id"]], []]
        assert await refuses(api, "deleteWebhook", token=inside, id=everything["id"]) == "webhook_not_found"
        assert await refuses(api, "testWebhook", token=outside, id=ours["id"]) == "webhook_not_found"


@asynchronous
async def test_a_limited_token_sees_no_deliveries_of_repositories_that_the_webhook_had_before(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        Origin.create(tmp_path / "repos" / "acme" / "other.git").commit("main", {"a": "1"})
        other = QUEUE | {"repo": REPOSITORY | {"name": "other"}}
        await api.send("createQueue", other)
        made = (await make(api, queues=[QUEUE, other]))["id"]
        await api.send("updateQueue", other | {"concurrency": 7})
        await api.ask("updateQueue", concurrency=7)
        await ask(api, "testWebhook", id=made)
        await ask(api, "updateWebhook", id=made, queues=[QUEUE])
        inside = await api.token(Scope.ADMIN, repos=[REPO])
        everything = (await ask(api, "listWebhookDeliveries", id=made))["deliveries"]
        visible = (await api.send("listWebhookDeliveries", {"id": made}, token=inside)).json()["deliveries"]
        assert [each["type"] for each in everything] == ["webhook.test", "queue.updated", "queue.updated"]
        assert visible == everything[:2]
        newest = (await api.send("listWebhookDeliveries", {"id": made, "take": 1}, token=inside)).json()
        assert newest["deliveries"] == everything[:1]
        hidden = {"id": made, "eventId": everything[2]["eventId"]}
        assert code_of(await api.send("resendWebhookEvent", hidden, token=inside)) == "event_not_found"
        (limited,) = [token for token in await api.world.service.tokens.list_manageable(None) if token.repos]
        trying = api.world.service.webhooks
        assert await trying.read_payload(WebhookClient(limited), made, everything[2]["eventId"]) is None
        assert await trying.read_payload(WebhookClient(limited), made, everything[1]["eventId"])


@asynchronous
async def test_a_limited_token_must_name_queues_of_its_repositories(tmp_path: Path):
    async with api_with_queue(tmp_path) as api:
        inside = await api.token(Scope.ADMIN, repos=[REPO])
        other = [{"repo": REPOSITORY | {"name": "other"}}]
        assert await refuses(api, "createWebhook", token=inside, url=URL) == "invalid_request"
        assert await refuses(api, "createWebhook", token=inside, url=URL, queues=other) == "repository_not_found"
        made = (await api.send("createWebhook", {"url": URL, "queues": [QUEUE]}, token=inside)).json()
        assert await refuses(api, "updateWebhook", token=inside, id=made["id"], queues=[]) == "invalid_request"
        assert await refuses(api, "updateWebhook", token=inside, id=made["id"], queues=other) == (
            "repository_not_found"
        )
