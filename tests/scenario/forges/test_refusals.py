"""A Git host that answers and refuses: an administrator is told what it says, and no pull request fails."""

import pytest

from mergeyard.domain.config import Config
from mergeyard.domain.states import Reason
from mergeyard.domain.timestamps import HOUR, MINUTE
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_scenario import USUAL_POLL_INTERVAL_S, ForgeScenario
from tests.support.forges.faults import ALWAYS, RespondsWith
from tests.support.log_capture import capture_warnings

TEXT = "Resource not accessible by integration"
REFUSAL = RespondsWith(403, {}, b'{"message": "Resource not accessible by integration"}')


async def read_obstacle(scenario: ForgeScenario) -> tuple[str, str] | None:
    obstacle = (await scenario.post("getQueue")).json().get("obstacle")
    return obstacle and (obstacle["code"], obstacle["message"])


@asynchronous
async def test_a_revoked_permission_is_shown_with_the_text_of_the_host_until_it_is_repaired(
    forge_scenario: StartScenario,
):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert await read_obstacle(scenario) is None
        scenario.forge.faults.plan(REFUSAL, scenario.forge.paths.api, times=ALWAYS)
        with capture_warnings() as entries:
            await scenario.advance_one_minute()
        assert "git_host_refused" in {entry["event"] for entry in entries}
        assert await scenario.state(1) == "testing: provider_refused"
        assert TEXT in (await scenario.view(1)).reason.message
        obstacle = await read_obstacle(scenario)
        assert obstacle is not None
        assert obstacle[0] == "provider_refused"
        assert TEXT in obstacle[1]
        answer = await scenario.post("submitPullRequest", pr={"number": 2})
        assert (answer.status_code, answer.json()["code"]) == (502, "provider_error")
        await scenario.advance_time(3 * HOUR)
        assert await scenario.state(1) == "testing: provider_refused"
        scenario.forge.faults.clear()
        await scenario.advance_time(2 * MINUTE)
        assert await scenario.state(1) == "testing: waiting_for_checks"
        assert await read_obstacle(scenario) is None
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_repository_that_is_hidden_from_our_account_is_a_refusal(forge_scenario: StartScenario):
    async with forge_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.faults.plan(RespondsWith(404), scenario.forge.paths.api, times=ALWAYS)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "testing: provider_refused"
        scenario.forge.faults.clear()
        await scenario.advance_time(2 * MINUTE)
        assert await scenario.state(1) == "testing: waiting_for_checks"


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        (RespondsWith(429), "rate_limited"),
        (RespondsWith(403, {"retry-after": "1"}), "rate_limited"),
        (RespondsWith(403, {"x-ratelimit-remaining": "0", "x-ratelimit-limit": "5000"}), "rate_limited"),
        (RespondsWith(403, {}, b'{"message": "You have exceeded a secondary rate limit."}'), "rate_limited"),
        (RespondsWith(503), "provider_unavailable"),
    ],
    ids=["429", "retry-after", "no-budget", "secondary", "503"],
)
@asynchronous
async def test_a_rate_limit_is_neither_an_outage_nor_a_refusal(
    github_scenario: StartScenario, limit: RespondsWith, reason: str
):
    async with github_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.faults.plan(limit, scenario.forge.paths.api, times=ALWAYS)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == f"testing: {reason}"


@asynchronous
async def test_refused_reads_of_checks_alone_are_shown_and_fail_no_pr_by_a_timeout(forge_scenario: StartScenario):
    async with forge_scenario(Config(testing_timeout_minutes=10), poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        scenario.forge.faults.plan(REFUSAL, scenario.forge.paths.statuses, method="GET", times=ALWAYS)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "testing: provider_refused"
        await scenario.advance_time(HOUR)
        assert await scenario.state(1) == "testing: provider_refused"
        scenario.forge.faults.clear()
        await scenario.advance_time(2 * MINUTE)
        assert await scenario.state(1) == "testing: waiting_for_checks"
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_refusal_of_one_pr_stops_no_other(github_scenario: StartScenario):
    async with github_scenario(poll_seconds=USUAL_POLL_INTERVAL_S) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1)
        await scenario.submit(2)
        scenario.forge.faults.plan(REFUSAL, r"/pulls/2$", method="GET", times=ALWAYS)
        scenario.push(2, {"file2": "changed\n"})
        await scenario.advance_one_minute()
        assert (await scenario.view(2)).reason.code is Reason.PROVIDER_REFUSED
        assert (await scenario.view(1)).reason.code is Reason.WAITING_FOR_CHECKS
        assert not scenario.queue_actor.queue.is_obstructed
        await scenario.passes(1)
        await scenario.advance_one_minute()
        assert await scenario.state(1) == "merged: merged_by_queue"
        scenario.forge.faults.clear()
        await scenario.advance_time(2 * MINUTE)
        assert await scenario.state(2) == "cancelled: pr_pushed"
        assert await read_obstacle(scenario) is None
