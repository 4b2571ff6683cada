"""What is done to the installation itself is noted with what was done, and told to nobody else."""

from pathlib import Path

import msgspec

from mergeyard.domain.instants import Instant, later
from mergeyard.domain.journal import Deed
from mergeyard.domain.webhooks import EventType, WebhookKind
from mergeyard.ports.store import AuditPage
from mergeyard.service.auditing import decode_kept
from mergeyard.service.telling.webhooks import OPERATOR, Asker, Wishes
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, Scenario, a_scenario

URL = "https://there.example/hook?key=hidden"


async def deeds(scenario: Scenario) -> list[Deed]:
    """Oldest first."""
    records = [decode_kept(entry.body) for entry in await scenario.store.audit(AuditPage(take=99))]
    return [record for record in reversed(records) if isinstance(record, Deed)]


async def a_webhook(scenario: Scenario, asker: Asker = OPERATOR) -> str:
    made, _ = await scenario.service.office.webhooks.create(asker, WebhookKind.WEBHOOK, URL, Wishes(), lambda _: b"")
    await scenario.service.subscriptions.refresh()
    await scenario.rest()
    return made.id


@asynchronous
async def test_everything_that_is_done_to_a_webhook_is_noted_and_no_secret_with_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        office = scenario.service.office
        token, _ = await scenario.service.tokens.create("boss")
        boss = Asker(token)
        webhook = await a_webhook(scenario, boss)
        changes = Wishes(url="https://there.example/other", events=(EventType.PR_MERGED,), description="for us")
        await office.webhooks.update(boss, webhook, changes, lambda _: b"")
        await office.webhooks.update(OPERATOR, webhook, Wishes(enabled=False), lambda _: b"")
        await office.webhooks.update(OPERATOR, webhook, Wishes(enabled=True), lambda _: b"")
        await office.trying.test(boss, webhook, msgspec.json.encode)
        await office.webhooks.delete(boss, webhook, b"")
        noted = [(type(deed).__name__, deed.actor, deed.name) for deed in (await deeds(scenario))[1:]]
        by_boss = f"boss#{token.id}"
        assert noted == [
            ("WebhookCreated", by_boss, "https://there.example/hook?…"),
            ("WebhookChanged", by_boss, "https://there.example/other"),
            ("WebhookChanged", "operator", "https://there.example/other"),
            ("WebhookChanged", "operator", "https://there.example/other"),
            ("WebhookTested", by_boss, "https://there.example/other"),
            ("WebhookDeleted", by_boss, "https://there.example/other"),
        ]
        words = [deed.words for deed in (await deeds(scenario))[2:5]]
        assert words == ["address, events, description", "disabled (asked)", "enabled"]
        assert {deed.id for deed in (await deeds(scenario))[1:]} == {webhook}
        bodies = b"".join(entry.body for entry in await scenario.store.audit(AuditPage(take=99)))
        assert b"hidden" not in bodies
        assert b"whsec_" not in bodies


@asynchronous
async def test_an_event_that_is_sent_again_is_noted_with_what_became_of_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        webhook = await a_webhook(scenario)
        scenario.open(1)
        await scenario.submit(1)
        event = scenario.sender.received[0].id
        scenario.sender.answers["there.example"] = 500
        await scenario.service.office.trying.resend(OPERATOR, webhook, event, msgspec.json.encode)
        resent = (await deeds(scenario))[-1]
        assert type(resent).__name__ == "EventResent"
        assert resent.words == f"{event} did not arrive"


@asynchronous
async def test_a_webhook_that_disabled_itself_is_noted_as_our_own_doing(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await a_webhook(scenario)
        scenario.sender.answers["there.example"] = 410
        scenario.open(1)
        await scenario.submit(1)
        disabled = (await deeds(scenario))[-1]
        assert (disabled.actor, disabled.words) == ("mergeyard", "disabled (gone)")


@asynchronous
async def test_nobody_is_told_of_administration_and_no_figure_counts_it(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await a_webhook(scenario)
        scenario.open(1)
        await scenario.submit(1)
        before = await told(scenario)
        token, _ = await scenario.service.tokens.create("ci")
        await scenario.service.tokens.revoke(token.id)
        await scenario.service.tellers.remind()
        await scenario.rest()
        assert await told(scenario) == before
        await scenario.passes(1)
        assert scenario.sender.types()[-1] == "pull_request.merged"


async def told(scenario: Scenario) -> tuple[object, ...]:
    """To webhooks, on the pull request's page, and by figures."""
    ticket, now = (await scenario.stay(1)).ticket, scenario.clock.now()
    return (
        scenario.sender.types(),
        await scenario.service.listing.timeline(KEY, ticket),
        await scenario.store.figures([scenario.keeper.id], Instant(0), later(now, 1)),
    )
