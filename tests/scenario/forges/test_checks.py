"""Checks are read from the forge, and required checks from the protection rules of the target branch."""

import pytest

from mergeyard.domain.config import Config, DirectMergeMode
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.states import Reason
from mergeyard.service.check_sources import CHECK_POLL_INTERVAL_MS, MAX_PROMPT_READS, MIN_READ_INTERVAL_MS
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.github import GithubDriver
from tests.support.forge_scenario import USUAL_POLL_INTERVAL_S, ForgeScenario
from tests.support.forges.faults import ALWAYS, RespondsWith
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.world import BranchProtection
from tests.support.scenario import KEY, MINUTE, SECOND, ScenarioSetup

UNPROTECTED = ScenarioSetup(repository_config="version = 1\n")


@pytest.mark.long
@asynchronous
async def test_checks_required_by_branch_protection_must_pass(forge_scenario: StartScenario):
    async with forge_scenario(setup=UNPROTECTED) as scenario:
        name = scenario.forge.protect_main()
        scenario.open(1)
        scenario.forge.satisfy_protection(scenario.forge.head(1))
        scenario.forge.push_to_main({"news": "n"})
        await scenario.advance_one_second()
        await scenario.submit(1)
        assert scenario.run_of(1).required_statuses == (name,)
        scenario.forge.satisfy_protection(scenario.run_of(1).tip)
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_check_required_from_one_app_counts_from_no_other_even_if_the_configuration_names_it(
    github_scenario: StartScenario,
):
    async with github_scenario() as scenario:
        acme = await submit_with_check_required_from_one_app(scenario)
        acme.report_status(scenario.run_of(1).tip, "unit", "success")
        await scenario.wait_until_idle()
        assert scenario.queue_text == "main ← 1…"
        acme.report_status(scenario.run_of(1).tip, "unit", "success", app=7)
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_check_required_from_one_app_counts_from_no_other_after_a_restart(github_scenario: StartScenario):
    async with github_scenario(setup=UNPROTECTED) as scenario:
        acme = await submit_with_check_required_from_one_app(scenario)
        await scenario.service.stop()
        acme.report_status(scenario.run_of(1).tip, "unit", "success")
        scenario.forge.faults.plan(RespondsWith(503), "/rules/", times=ALWAYS)
        await scenario.start()
        await scenario.advance_one_second()
        assert scenario.queue_text == "main ← 1…"
        scenario.forge.faults.clear()
        acme.report_status(scenario.run_of(1).tip, "unit", "success", app=7)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"


async def submit_with_check_required_from_one_app(scenario: ForgeScenario) -> FakeRepository:
    assert isinstance(scenario.forge, GithubDriver)
    acme = scenario.forge.acme
    acme.rulesets["main"] = BranchProtection(contexts=["unit"], apps={"unit": 7})
    scenario.open(1)
    acme.report_status(scenario.forge.head(1), "unit", "success", app=7)
    scenario.forge.push_to_main({"news": "n"})
    await scenario.advance_one_second()
    await scenario.submit(1)
    assert scenario.queue_text == "main ← 1…"
    return acme


@pytest.mark.long
@asynchronous
async def test_without_required_checks_nothing_merges(forge_scenario: StartScenario):
    async with forge_scenario(setup=UNPROTECTED) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert (await scenario.view(1)).reason.code is Reason.NO_REQUIRED_STATUSES
        assert not scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_checks_and_statuses_are_shown_with_their_links(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tip = scenario.run_of(1).tip
        scenario.forge.run_check(tip, "lint", "https://ci.example/lint")
        scenario.forge.report(tip, "deploy", StatusState.PENDING, "https://ci.example/deploy")
        await scenario.advance_time(USUAL_POLL_INTERVAL_S * SECOND)
        details = await scenario.run_details(1)
        links = {run["name"]: run["url"] for suite in details["checkSuites"] for run in suite["checkRuns"]}
        links |= {status["context"]: status["url"] for status in details["statusChecks"]}
        assert links["deploy"] == "https://ci.example/deploy"
        assert links["lint"].startswith("http")


@pytest.mark.long
@asynchronous
async def test_checks_are_grouped_by_suite(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.run_check(scenario.run_of(1).tip, "lint", "https://ci.example/lint")
        await scenario.report_without_waiting(scenario.run_of(1).tip, StatusState.PENDING)
        await scenario.wait_until_idle()
        details = await scenario.run_details(1)
        (suite,) = details["checkSuites"]
        assert suite["checkRuns"] == [
            {"name": "lint", "url": "https://ci.example/lint", "status": "completed", "conclusion": "success"}
        ]
        (unit,) = details["statusChecks"]
        assert (unit["context"], unit["state"]) == ("unit", "pending")


@pytest.mark.long
@asynchronous
async def test_own_status_does_not_count_as_a_check(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.report(scenario.run_of(1).tip, "mergeyard", StatusState.FAILURE)
        await scenario.passes(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_last_result_of_a_repeated_check_counts(forge_scenario: StartScenario):
    async with forge_scenario(Config(required_statuses=("unit", "lint"))) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1, check="lint")
        await scenario.passes(1)
        assert scenario.forge.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_a_head_on_the_tip_whose_checks_passed_merges_directly(forge_scenario: StartScenario):
    async with forge_scenario(Config(direct_merge_mode=DirectMergeMode.ALWAYS)) as scenario:
        scenario.open(1)
        scenario.forge.report(scenario.forge.head(1), "unit", StatusState.SUCCESS)
        await scenario.submit(1)
        await scenario.advance_one_second()
        assert await scenario.state(1) == "merged: merged_directly"
        assert scenario.forge.is_merged(1)
        report = await scenario.service.merge_auditor.audit_on_request(KEY, 1)
        assert (len(report.landings), report.mismatches) == (1, ())


@pytest.mark.long
@asynchronous
async def test_a_head_on_the_tip_whose_checks_did_not_pass_is_tested(forge_scenario: StartScenario):
    async with forge_scenario(Config(direct_merge_mode=DirectMergeMode.ALWAYS)) as scenario:
        scenario.open(1)
        scenario.forge.report(scenario.forge.head(1), "unit", StatusState.FAILURE)
        await scenario.submit(1)
        await scenario.advance_one_second()
        assert scenario.queue_text == "main ← 1…"


@pytest.mark.long
@asynchronous
async def test_checks_of_an_overdue_run_are_read_again_before_it_fails(forge_scenario: StartScenario):
    async with forge_scenario(Config(testing_timeout_minutes=1)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.deliveries.drop_all = True
        await scenario.advance_time(MINUTE - 1)
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await scenario.advance_time(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_overdue_run_without_reports_fails(forge_scenario: StartScenario):
    async with forge_scenario(Config(testing_timeout_minutes=1)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.advance_one_minute()
        await scenario.passes()
        assert await scenario.state(1) == "failed: test_run_timeout"


@pytest.mark.long
@asynchronous
async def test_while_the_forge_cannot_be_read_no_run_is_overdue(forge_scenario: StartScenario):
    async with forge_scenario(Config(testing_timeout_minutes=1), poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.fail_all_requests()
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await scenario.advance_time(2 * MINUTE)
        assert scenario.queue_text == "main ← 1…"
        scenario.forge.faults.clear()
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"


# Mergeability


@asynchronous
async def test_pr_waits_while_its_mergeability_is_unknown(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        scenario.forge.hide_mergeability(1)
        await scenario.submit(1)
        assert (await scenario.submission(1)).state == "not_ready"
        await scenario.advance_one_second()
        assert (await scenario.submission(1)).state == "not_ready"
        scenario.forge.show_mergeability(1)
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main ← 1…"


@pytest.mark.long
@asynchronous
async def test_pr_with_a_conflict_at_the_forge_waits_until_it_is_resolved(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, files={"README": "one\n"})
        scenario.forge.push_to_main({"README": "other\n"})
        await scenario.submit(1)
        assert (await scenario.submission(1)).state == "not_ready"
        scenario.forge.push_to_main({"README": "hello\n"})
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main ← 1…"


def count_reads(scenario: ForgeScenario) -> int:
    path = f"/commits/{scenario.run_of(1).tip}/status?"
    return sum(path in call for call in scenario.forge.faults.calls)


@asynchronous
async def test_a_webhook_about_a_check_that_is_not_required_causes_no_read(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        before = count_reads(scenario)
        for number in range(10):
            scenario.forge.report(scenario.run_of(1).tip, f"other {number}", StatusState.SUCCESS, "")
        await scenario.wait_until_idle()
        assert count_reads(scenario) == before
        scenario.forge.report(scenario.run_of(1).tip, "Unit", StatusState.PENDING, "")
        await scenario.wait_until_idle()
        assert count_reads(scenario) == before + 1


@pytest.mark.long
@asynchronous
async def test_many_webhooks_about_required_checks_cause_few_reads(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        before = count_reads(scenario)
        for _ in range(20):
            scenario.forge.report(scenario.run_of(1).tip, "unit", StatusState.PENDING, "")
            await scenario.wait_until_idle()
        assert count_reads(scenario) == before + MAX_PROMPT_READS
        scenario.forge.report(scenario.run_of(1).tip, "unit", StatusState.SUCCESS, "")
        await scenario.advance_time(MIN_READ_INTERVAL_MS + CHECK_POLL_INTERVAL_MS)
        assert await scenario.state(1) == "merged: merged_by_queue"
