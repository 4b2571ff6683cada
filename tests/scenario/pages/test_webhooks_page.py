"""Webhooks are made, changed, tried and deleted on their pages, with the log of what was sent."""

from pathlib import Path

from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import Scope
from mergeyard.domain.webhooks import EventType, Topic, Webhook
from mergeyard.service.telling.webhooks import OPERATOR
from tests.support.asynchronous import asynchronous
from tests.support.browsing import Page, Visitor, a_visitor
from tests.support.scenario import REPO, Scenario, a_scenario

PAGE = "/administration/webhooks"
URL = "https://there.example/hook?key=sesame"
ELSEWHERE = Repo("git.local", "acme", "lib")


async def make(scenario: Scenario, visitor: Visitor, **fields: str | list[str]) -> Page:
    answer = await visitor.post(PAGE, **{"url": URL, "kind": "webhook", **fields})
    await scenario.rest()
    return answer


async def the_webhook(scenario: Scenario) -> Webhook:
    (webhook,) = await scenario.service.office.webhooks.seen_by(OPERATOR)
    return webhook


@asynchronous
async def test_a_webhook_is_made_and_its_secret_shown_once(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN) as visitor:
        assert "No webhook yet" in (await visitor.get(PAGE)).text
        assert (await visitor.get(f"{PAGE}/new")).one("h1").text == "New webhook"
        made = await make(
            scenario, visitor, event=["pull_request.merged"], topics="git.local/acme/app:main", description="<b>us</b>"
        )
        secret = made.one(".secret").one("code").text
        assert secret.startswith("whsec_")
        webhook = await the_webhook(scenario)
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
async def test_what_cannot_be_made_is_said_and_nothing_typed_is_lost(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN) as visitor:
        for fields, words in (
            ({"url": "https://private.example"}, "private"),
            ({"url": ""}, "Give an address"),
            ({"kind": "pigeon"}, "Choose what receives"),
            ({"topics": "nonsense"}, "host/owner/name"),
            ({"description": "x" * 201}, "shorten it"),
        ):
            page = await make(scenario, visitor, event=["queue.created"], **fields)
            assert page.status == 422
            assert words in page.one("[role=alert]").text
            assert page.one("#url")["value"] == fields.get("url", URL)
            assert "checked" in page.one("input[value=queue.created]").attributes
        assert await scenario.service.office.webhooks.seen_by(OPERATOR) == []


@asynchronous
async def test_a_webhook_is_changed_disabled_enabled_and_deleted(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN) as visitor:
        await make(scenario, visitor, event=["pull_request.merged"])
        before = await the_webhook(scenario)
        there = f"{PAGE}/{before.id}"
        assert (await visitor.post(there, event=["queue.created"], description="new")).location == there
        changed = await the_webhook(scenario)
        assert (changed.events, changed.description, changed.sealed) == (
            (EventType.QUEUE_CREATED,),
            "new",
            before.sealed,
        )
        refused = await visitor.post(there, url="https://private.example", description="typed")
        assert (refused.status, refused.one("#description")["value"]) == (422, "typed")
        assert (await visitor.post(f"{there}/disable")).location == there
        assert "Somebody disabled it." in (await visitor.get(there)).text
        assert (await visitor.post(f"{there}/enable")).location == there
        assert (await the_webhook(scenario)).disabled is None
        assert "Delete this webhook?" in (await visitor.get(f"{there}/delete")).text
        assert (await visitor.post(f"{there}/delete")).location == PAGE
        assert (await visitor.get(there)).status == 404
        await scenario.rest()


@asynchronous
async def test_what_was_sent_and_answered_is_shown_and_can_be_sent_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN) as visitor:
        await make(scenario, visitor)
        there = f"{PAGE}/{(await the_webhook(scenario)).id}"
        assert "Nothing was sent yet" in (await visitor.get(there)).text
        said = await visitor.post_in_place(f"{there}/test")
        assert said.text == "Delivered: the answer was 200 (thank you)."
        scenario.open(1)
        await scenario.submit(1)
        event = scenario.sender.received[1].id
        scenario.sender.answers["there.example"] = 500
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
async def test_a_test_holds_nothing_that_is_kept_and_cannot_be_sent_again(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN) as visitor:
        await make(scenario, visitor)
        there = f"{PAGE}/{(await the_webhook(scenario)).id}"
        scenario.sender.answers["there.example"] = 0
        await visitor.post(f"{there}/test")
        (link,) = [link for link in (await visitor.get(there)).links() if "/events/" in link]
        page = await visitor.get(link)
        assert "nobody answered" in page.text
        assert "is not kept" in page.text
        assert not page.all("input[name=event]")


@asynchronous
async def test_a_webhook_that_gave_up_says_why(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_visitor(scenario, Scope.ADMIN) as visitor:
        await make(scenario, visitor)
        scenario.sender.answers["there.example"] = 410
        scenario.open(1)
        await scenario.submit(1)
        page = await visitor.get(f"{PAGE}/{(await the_webhook(scenario)).id}")
        assert "The receiver said that nothing is wanted there any more." in page.text
        assert "disabled: gone" in (await visitor.get(PAGE)).text


@asynchronous
async def test_whoever_is_limited_sees_and_makes_webhooks_of_their_repositories_alone(tmp_path: Path):
    async with (
        a_scenario(tmp_path) as scenario,
        a_visitor(scenario, Scope.ADMIN) as boss,
        a_visitor(scenario, Scope.ADMIN, repos=(ELSEWHERE,), name="limited") as limited,
        a_visitor(scenario, Scope.SUBMIT, name="reader") as reader,
    ):
        await make(scenario, boss, topics="git.local/acme/app")
        foreign = f"{PAGE}/{(await the_webhook(scenario)).id}"
        assert "there.example" not in (await limited.get(PAGE)).text
        for action in ("", "/test", "/disable", "/delete", "/resend"):
            assert (await limited.post(foreign + action, event="x", topics="git.local/acme/lib")).status == 404
            assert (await reader.post(foreign + action)).status == 403
        for page in (foreign, f"{foreign}/delete"):
            assert (await limited.get(page)).status == 404
        assert (await reader.get(PAGE)).status == 403
        assert "name those of which to tell" in (await make(scenario, limited)).text
        assert "does not reach" in (await make(scenario, limited, topics="git.local/acme/app")).text
        assert (await make(scenario, limited, topics="git.local/acme/lib")).status == 200
        assert (await boss.post(f"{foreign}/delete", csrf="forged")).status == 400
        assert len(await scenario.service.office.webhooks.seen_by(OPERATOR)) == 2
