"""Administrative actions are recorded in the audit log with their details, and appear nowhere else."""

from pathlib import Path

import msgspec

from mergeyard.domain.journal import AdminAction
from mergeyard.domain.timestamps import Instant, later
from mergeyard.domain.webhooks import EventType, WebhookKind
from mergeyard.ports.store import AuditQuery
from mergeyard.service.audit_log import decode_journal_entry
from mergeyard.service.webhooks.webhooks import OPERATOR, WebhookChanges, WebhookClient
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, Scenario, a_scenario

URL = "https://there.example/hook?key=hidden"


async def admin_actions(scenario: Scenario) -> list[AdminAction]:
    """Oldest first."""
    records = [decode_journal_entry(entry.body) for entry in await scenario.store.audit_entries(AuditQuery(take=99))]
    return [record for record in reversed(records) if isinstance(record, AdminAction)]


async def create_webhook(scenario: Scenario, actor: WebhookClient = OPERATOR) -> str:
    made, _ = await scenario.service.webhooks.create(actor, WebhookKind.WEBHOOK, URL, WebhookChanges(), lambda _: b"")
    await scenario.service.webhook_subscriptions.refresh()
    await scenario.wait_until_idle()
    return made.id


@asynchronous
async def test_every_change_of_a_webhook_is_recorded_without_its_secrets(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        webhooks = scenario.service.webhooks
        token, _ = await scenario.service.tokens.create("boss")
        boss = WebhookClient(token)
        webhook = await create_webhook(scenario, boss)
        changes = WebhookChanges(url="https://there.example/other", events=(EventType.PR_MERGED,), description="for us")
        await webhooks.update(boss, webhook, changes, lambda _: b"")
        await webhooks.update(OPERATOR, webhook, WebhookChanges(enabled=False), lambda _: b"")
        await webhooks.update(OPERATOR, webhook, WebhookChanges(enabled=True), lambda _: b"")
        await webhooks.send_test(boss, webhook, msgspec.json.encode)
        await webhooks.delete(boss, webhook, b"")
        recorded = [
            (type(action).__name__, action.actor, action.name) for action in (await admin_actions(scenario))[1:]
        ]
        by_boss = f"boss#{token.id}"
        assert recorded == [
            ("WebhookCreated", by_boss, "https://there.example/hook?…"),
            ("WebhookChanged", by_boss, "https://there.example/other"),
            ("WebhookChanged", "operator", "https://there.example/other"),
            ("WebhookChanged", "operator", "https://there.example/other"),
            ("WebhookTested", by_boss, "https://there.example/other"),
            ("WebhookDeleted", by_boss, "https://there.example/other"),
        ]
        details = [action.detail for action in (await admin_actions(scenario))[2:5]]
        assert details == ["address, events, description", "disabled (asked)", "enabled"]
        assert {action.id for action in (await admin_actions(scenario))[1:]} == {webhook}
        bodies = b"".join(entry.body for entry in await scenario.store.audit_entries(AuditQuery(take=99)))
        assert b"hidden" not in bodies
        assert b"whsec_" not in bodies


@asynchronous
async def test_resending_an_event_is_recorded_with_its_outcome(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        webhook = await create_webhook(scenario)
        scenario.open(1)
        await scenario.submit(1)
        event = scenario.sender.received[0].id
        scenario.sender.statuses["there.example"] = 500
        await scenario.service.webhooks.resend_event(OPERATOR, webhook, event, msgspec.json.encode)
        resent = (await admin_actions(scenario))[-1]
        assert type(resent).__name__ == "EventResent"
        assert resent.detail == f"{event} was not delivered"


@asynchronous
async def test_automatic_disabling_of_a_webhook_is_recorded_with_the_system_as_actor(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await create_webhook(scenario)
        scenario.sender.statuses["there.example"] = 410
        scenario.open(1)
        await scenario.submit(1)
        disabled = (await admin_actions(scenario))[-1]
        assert (disabled.actor, disabled.detail) == ("mergeyard", "disabled (gone)")


@asynchronous
async def test_admin_actions_appear_in_no_webhook_timeline_or_metric(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await create_webhook(scenario)
        scenario.open(1)
        await scenario.submit(1)
        before = await visible_history(scenario)
        token, _ = await scenario.service.tokens.create("ci")
        await scenario.service.tokens.revoke(token.id)
        await scenario.service.journal_consumers.wake_lagging()
        await scenario.wait_until_idle()
        assert await visible_history(scenario) == before
        await scenario.passes(1)
        assert scenario.sender.received_types()[-1] == "pull_request.merged"


async def visible_history(scenario: Scenario) -> tuple[object, ...]:
    """What webhooks received, what the pull request's page shows, and the metrics."""
    submission_id, now = (await scenario.submission(1)).id, scenario.clock.now()
    return (
        scenario.sender.received_types(),
        await scenario.service.submission_queries.read_timeline(KEY, submission_id),
        await scenario.store.transitions([scenario.queue_actor.id], Instant(0), later(now, 1)),
    )
