"""Webhooks are created, changed, tested and deleted on their pages, which also show the delivery log."""

from pathlib import Path

from mergeyard.domain.access import Scope
from mergeyard.domain.ids import Repo
from mergeyard.domain.states import REASON_MESSAGES, Reason
from mergeyard.domain.webhooks import EventType, Topic, Webhook
from mergeyard.service.webhooks.webhooks import OPERATOR
from tests.support.asynchronous import asynchronous
from tests.support.scenario import REPO, Scenario, a_scenario
from tests.support.web_client import Page, WebClient, a_signed_in_client

PAGE = "/administration/webhooks"
URL = "https://there.example/hook?key=sesame"
ELSEWHERE = Repo("git.local", "acme", "lib")


async def create_webhook(scenario: Scenario, visitor: WebClient, **fields: str | list[str]) -> Page:
    answer = await visitor.post(PAGE, **{"url": URL, "kind": "webhook", **fields})
    await scenario.wait_until_idle()
    return answer


async def read_webhook(scenario: Scenario) -> Webhook:
    (webhook,) = await scenario.service.webhooks.list_visible(OPERATOR)
    return webhook


@asynchronous
async def test_webhook_is_created_and_its_secret_shown_once(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        assert "No webhooks yet" in (await visitor.get(PAGE)).text
        assert (await visitor.get(f"{PAGE}/new")).one("h1").text == "Create webhook"
        made = await create_webhook(
            scenario, visitor, event=["pull_request.merged"], topics="git.local/acme/app:main", description="<b>us</b>"
        )
        secret = made.one(".secret").one("code").text
        assert secret.startswith("whsec_")
        webhook = await read_webhook(scenario)
        assert webhook.events == (EventType.PR_MERGED,)
        assert webhook.topics == (Topic(REPO, "main"),)
        listed, one = await visitor.get(PAGE), await visitor.get(f"{PAGE}/{webhook.id}")
        for page in (listed, one):
            assert "https://there.example/hook?…" in page.text
            assert "<b>us</b>" in page.text
            assert "enabled" in page.text
            assert secret not in page.html
            assert "sesame" not in page.html


@asynchronous
async def test_events_are_chosen_by_a_preset_or_one_by_one(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        page = await visitor.get(f"{PAGE}/new")
        assert [radio["value"] for radio in page.all("input[name=preset]")] == ["all", "ends", "failures", "chosen"]
        assert [radio["value"] for radio in page.all("input[checked][name=preset]")] == ["all"]
        assert [box["value"] for box in page.all("input[name=event]")] == list(EventType)
        assert "a pull request failed and left the queue" in page.text
        assert (await create_webhook(scenario, visitor, preset="chosen")).status == 422
        await create_webhook(scenario, visitor, preset="ends", event=["queue.created"])
        webhook = await read_webhook(scenario)
        assert set(webhook.events) == {EventType.PR_MERGED, EventType.PR_FAILED}
        there = f"{PAGE}/{webhook.id}"
        for fields, preset, events in (
            ({"preset": "all", "event": ["queue.created"]}, "all", ()),
            ({"preset": "failures"}, "failures", (EventType.PR_FAILED,)),
            ({"preset": "chosen", "event": ["queue.created"]}, "chosen", (EventType.QUEUE_CREATED,)),
        ):
            await visitor.post(there, **fields)
            assert (await read_webhook(scenario)).events == events
            shown = await visitor.get(there)
            assert [radio["value"] for radio in shown.all("input[checked][name=preset]")] == [preset]
        await scenario.wait_until_idle()


@asynchronous
async def test_form_shows_a_message_as_slack_would_get_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        preview = (await visitor.get(f"{PAGE}/new")).one(".preview").text
        assert "❌ #12 Fix the login page by ada failed" in preview
        assert f"{REASON_MESSAGES[Reason.TEST_RUN_FAILED]} Details" in preview
        assert "main of github.com/acme/app · test_run_failed" in preview


@asynchronous
async def test_invalid_webhook_is_explained_and_the_input_kept(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        for fields, message in (
            ({"url": "https://private.example"}, "private"),
            ({"url": ""}, "Enter a URL"),
            ({"kind": "pigeon"}, "Choose the type"),
            ({"topics": "nonsense"}, "host/owner/name"),
            ({"description": "x" * 201}, "shorten it"),
        ):
            page = await create_webhook(scenario, visitor, event=["queue.created"], **fields)
            assert page.status == 422
            assert message in page.one("main").one("[role=alert]").text
            assert page.one("#url")["value"] == fields.get("url", URL)
            assert "checked" in page.one("input[value=queue.created]").attributes
        assert await scenario.service.webhooks.list_visible(OPERATOR) == []


@asynchronous
async def test_a_webhook_is_changed_disabled_enabled_and_deleted(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        await create_webhook(scenario, visitor, event=["pull_request.merged"])
        before = await read_webhook(scenario)
        there = f"{PAGE}/{before.id}"
        assert (await visitor.post(there, event=["queue.created"], description="new")).location == there
        changed = await read_webhook(scenario)
        assert (changed.events, changed.description, changed.encrypted_endpoint) == (
            (EventType.QUEUE_CREATED,),
            "new",
            before.encrypted_endpoint,
        )
        refused = await visitor.post(there, url="https://private.example", description="typed")
        assert (refused.status, refused.one("#description")["value"]) == (422, "typed")
        assert (await visitor.post(f"{there}/disable")).location == there
        assert "An administrator disabled it." in (await visitor.get(there)).text
        assert (await visitor.post(f"{there}/enable")).location == there
        assert (await read_webhook(scenario)).disabled is None
        assert "Delete this webhook?" in (await visitor.get(f"{there}/delete")).text
        assert (await visitor.post(f"{there}/delete")).location == PAGE
        assert (await visitor.get(there)).status == 404
        await scenario.wait_until_idle()


@asynchronous
async def test_deliveries_are_shown_and_can_be_sent_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        await create_webhook(scenario, visitor)
        there = f"{PAGE}/{(await read_webhook(scenario)).id}"
        assert "No deliveries yet" in (await visitor.get(there)).text
        said = await visitor.post_htmx(f"{there}/test")
        assert said.text == "Delivered: the receiver responded 200 (thank you)."
        scenario.open(1)
        await scenario.submit(1)
        event = scenario.sender.received[1].id
        scenario.sender.statuses["there.example"] = 500
        assert (await visitor.post(f"{there}/resend", event=event)).location == f"{there}#deliveries"
        log = await visitor.get(there)
        rows = [row.text for row in log.all("tr") if event in row.text]
        assert len(rows) == 2
        assert "not delivered 500 no" in rows[0]
        page = await visitor.get(f"{there}/events/{event}")
        assert [attempt["value"] for attempt in page.all("li") if attempt["value"]] == ["2", "1"]
        assert '"pr_number": 1' in page.text
        assert "thank you" in page.text
        test = next(link for link in log.links() if "/events/" in link and event not in link)
        assert (await visitor.get(f"{there}/events/msg_unknown")).status == 404
        assert (await visitor.post(f"{there}/resend", event="msg_unknown")).status == 404
        assert test.startswith(there)


@asynchronous
async def test_test_delivery_is_not_stored_and_cannot_be_sent_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        await create_webhook(scenario, visitor)
        there = f"{PAGE}/{(await read_webhook(scenario)).id}"
        scenario.sender.statuses["there.example"] = 0
        await visitor.post(f"{there}/test")
        (link,) = [link for link in (await visitor.get(there)).links() if "/events/" in link]
        page = await visitor.get(link)
        assert "no response" in page.text
        assert "Payloads of test events are not stored." in page.text
        assert not page.all("input[name=event]")


@asynchronous
async def test_disabled_webhook_shows_the_reason(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        await create_webhook(scenario, visitor)
        scenario.sender.statuses["there.example"] = 410
        scenario.open(1)
        await scenario.submit(1)
        page = await visitor.get(f"{PAGE}/{(await read_webhook(scenario)).id}")
        assert "Mergeyard disabled it because the receiver responded 410 Gone." in page.text
        assert "disabled: gone" in (await visitor.get(PAGE)).text


@asynchronous
async def test_limited_administrator_sees_and_creates_only_webhooks_of_their_repositories(tmp_path: Path):
    async with (
        a_scenario(tmp_path) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN) as boss,
        a_signed_in_client(scenario, Scope.ADMIN, repos=(ELSEWHERE,), name="limited") as limited,
        a_signed_in_client(scenario, Scope.SUBMIT, name="reader") as reader,
    ):
        await create_webhook(scenario, boss, topics="git.local/acme/app")
        foreign = f"{PAGE}/{(await read_webhook(scenario)).id}"
        assert "there.example" not in (await limited.get(PAGE)).text
        for action in ("", "/test", "/disable", "/delete", "/resend"):
            assert (await limited.post(foreign + action, event="x", topics="git.local/acme/lib")).status == 404
            assert (await reader.post(foreign + action)).status == 403
        for page in (foreign, f"{foreign}/delete"):
            assert (await limited.get(page)).status == 404
        assert (await reader.get(PAGE)).status == 403
        assert "name the repositories to report events of" in (await create_webhook(scenario, limited)).text
        assert "has no access to" in (await create_webhook(scenario, limited, topics="git.local/acme/app")).text
        assert (await create_webhook(scenario, limited, topics="git.local/acme/lib")).status == 200
        assert (await boss.post(f"{foreign}/delete", csrf="forged")).status == 400
        assert len(await scenario.service.webhooks.list_visible(OPERATOR)) == 2
