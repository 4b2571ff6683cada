"""Webhooks are made, changed, tried and deleted over the API, by whoever may, and tell what became of each event."""

from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import Scope
from mergeyard.ports.store import AuditPage
from mergeyard.service.telling.webhooks import Asker
from tests.contract.api.desk import QUEUE, REPOSITORY, Desk, a_desk, code_of
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin
from tests.support.scenario import REPO

URL = "https://there.example/hook"


async def make(desk: Desk, **members: Any) -> dict[str, Any]:
    answer = await desk.send("createWebhook", {"url": URL} | members)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def ask(desk: Desk, endpoint: str, **members: Any) -> Any:
    answer = await desk.send(endpoint, members)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refuses(desk: Desk, endpoint: str, token: str | None = None, **members: Any) -> str:
    return code_of(await desk.send(endpoint, members, token=token))


@asynchronous
async def test_a_webhook_is_made_and_hears_at_once_of_what_happens(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        made = await make(desk, description="for the robots")
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
        await desk.ask("updateQueue", state="PAUSED")
        (heard,) = desk.world.sender.received
        assert heard.payload["data"]["state"] == "PAUSED"
        assert heard.payload["type"] == "queue.state_changed"
        verifier = Verifier(made["secret"])
        signature = verifier.sign(heard.id, desk.world.sender.time_of(heard), heard.body.decode())
        assert heard.headers["webhook-signature"] == signature


@asynchronous
async def test_its_secret_is_shown_once(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        first = await desk.send("createWebhook", {"url": URL}, headers={"idempotency-key": "k"})
        again = await desk.send("createWebhook", {"url": URL}, headers={"idempotency-key": "k"})
        assert "secret" in first.json()
        assert again.headers["idempotency-replayed"] == "true"
        made = first.json()
        del made["secret"]
        assert again.json() == made
        assert await ask(desk, "listWebhooks") == {"webhooks": [made]}


@asynchronous
async def test_what_may_be_secret_in_its_address_is_not_shown(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        for url, shown in (
            ("https://there.example/a?key=s3cret", "https://there.example/a?…"),
            ("https://there.example/api/webhooks/1234/s3cret?wait=1", "https://there.example/api/…"),
            (f"https://there.example/s3cret{'0' * 20}", "https://there.example/…"),
            ("https://there.example:8443", "https://there.example:8443"),
        ):
            assert (await make(desk, url=url))["url"] == shown
        slack = await make(desk, kind="SLACK", url="https://hooks.slack.com/services/T0/B0/s3cret")
        assert (slack["url"], "secret" in slack) == ("https://hooks.slack.com/…", False)
        assert "s3cret" not in (await desk.send("listWebhooks", {})).text
        audited = await desk.world.store.audit(AuditPage(take=99))
        assert [entry.body for entry in audited if b"s3cret" in entry.body] == []


@asynchronous
async def test_only_what_is_given_changes(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        made = await make(desk, events=["queue.updated"], queues=[QUEUE])
        del made["secret"]
        assert await ask(desk, "updateWebhook", id=made["id"]) == made
        changed = await ask(desk, "updateWebhook", id=made["id"], events=["QUEUE.STATE_CHANGED"], url=URL + "/2")
        assert changed == made | {"events": ["queue.state_changed"], "url": URL + "/…"}
        await desk.ask("updateQueue", state="PAUSED", concurrency=7)
        assert [(heard.url, heard.payload["type"]) for heard in desk.world.sender.received] == [
            (URL + "/2", "queue.state_changed")
        ]
        assert (await ask(desk, "updateWebhook", id=made["id"], queues=[{"repo": REPOSITORY}]))["queues"] == [
            {"repo": REPOSITORY}
        ]


@asynchronous
async def test_while_it_is_disabled_it_misses_nothing(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        made = await make(desk)
        disabled = await ask(desk, "updateWebhook", id=made["id"], enabled=False)
        assert disabled["disabled"] == {"at": "2023-11-14T22:13:20.000Z", "reason": "asked", "message": ""}
        await desk.ask("updateQueue", concurrency=7)
        assert desk.world.sender.attempts == []
        await ask(desk, "updateWebhook", id=made["id"], enabled=True)
        assert desk.world.sender.types() == ["queue.updated"]


@asynchronous
async def test_a_deleted_webhook_hears_nothing_more_and_is_known_no_more(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        made = await make(desk)
        assert await ask(desk, "deleteWebhook", id=made["id"]) == {"deleted": True, "id": made["id"]}
        await desk.ask("updateQueue", concurrency=7)
        assert desk.world.sender.attempts == []
        for endpoint in ("deleteWebhook", "updateWebhook", "testWebhook", "listWebhookDeliveries"):
            assert await refuses(desk, endpoint, id=made["id"]) == "webhook_not_found"


@asynchronous
async def test_a_test_tells_how_it_went(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        made = await make(desk)
        told = await ask(desk, "testWebhook", id=made["id"])
        assert (told["type"], told["delivered"], told["status"], told["attempt"]) == ("webhook.test", True, 200, 1)
        desk.world.sender.answers["there.example"] = 0
        told = await ask(desk, "testWebhook", id=made["id"])
        assert (told["delivered"], told["status"], told["message"]) == (False, None, "Nobody answered.")
        (heard,) = desk.world.sender.received
        assert heard.payload["type"] == "webhook.test"


@asynchronous
async def test_an_event_is_sent_again_under_its_name(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        made = await make(desk)
        await desk.ask("updateQueue", concurrency=7)
        (first,) = (await ask(desk, "listWebhookDeliveries", id=made["id"]))["deliveries"]
        again = await ask(desk, "resendWebhookEvent", id=made["id"], eventId=first["eventId"])
        assert again == first | {"attempt": 2}
        one, other = desk.world.sender.received
        assert (one.id, one.body) == (other.id, other.body)
        listed = (await ask(desk, "listWebhookDeliveries", id=made["id"], take=1))["deliveries"]
        assert listed == [again]


@asynchronous
async def test_a_test_cannot_be_sent_again(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        made = await make(desk)
        test = await ask(desk, "testWebhook", id=made["id"])
        assert await refuses(desk, "resendWebhookEvent", id=made["id"], eventId=test["eventId"]) == "event_not_found"


@asynchronous
async def test_every_write_keeps_its_answer(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        made = await make(desk)
        await desk.ask("updateQueue", concurrency=7)
        (first,) = (await ask(desk, "listWebhookDeliveries", id=made["id"]))["deliveries"]
        writes = {
            "updateWebhook": {"description": "x"},
            "testWebhook": {},
            "resendWebhookEvent": {"eventId": first["eventId"]},
            "deleteWebhook": {},
        }
        for endpoint, members in writes.items():
            body, key = {"id": made["id"]} | members, {"idempotency-key": endpoint}
            one, other = [await desk.send(endpoint, body, headers=key) for _ in range(2)]
            assert (one.status_code, other.content) == (200, one.content), endpoint
            assert other.headers["idempotency-replayed"] == "true", endpoint
        assert len(desk.world.sender.attempts) == 3


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
async def test_what_does_not_fit_is_refused(members: dict[str, Any], tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        assert await refuses(desk, "createWebhook", **members) == "invalid_request"


@asynchronous
async def test_an_address_that_is_not_allowed_changes_nothing(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        made = await make(desk)
        assert await refuses(desk, "updateWebhook", id=made["id"], url="https://private.example") == (
            "address_not_allowed"
        )
        assert (await ask(desk, "listWebhooks"))["webhooks"][0]["url"] == URL


# Whose webhooks they are


@asynchronous
async def test_a_token_that_is_limited_sees_only_webhooks_within_its_limits(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        inside = await desk.token(Scope.ADMIN, repos=[REPO])
        outside = await desk.token(Scope.ADMIN, repos=[Repo("git.local", "acme", "other")])
        everything, ours = await make(desk), await make(desk, queues=[QUEUE])
        listed = [
            [each["id"] for each in (await desk.send("listWebhooks", {}, token=token)).json()["webhooks"]]
            for token in (inside, outside)
        ]
        assert listed == [[ours["id"]], []]
        assert await refuses(desk, "deleteWebhook", token=inside, id=everything["id"]) == "webhook_not_found"
        assert await refuses(desk, "testWebhook", token=outside, id=ours["id"]) == "webhook_not_found"


@asynchronous
async def test_a_limited_token_sees_no_deliveries_of_repositories_that_the_webhook_once_had(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        Origin.made(tmp_path / "repos" / "acme" / "other.git").commit("main", {"a": "1"})
        other = QUEUE | {"repo": REPOSITORY | {"name": "other"}}
        await desk.send("createQueue", other)
        made = (await make(desk, queues=[QUEUE, other]))["id"]
        await desk.send("updateQueue", other | {"concurrency": 7})
        await desk.ask("updateQueue", concurrency=7)
        await ask(desk, "testWebhook", id=made)
        await ask(desk, "updateWebhook", id=made, queues=[QUEUE])
        inside = await desk.token(Scope.ADMIN, repos=[REPO])
        everything = (await ask(desk, "listWebhookDeliveries", id=made))["deliveries"]
        visible = (await desk.send("listWebhookDeliveries", {"id": made}, token=inside)).json()["deliveries"]
        assert [each["type"] for each in everything] == ["webhook.test", "queue.updated", "queue.updated"]
        assert visible == everything[:2]
        newest = (await desk.send("listWebhookDeliveries", {"id": made, "take": 1}, token=inside)).json()
        assert newest["deliveries"] == everything[:1]
        hidden = {"id": made, "eventId": everything[2]["eventId"]}
        assert code_of(await desk.send("resendWebhookEvent", hidden, token=inside)) == "event_not_found"
        (limited,) = [token for token in await desk.world.service.tokens.all() if token.repos]
        trying = desk.world.service.office.trying
        assert await trying.payload(Asker(limited), made, everything[2]["eventId"]) is None
        assert await trying.payload(Asker(limited), made, everything[1]["eventId"])


@asynchronous
async def test_a_token_that_is_limited_must_say_of_what_to_tell_within_its_limits(tmp_path: Path):
    async with a_desk(tmp_path) as desk:
        inside = await desk.token(Scope.ADMIN, repos=[REPO])
        other = [{"repo": REPOSITORY | {"name": "other"}}]
        assert await refuses(desk, "createWebhook", token=inside, url=URL) == "invalid_request"
        assert await refuses(desk, "createWebhook", token=inside, url=URL, queues=other) == "repository_not_found"
        made = (await desk.send("createWebhook", {"url": URL, "queues": [QUEUE]}, token=inside)).json()
        assert await refuses(desk, "updateWebhook", token=inside, id=made["id"], queues=[]) == "invalid_request"
        assert await refuses(desk, "updateWebhook", token=inside, id=made["id"], queues=other) == (
            "repository_not_found"
        )
