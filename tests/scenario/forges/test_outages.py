"""Failures of a forge: outages, rate limits, stale and lost responses fail no pull request."""

import pytest

from mergeyard.domain.config import Config, LandingMethod
from mergeyard.domain.timestamps import HOUR
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.driver import POSITIVE
from tests.support.forge_drivers.github import GithubDriver
from tests.support.forge_scenario import USUAL_POLL_INTERVAL_S
from tests.support.forges.faults import (
    ALWAYS,
    ActsFirst,
    AddsHeaders,
    Fault,
    LosesResponse,
    RepeatsFirstResponse,
    RespondsWith,
)
from tests.support.long_tests import mark_long_after
from tests.support.scenario import MINUTE, SECOND

EVERY_TROUBLE: list[Fault] = [RespondsWith(503), LosesResponse(), RespondsWith(200, {}, b"<html>")]
every_response = pytest.mark.parametrize("answers", mark_long_after(1, range(3)))
landings = pytest.mark.parametrize("landing", mark_long_after(1, list(LandingMethod)))


@asynchronous
async def test_submission_during_an_outage_is_refused_with_retry_after(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.wait_until_idle()
        scenario.fail_all_requests()
        answer = await scenario.post("submitPullRequest", pr={"number": 1})
        assert (answer.status_code, answer.json()["code"]) == (503, "provider_unavailable")
        assert answer.json()["retryable"]
        scenario.forge.faults.clear()
        await scenario.submit_by_api(1)
        assert scenario.queue_text == "main ← 1…"


@asynchronous
async def test_while_the_forge_is_down_reading_and_cancelling_still_answer(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.fail_all_requests()
        assert (await scenario.post("getQueue")).status_code == 200
        assert (await scenario.post("getSubmittedPullRequest", pr={"number": 1})).json()["state"] == "testing"
        answer = await scenario.post("cancelPullRequest", pr={"number": 1})
        assert answer.json()["state"] == "cancelled"


@asynchronous
async def test_command_given_during_an_outage_is_executed_later(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        await scenario.wait_until_idle()
        for fault in EVERY_TROUBLE:
            scenario.forge.faults.plan(fault, scenario.forge.paths.api)
        await scenario.comment(1, "/merge")
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main ← 1…"
        assert scenario.reactions(1) == [(POSITIVE,)]


@pytest.mark.long
@asynchronous
async def test_label_added_during_an_outage_submits_later(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        faults, paths = scenario.forge.faults, scenario.forge.paths
        scenario.open(1)
        await scenario.wait_until_idle()
        faults.plan(ActsFirst(lambda: faults.plan(RespondsWith(503), paths.pull_request, method="GET")), paths.comments)
        await scenario.label(1)
        assert scenario.queue_text == "main"
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main ← 1…"
        await scenario.unlabel(1)
        assert scenario.queue_text == "main"


@every_response
@asynchronous
async def test_removing_the_label_removes_the_pr_whichever_store_response_was_lost(
    github_scenario: StartScenario, answers: int
):
    async with github_scenario() as scenario:
        scenario.open(1)
        await scenario.wait_until_idle()
        scenario.store.commits_before_lost_response = answers
        await scenario.label(1)
        await scenario.unlabel(1)
        await scenario.advance_one_minute()
        assert scenario.queue_text == "main"


@pytest.mark.long
@every_response
@asynchronous
async def test_removing_the_label_removes_the_pr_even_if_another_decision_followed_the_lost_store_response(
    github_scenario: StartScenario, answers: int
):
    async with github_scenario() as scenario:
        scenario.open(1, 2)
        await scenario.wait_until_idle()
        scenario.store.commits_before_lost_response = answers
        await scenario.label(1)
        await scenario.submit(2)
        await scenario.advance_one_minute()
        assert [await scenario.state(number) for number in (1, 2)] == ["testing: waiting_for_checks"] * 2
        await scenario.unlabel(1)
        assert scenario.queue_text == "main ← 2…"


@pytest.mark.long
@landings
@asynchronous
async def test_landing_continues_after_an_outage(forge_scenario: StartScenario, landing: LandingMethod):
    async with forge_scenario(Config(landing=landing)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        paths = scenario.forge.paths
        fatal = paths.merge if landing is LandingMethod.PROVIDER_MERGE else paths.git
        for fault in EVERY_TROUBLE:
            scenario.forge.faults.plan(fault, fatal)
        await scenario.advance_time(MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.forge.is_merged(1)
        assert len(scenario.landed_subjects()) == 1


@pytest.mark.long
@asynchronous
async def test_outage_fails_no_pr(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        scenario.fail_all_requests()
        await scenario.comment(2, "/merge")
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "testing: provider_unavailable"
        scenario.forge.faults.clear()
        await scenario.advance_time(2 * MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert await scenario.state(2) == "testing: waiting_for_checks"


@pytest.mark.long
@asynchronous
async def test_html_page_instead_of_a_git_response_deletes_nothing(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        page = RespondsWith(200, {"content-type": "text/html"}, b"<html>We are back soon</html>")
        scenario.forge.faults.plan(page, "/info/refs$", times=ALWAYS)
        await scenario.passes(1)
        await scenario.advance_one_second()
        assert (await scenario.submission(1)).state == "tests_passed"
        scenario.forge.faults.clear()
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.queue_text == "main ← 2…"


@pytest.mark.long
@asynchronous
async def test_head_that_git_does_not_show_yet_is_retried(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        scenario.forge.git_server.hidden_refs += ["refs/pull", "refs/merge-requests", "refs/heads/feature1"]
        await scenario.submit(1)
        await scenario.advance_one_second()
        assert scenario.test_branches() == []
        scenario.forge.git_server.hidden_refs.clear()
        await scenario.advance_one_minute()
        assert scenario.test_branches() == [scenario.test_branch_of(1)]


@pytest.mark.long
@asynchronous
async def test_command_given_before_a_long_outage_is_executed_after_it(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1)
        scenario.fail_all_requests()
        await scenario.comment(1, "/merge")
        await scenario.advance_time(30 * MINUTE)
        scenario.forge.faults.clear()
        await scenario.advance_time(2 * MINUTE)
        assert scenario.queue_text == "main ← 1…"


# Rate limits


@pytest.mark.long
@asynchronous
async def test_rate_limited_forge_gets_no_requests_until_the_given_time(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.faults.plan(RespondsWith(429, {"retry-after": "90"}), scenario.forge.paths.api)
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await scenario.wait_until_idle()
        asked = scenario.api_call_count()
        await scenario.advance_time(89 * SECOND)
        assert scenario.api_call_count() == asked
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@landings
@asynchronous
async def test_last_requests_of_the_rate_limit_are_reserved_for_landings(
    forge_scenario: StartScenario, landing: LandingMethod
):
    async with forge_scenario(Config(landing=landing), poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.advance_one_second()
        reset = (scenario.clock.now() + 10 * MINUTE) // SECOND
        low = AddsHeaders(
            {"x-ratelimit-remaining": "400", "x-ratelimit-limit": "5000", "x-ratelimit-reset": str(reset)}
        )
        scenario.forge.faults.plan(low, scenario.forge.paths.pull_request, method="GET", times=ALWAYS)
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await scenario.advance_one_second()
        assert scenario.forge.is_merged(1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        polls = scenario.poll_count()
        await scenario.advance_time(5 * MINUTE)
        assert scenario.poll_count() == polls


@asynchronous
async def test_what_is_under_test_merges_with_the_last_requests_and_what_waits_is_read_later(
    github_scenario: StartScenario,
):
    """The first answer that shows how few are left is a poll, before the checks are read and the next run is built."""
    async with github_scenario(Config(concurrency=1), poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2)
        await scenario.advance_one_second()
        assert isinstance(scenario.forge, GithubDriver)
        scenario.forge.github.limits.leave(499)
        await scenario.advance_time(USUAL_POLL_INTERVAL_S * SECOND)
        await scenario.comment(3, "/merge")
        for number in (1, 2):
            await scenario.report_without_waiting(scenario.run_of(number).tip)
            await scenario.advance_one_second()
            assert await scenario.state(number) == "merged: merged_by_queue"
        assert scenario.reactions(3) == [()]
        await scenario.advance_time(HOUR + 5 * MINUTE)
        assert scenario.reactions(3) != [()]
        assert (await scenario.state(3)).startswith("testing")


# Stale responses


@pytest.mark.long
@asynchronous
async def test_stale_response_about_checks_only_delays(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        scenario.forge.faults.plan(RepeatsFirstResponse(), scenario.forge.paths.statuses, times=3)
        await scenario.submit(1)
        await scenario.advance_one_second()
        await scenario.passes(1)
        await scenario.advance_time(2 * MINUTE)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_stale_response_about_the_head_merges_nothing_untested(forge_scenario: StartScenario):
    async with forge_scenario(Config(landing=LandingMethod.PROVIDER_MERGE)) as scenario:
        scenario.open(1)
        scenario.forge.faults.plan(
            RepeatsFirstResponse(), scenario.forge.paths.pull_request, method="GET", times=ALWAYS
        )
        await scenario.submit(1)
        scenario.push(1, {"evil": "yes"})
        await scenario.passes(1)
        await scenario.advance_one_second()
        assert "evil" not in scenario.origin.files("main")
        assert not scenario.forge.is_merged(1)
        scenario.forge.faults.clear()
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "cancelled: pr_pushed"


@pytest.mark.long
@asynchronous
async def test_pr_shown_as_open_after_its_landing_is_recorded_as_merged(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.faults.plan(
            RepeatsFirstResponse(), scenario.forge.paths.pull_request, method="GET", times=ALWAYS
        )
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert len(scenario.landed_subjects()) == 1
