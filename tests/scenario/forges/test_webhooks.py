"""Webhooks of a forge only trigger a read: with them changes are known immediately, without them within a minute."""

import httpx2
import pytest

from mergeyard.api.request_body import MAX_WEBHOOK_BODY_BYTES
from mergeyard.domain.pull_requests import StatusState
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.driver import POSITIVE
from tests.support.forge_drivers.github import GithubDriver
from tests.support.forge_scenario import USUAL_POLL_INTERVAL_S
from tests.support.forges.github.rulesets import required_checks_rule
from tests.support.log_capture import capture_warnings
from tests.support.scenario import MINUTE, SECOND, ScenarioSetup


@pytest.mark.long
@asynchronous
async def test_with_webhooks_a_pr_merges_without_a_single_poll(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        await scenario.advance_one_second()
        polls = scenario.poll_count()
        scenario.open(1, 2)
        await scenario.comment(1, "/merge")
        await scenario.label(2)
        await scenario.passes(1)
        scenario.push(2, {"more": "m"})
        await scenario.advance_one_second()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert await scenario.state(2) == "cancelled: pr_pushed"
        assert scenario.poll_count() == polls


@asynchronous
async def test_pr_that_waits_for_its_own_checks_is_tested_as_soon_as_they_pass(github_scenario: StartScenario):
    async with github_scenario(setup=ScenarioSetup(repository_config="version = 1\n")) as scenario:
        scenario.forge.protect_main()
        scenario.open(1)
        scenario.forge.push_to_main({"news": "n"})
        await scenario.advance_one_second()
        await scenario.submit(1)
        await scenario.advance_one_second()
        assert await scenario.state(1) == "not_ready: waiting_for_head_checks"
        polls, calls = scenario.poll_count(), len(scenario.forge.faults.calls)
        scenario.forge.report(scenario.forge.head(1), "another check", StatusState.SUCCESS, "")
        await scenario.wait_until_idle()
        assert scenario.forge.faults.calls[calls:] == []
        scenario.forge.satisfy_protection(scenario.forge.head(1))
        await scenario.advance_one_second()
        assert scenario.queue_text == "main ← 1…"
        assert scenario.poll_count() == polls


@asynchronous
async def test_required_check_of_a_pr_is_noticed_at_once_although_its_name_is_cut(github_scenario: StartScenario):
    name = "End-to-end" + " with a long name" * 10
    async with github_scenario(setup=ScenarioSetup(repository_config="version = 1\n")) as scenario:
        assert isinstance(scenario.forge, GithubDriver)
        scenario.forge.acme.add_ruleset("checks", [required_checks_rule(name)])
        scenario.open(1)
        scenario.forge.push_to_main({"news": "n"})
        await scenario.advance_one_second()
        await scenario.submit(1)
        await scenario.advance_one_second()
        assert await scenario.state(1) == "not_ready: waiting_for_head_checks"
        scenario.forge.report(scenario.forge.head(1), name, StatusState.SUCCESS)
        await scenario.advance_one_second()
        assert scenario.queue_text == "main ← 1…"


@pytest.mark.long
@asynchronous
async def test_without_webhooks_checks_and_comments_are_found_within_a_minute(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.forge.deliveries.drop_all = True
        scenario.open(1, 2)
        scenario.forge.label(1, "merge-queue")
        await scenario.comment(2, "/merge")
        await scenario.advance_one_minute()
        assert scenario.queue_text in ("main ← 1… ← 2…", "main ← 2… ← 1…")
        await scenario.report_without_waiting(scenario.run_with(1).tip)
        await scenario.report_without_waiting(scenario.run_with(2).tip)
        await scenario.advance_one_minute()
        assert scenario.forge.is_merged(1)
        assert scenario.forge.is_merged(2)


@pytest.mark.long
@asynchronous
async def test_without_webhooks_changes_of_prs_are_found_within_a_minute(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.forge.deliveries.drop_all = True
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        await scenario.advance_one_second()
        scenario.push(1, {"more": "m"})
        scenario.forge.close_pull_request(2)
        scenario.forge.make_draft(3)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "cancelled: pr_pushed"
        assert await scenario.state(2) == "cancelled: pr_closed"
        assert await scenario.state(3) == "cancelled: pr_converted_to_draft"


@pytest.mark.long
@asynchronous
async def test_without_webhooks_a_push_to_the_target_is_found_within_a_minute(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.forge.deliveries.drop_all = True
        scenario.open(1)
        await scenario.submit(1)
        foreign = scenario.forge.push_to_main({"foreign": "f"})
        await scenario.advance_one_minute()
        assert scenario.run_of(1).base == foreign


@pytest.mark.long
@asynchronous
async def test_change_in_the_same_second_as_the_last_poll_is_found_without_webhooks(forge_scenario: StartScenario):
    """Some forges report times in whole seconds: two comments in one second have the same time."""
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.forge.deliveries.drop_all = True
        scenario.open(1)
        await scenario.advance_time(SECOND // 2)
        await scenario.restart()
        await scenario.advance_time(MINUTE - SECOND // 2)
        await scenario.comment(1, "/merge")
        await scenario.advance_time(SECOND // 2)
        assert scenario.queue_text == "main ← 1…"
        await scenario.comment(1, "/merge cancel")
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_repeated_webhook_is_processed_once(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.forge.deliveries.send_twice = True
        scenario.open(1)
        await scenario.comment(1, "/merge")
        run = scenario.run_of(1).id
        await scenario.comment(1, "/merge status")
        assert len(scenario.replies(1)) == 1
        assert scenario.reactions(1) == [(POSITIVE,), (POSITIVE,)]
        assert scenario.run_of(1).id == run
        await scenario.passes(1)
        assert scenario.forge.is_merged(1)


@asynchronous
async def test_webhooks_in_the_wrong_order_are_processed_in_the_right_order(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.wait_until_idle()
        scenario.forge.deliveries.hold_back = True
        await scenario.comment(1, "/merge", "/merge cancel", "/merge --priority high")
        scenario.forge.deliveries.release()
        await scenario.wait_until_idle()
        assert (await scenario.submission(1)).priority == 10
        await scenario.advance_one_second()
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_old_webhook_about_a_finished_run_changes_nothing(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.deliveries.hold_back = True
        await scenario.fails(1)
        await scenario.restart_tests(1)
        scenario.forge.deliveries.hold_back = False
        scenario.forge.deliveries.release()
        await scenario.wait_until_idle()
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_webhook_with_a_forged_signature_is_refused(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.wait_until_idle()
        genuine = scenario.forge.deliveries.log[0].delivery
        calls = len(scenario.forge.faults.calls)
        for headers in forgeries(dict(genuine.headers)):
            async with httpx2.AsyncClient(trust_env=False) as client:
                answer = await client.post(genuine.url, content=genuine.body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "invalid_token")
        await scenario.wait_until_idle()
        assert len(scenario.forge.faults.calls) == calls


@asynchronous
async def test_a_webhook_can_have_the_25_mb_that_github_sends(github_scenario: StartScenario):
    """Source: github/docs, "Webhook events and payloads": payloads are capped at 25 MB."""
    async with github_scenario() as scenario, httpx2.AsyncClient(trust_env=False) as client:
        largest = await client.post(scenario.webhook_url, content=bytes(25 * 1024 * 1024))
        more = await client.post(scenario.webhook_url, content=bytes(MAX_WEBHOOK_BODY_BYTES + 1))
    assert (largest.status_code, more.status_code) == (401, 413), "the first one only lacks a signature"


@asynchronous
async def test_a_webhook_for_an_unknown_host_is_answered_like_one_with_a_wrong_signature(forge_scenario: StartScenario):
    known_id = {"x-request-id": "the-same"}
    async with forge_scenario() as scenario:
        addresses = (
            scenario.webhook_url,
            f"{scenario.webhook_url}.example",
            scenario.webhook_url.replace("/hooks/", "/hooks/x"),
        )
        with capture_warnings() as lines:
            async with httpx2.AsyncClient(trust_env=False) as client:
                answers = [await client.post(address, content=b"{}", headers=known_id) for address in addresses]
        assert {(answer.status_code, answer.content) for answer in answers} == {(401, answers[0].content)}
        warnings = [entry for entry in lines if entry["event"] == "webhook_signature_invalid"]
        assert [(entry["client"], f"{scenario.bridge.url}{entry['path']}") for entry in warnings] == [
            ("127.0.0.1", address) for address in addresses
        ]
        assert [entry["cause"] == "no such host is configured" for entry in warnings] == [False, True, True]


def forgeries(headers: dict[str, str]) -> list[dict[str, str]]:
    """The headers without the signature, and with a wrong one."""
    proofs = {name for name in headers if "signature" in name or "token" in name}
    bare = {name: value for name, value in headers.items() if name not in proofs}
    return [bare, bare | dict.fromkeys(proofs, "sha256=00"), bare | dict.fromkeys(proofs, "")]
