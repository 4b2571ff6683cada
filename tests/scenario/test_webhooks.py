"""Webhooks receive every event in order, also after failures of the receiver or the server."""

from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.timestamps import later
from mergeyard.domain.webhooks import DisabledReason, EventType, Topic, WebhookKind
from mergeyard.service.webhooks.dispatch import DISABLE_AFTER_MS
from mergeyard.service.webhooks.webhooks import OPERATOR, WebhookChanges
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, MINUTE, REPO, Scenario, ScenarioSetup, a_scenario

URL = "https://there.example/hook"
HOUR = 60 * MINUTE


async def create_webhook(
    scenario: Scenario, url: str = URL, kind: WebhookKind = WebhookKind.WEBHOOK, **changes: object
) -> str:
    """Creates a webhook, returns its id and makes its secret known to the fake sender."""
    webhooks = scenario.service.webhooks
    webhook, secret = await webhooks.create(OPERATOR, kind, url, WebhookChanges(**changes), lambda _: b"")  # pyright: ignore[reportArgumentType]
    scenario.sender.secrets[webhook.id] = secret or ""
    await scenario.service.webhook_subscriptions.refresh()
    await scenario.wait_until_idle()
    return webhook.id


async def hours_pass(scenario: Scenario, hours: int) -> None:
    """In large steps, not from alarm to alarm."""
    for _ in range(2 * hours):
        scenario.clock.move_to(later(scenario.clock.now(), HOUR // 2))
        await scenario.wait_until_idle()


@asynchronous
async def test_webhook_receives_every_step_of_a_pr(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await create_webhook(scenario)
        scenario.open(1)
        await scenario.submit(1)
        run = scenario.run_of(1)
        await scenario.passes(1)
        assert scenario.sender.received_types() == [
            "pull_request.submitted",
            "pull_request.queued",
            "pull_request.testing",
            "pull_request.tests_passed",
            "pull_request.merged",
        ]
        last = scenario.sender.received[-1].payload
        assert last == {"type": "pull_request.merged", "timestamp": last["timestamp"], "data": last["data"]}
        assert last["data"] == {
            "type": "pull_request.merged",
            "timestamp": "2023-11-14T22:13:20.000Z",
            "repository": "git.local/acme/app",
            "target_branch": "main",
            "pr_number": 1,
            "author": "Ada",
            "state": "merged",
            "reason": "merged_by_queue",
            "actor": None,
            "caused_by": [],
            "test_run_id": run.id,
            "test_branch": f"mergeyard/pr-1/{run.id}",
            "test_branch_sha": run.tip,
            "batched": False,
            "is_bisection": False,
            "details_url": "http://yard.example/pulls/git.local/acme/app/1",
        }


@asynchronous
async def test_deliveries_are_signed_as_standard_webhooks_specifies(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        name = await create_webhook(scenario)
        scenario.open(1)
        await scenario.submit(1)
        for delivery in scenario.sender.received:
            verifier = Verifier(scenario.sender.secrets[name])
            now = int(delivery.headers["webhook-timestamp"])
            assert now == scenario.clock.now() // 1000
            assert delivery.headers["webhook-signature"] == verifier.sign(
                delivery.id, scenario.sender.time_of(delivery), delivery.body.decode()
            )


@asynchronous
async def test_webhook_receives_queue_events_including_deletion(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await create_webhook(scenario)
        other = QueueKey(REPO, "next")
        scenario.origin.branch("next", base="main", files={"a": "1"})
        await scenario.create_queue(key=other)
        await scenario.update(concurrency=7)
        await scenario.service.queues.delete(other, "ada", b"", None)
        await scenario.wait_until_idle()
        received = [(each.payload["type"], each.payload["data"]["target_branch"]) for each in scenario.sender.received]
        assert received == [("queue.created", "next"), ("queue.updated", "main"), ("queue.deleted", "next")]


@asynchronous
async def test_only_subscribed_events_are_sent(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await create_webhook(scenario, "https://failures.example", events=(EventType.PR_FAILED,))
        await create_webhook(scenario, "https://elsewhere.example", topics=(Topic(Repo("git.local", "acme", "other")),))
        await create_webhook(scenario, "https://next.example", topics=(Topic(REPO, "next"),))
        await create_webhook(
            scenario, "https://main.example", topics=(Topic(REPO, "main"),), events=(EventType.PR_TESTING,)
        )
        scenario.open(1)
        await scenario.submit(1)
        await scenario.report_all_runs(1)
        received = [(each.url, each.payload["type"]) for each in scenario.sender.received]
        assert sorted(received) == [
            ("https://failures.example", "pull_request.failed"),
            ("https://main.example", "pull_request.testing"),
        ]


@asynchronous
async def test_receiver_that_was_down_gets_all_events_in_order(tmp_path: Path):
    async with a_scenario(tmp_path, setup=ScenarioSetup(poll_interval_ms=MINUTE)) as scenario:
        name = await create_webhook(scenario)
        scenario.sender.statuses["there.example"] = 503
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await hours_pass(scenario, 3)
        assert scenario.sender.received == []
        tried = {each.id for each in scenario.sender.attempts}
        assert (len(tried), len(scenario.sender.attempts) > 5) == (1, True)
        scenario.sender.statuses.clear()
        await hours_pass(scenario, 1)
        received = [(each.payload["data"]["pr_number"], each.payload["type"]) for each in scenario.sender.received]
        for number in (1, 2):
            assert [kind for pull, kind in received if pull == number] == [
                "pull_request.submitted",
                "pull_request.queued",
                "pull_request.testing",
            ]
        (*_, first) = await scenario.service.webhooks.list_deliveries(OPERATOR, name, 200)
        assert (first.delivered, first.status, first.attempt) == (False, 503, 1)


@pytest.mark.long
@asynchronous
async def test_rejected_event_delays_later_ones_and_repeats_no_earlier_one(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await create_webhook(scenario)
        scenario.sender.statuses["there.example"] = 0
        scenario.sender.rejected_type = "pull_request.testing"
        scenario.open(1)
        await scenario.submit(1)
        scenario.sender.statuses.clear()
        await scenario.passes(1)
        await scenario.advance_time(MINUTE)
        assert scenario.sender.received_types() == ["pull_request.submitted", "pull_request.queued"]
        scenario.sender.rejected_type = ""
        await scenario.advance_time(2 * MINUTE)
        assert scenario.sender.received_types()[2:] == [
            "pull_request.testing",
            "pull_request.tests_passed",
            "pull_request.merged",
        ]


@asynchronous
async def test_delivery_continues_after_a_restart(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await create_webhook(scenario)
        scenario.sender.statuses["there.example"] = 0
        scenario.open(1)
        await scenario.submit(1)
        await scenario.restart()
        scenario.sender.statuses.clear()
        await scenario.advance_time(MINUTE)
        assert scenario.sender.received_types() == [
            "pull_request.submitted",
            "pull_request.queued",
            "pull_request.testing",
        ]
        assert len({each.id for each in scenario.sender.received}) == 3


@asynchronous
async def test_receiver_that_fails_for_three_days_is_disabled_and_shown_as_such(tmp_path: Path):
    async with a_scenario(tmp_path, setup=ScenarioSetup(poll_interval_ms=6 * HOUR)) as scenario:
        name = await create_webhook(scenario)
        scenario.sender.statuses["there.example"] = 500
        await scenario.update(concurrency=7)
        await hours_pass(scenario, DISABLE_AFTER_MS // HOUR - 2)
        webhooks = scenario.service.webhooks
        assert (await webhooks.find(OPERATOR, name)).webhook.disabled is None
        await hours_pass(scenario, 4)
        disabled = (await webhooks.find(OPERATOR, name)).webhook.disabled
        assert disabled is not None
        assert (disabled.reason, disabled.detail) == (DisabledReason.FAILING, "no")
        attempts = len(scenario.sender.attempts)
        await hours_pass(scenario, 12)
        assert len(scenario.sender.attempts) == attempts
        scenario.sender.statuses.clear()
        await webhooks.update(OPERATOR, name, WebhookChanges(enabled=True), lambda _: b"")
        await scenario.service.webhook_subscriptions.refresh()
        await scenario.wait_until_idle()
        assert scenario.sender.received_types() == ["queue.updated"]


@asynchronous
async def test_receiver_that_responds_gone_is_disabled_immediately(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        name = await create_webhook(scenario)
        scenario.sender.statuses["there.example"] = 410
        await scenario.update(concurrency=7)
        disabled = (await scenario.service.webhooks.find(OPERATOR, name)).webhook.disabled
        assert disabled is not None
        assert disabled.reason is DisabledReason.GONE


@asynchronous
async def test_slack_receives_a_readable_message(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await create_webhook(
            scenario, kind=WebhookKind.SLACK, events=(EventType.PR_FAILED, EventType.QUEUE_STATE_CHANGED)
        )
        scenario.open(1)
        scenario.set_pull_request(1, title="Count <sheep> & goats")
        await scenario.submit(1)
        await scenario.report_all_runs(1)
        (delivery,) = scenario.sender.received
        assert delivery.payload["text"] == "❌ #1 Count &lt;sheep&gt; &amp; goats by Ada failed"
        assert "webhook-signature" not in delivery.headers
        section, context = delivery.payload["blocks"]
        assert "Fix them, push, and submit again. <http://yard.example/pulls/" in section["text"]["text"]
        assert context["elements"][0]["text"] == "main of git.local/acme/app · test_run_failed"


@asynchronous
async def test_nothing_secret_is_in_the_database(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        name = await create_webhook(scenario, "https://there.example/hook/T0PSECRET?key=s3cret")
        await scenario.update(concurrency=7)
        secret = scenario.sender.secrets[name].encode()
        await scenario.service.stop()
        kept = b"".join(file.read_bytes() for file in (tmp_path / "data").iterdir())
        assert b"s3cret" not in kept
        assert secret not in kept
        await scenario.start()


@asynchronous
async def test_changes_made_by_the_cli_take_effect_in_the_server(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        name = await create_webhook(scenario)
        await scenario.service.webhooks.delete(OPERATOR, name, b"")
        await scenario.advance_time(MINUTE)
        await scenario.update(concurrency=7)
        assert scenario.sender.attempts == []
        assert await scenario.store.queues_with_unread_entries(f"webhook:{name}") != ()
        assert KEY in [actor.key for actor in scenario.service.registry]
