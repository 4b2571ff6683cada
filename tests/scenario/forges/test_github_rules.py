"""The rules of GitHub, judged by the queue: whatever its account can bypass, only approved pull requests merge."""

import pytest

from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.http import ForgeClient
from mergeyard.domain.config import Config, LandingMethod
from mergeyard.domain.pull_requests import Requirement, StatusState
from mergeyard.domain.states import QueueState
from mergeyard.domain.timestamps import later
from mergeyard.settings import Provider
from mergeyard.wiring import FORGES
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.driver import BOT, MAINTAINER
from tests.support.forge_drivers.github import TOKEN, GithubDriver
from tests.support.forge_scenario import ForgeScenario
from tests.support.forges.faults import ALWAYS, ActsFirst, RespondsWith
from tests.support.forges.github.rules import MergeRefused, merge
from tests.support.forges.github.rulesets import pull_request_rule, required_checks_rule, rule, to_bypass_actor
from tests.support.forges.github.world import BranchProtection, Caller
from tests.support.long_tests import mark_long_after
from tests.support.scenario import MINUTE, SECOND

BY_GITHUB = Config(landing=LandingMethod.PROVIDER_MERGE)
CAN_PUSH = ("exempt", "classic administrator", "always")
MODES = (*CAN_PUSH, "never", "pull_request")
WAITS = "not_ready: waiting_for_review"


def driver_of(scenario: ForgeScenario) -> GithubDriver:
    assert isinstance(scenario.forge, GithubDriver)
    return scenario.forge


def require_approval(scenario: ForgeScenario, mode: str) -> GithubDriver:
    driver = driver_of(scenario)
    if mode == "classic administrator":
        driver.acme.roles[BOT] = "admin"
        driver.acme.protections["main"] = BranchProtection(approvals=1, enforce_admins=False)
    else:
        bypass = [] if mode == "never" else [to_bypass_actor(BOT, mode, driver.github.auth)]
        driver.acme.add_ruleset("reviews", [pull_request_rule(1)], bypass=bypass)
    return driver


async def check_withdrawn_approval_stops_the_merge(scenario: ForgeScenario, driver: GithubDriver) -> None:
    scenario.open(1)
    await scenario.submit(1)
    assert await scenario.state(1) == WAITS
    driver.approve(1, MAINTAINER)
    await scenario.advance_one_second()
    assert await scenario.state(1) == "testing: waiting_for_checks"
    tip = scenario.run_of(1).tip
    driver.dismiss_reviews(1)
    await scenario.advance_one_second()
    assert await scenario.state(1) == WAITS
    await scenario.report(tip, StatusState.SUCCESS)
    await scenario.advance_time(MINUTE)
    assert not driver.is_merged(1)
    driver.approve(1, MAINTAINER)
    await scenario.advance_one_second()
    await scenario.passes(1)
    assert driver.is_merged(1)


@pytest.mark.parametrize("mode", mark_long_after(2, CAN_PUSH))
@asynchronous
async def test_a_withdrawn_approval_stops_a_push_in_every_bypass_mode(github_scenario: StartScenario, mode: str):
    async with github_scenario() as scenario:
        await check_withdrawn_approval_stops_the_merge(scenario, require_approval(scenario, mode))


@pytest.mark.long
@pytest.mark.parametrize("mode", mark_long_after(1, MODES))
@asynchronous
async def test_a_withdrawn_approval_stops_a_merge_by_github_in_every_bypass_mode(
    github_scenario: StartScenario, mode: str
):
    async with github_scenario(BY_GITHUB) as scenario:
        await check_withdrawn_approval_stops_the_merge(scenario, require_approval(scenario, mode))


@asynchronous
async def test_an_approval_that_is_withdrawn_without_a_notice_is_missed_before_the_push(
    github_scenario: StartScenario,
):
    async with github_scenario() as scenario:
        driver = require_approval(scenario, "exempt")
        scenario.open(1)
        driver.approve(1, MAINTAINER)
        await scenario.submit(1)
        driver.deliveries.drop_all = True
        driver.dismiss_reviews(1)
        assert await scenario.state(1) == "testing: waiting_for_checks"
        driver.deliveries.drop_all = False
        await scenario.passes(1)
        assert await scenario.state(1) == WAITS
        assert not driver.is_merged(1)


@pytest.mark.long
@asynchronous
async def test_an_approval_that_is_withdrawn_while_the_push_fails_stops_the_push(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        driver = require_approval(scenario, "exempt")
        scenario.open(1)
        driver.approve(1, MAINTAINER)
        await scenario.submit(1)
        driver.faults.plan(RespondsWith(503), driver.paths.push, times=ALWAYS)
        await scenario.passes(1)
        landing = scenario.queue_actor.queue.landing
        assert landing
        assert landing.is_intended, "the decision is stored, and the push does not succeed"
        driver.dismiss_reviews(1)
        await scenario.advance_time(20 * SECOND)
        driver.faults.clear()
        await scenario.advance_time(MINUTE)
        assert not driver.is_merged(1)
        assert await scenario.state(1) == WAITS


@pytest.mark.long
@asynchronous
async def test_an_approval_that_is_withdrawn_while_the_service_is_down_stops_the_push(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        driver = require_approval(scenario, "exempt")
        scenario.open(1)
        driver.approve(1, MAINTAINER)
        await scenario.submit(1)
        driver.faults.plan(RespondsWith(503), driver.paths.push, times=ALWAYS)
        await scenario.passes(1)
        await scenario.service.stop()
        driver.deliveries.drop_all = True
        driver.dismiss_reviews(1)
        driver.faults.clear()
        driver.deliveries.drop_all = False
        scenario.clock.move_to(later(scenario.clock.now(), MINUTE))
        await scenario.start()
        await scenario.advance_time(MINUTE)
        assert not driver.is_merged(1)
        assert await scenario.state(1) == WAITS


@asynchronous
async def test_each_merge_by_github_is_preceded_by_a_read(github_scenario: StartScenario):
    async with github_scenario(BY_GITHUB) as scenario:
        driver = require_approval(scenario, "exempt")
        scenario.open(1, 2)
        driver.approve(1, MAINTAINER)
        driver.approve(2, MAINTAINER)
        await scenario.submit(1, 2)
        driver.faults.plan(ActsFirst(lambda: driver.dismiss_reviews(2)), driver.paths.merge)
        await scenario.passes(2)
        await scenario.passes(1)
        assert (driver.is_merged(1), driver.is_merged(2)) == (True, False)
        assert await scenario.state(2) == WAITS


@asynchronous
async def test_a_forced_pr_that_github_refuses_fails_at_once_and_blocks_no_other(github_scenario: StartScenario):
    async with github_scenario(BY_GITHUB) as scenario:
        driver = require_approval(scenario, "never")
        scenario.open(1)
        await scenario.submit(1, forced=True)
        await scenario.passes(1)
        assert await scenario.state(1) == "failed: merge_refused"
        assert len([call for call in driver.faults.calls if call.endswith("/merge")]) == 1


# Why the queue judges the rules by itself


class BelievingHost(GithubHost):
    """Asks for nothing more where GitHub shows our account `clean`, or `unstable` while our own status is pending."""

    async def _read_requirements(
        self, client: ForgeClient, payload: wire.PullRequestPayload
    ) -> tuple[Requirement, ...]:
        looks_met = payload.mergeable_state in ("clean", "unstable")
        return () if looks_met else await super()._read_requirements(client, payload)


@pytest.mark.parametrize("mode", mark_long_after(2, MODES))
@asynchronous
async def test_believing_what_github_shows_to_our_account_would_admit_an_unapproved_pr(
    github_scenario: StartScenario, monkeypatch: pytest.MonkeyPatch, mode: str
):
    async with github_scenario() as scenario:
        require_approval(scenario, mode)
        scenario.open(1)
        await scenario.submit(1)
        assert await scenario.state(1) == WAITS
        await scenario.service.stop()
        monkeypatch.setitem(FORGES, Provider.GITHUB, BelievingHost)
        await scenario.start()
        await scenario.submit(1)
        assert await scenario.state(1) == ("testing: waiting_for_checks" if mode in CAN_PUSH else WAITS)


# Costs


@asynchronous
async def test_checks_of_a_pr_that_waits_for_a_review_cost_nothing(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        driver = require_approval(scenario, "exempt")
        scenario.open(1)
        await scenario.submit(1)
        await scenario.advance_time(5 * SECOND)
        before = scenario.api_call_count()
        for name in ("lint", "docs"):
            driver.report(driver.head(1), name, StatusState.SUCCESS)
            await scenario.advance_one_second()
        assert scenario.api_call_count() == before


@pytest.mark.long
@asynchronous
async def test_each_check_of_the_head_that_passes_does_not_rewrite_the_comment(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        driver = driver_of(scenario)
        driver.acme.add_ruleset("checks", [required_checks_rule("lint", "docs", "types")])
        scenario.open(1)
        await scenario.submit(1)
        assert "Required checks of the pull request itself are running or have not reported" in scenario.status_comment(
            1
        )
        before = len([call for call in driver.faults.calls if "PATCH" in str(call)])
        for name in ("lint", "docs"):
            driver.report(driver.head(1), name, StatusState.SUCCESS)
            await scenario.advance_time(5 * SECOND)
        assert len([call for call in driver.faults.calls if "PATCH" in str(call)]) == before
        driver.report(driver.head(1), "types", StatusState.SUCCESS)
        await scenario.advance_time(5 * SECOND)
        assert "🧪 Testing" in scenario.status_comment(1)


# Only the queue can merge


def restrict_updates(driver: GithubDriver) -> None:
    bypass = [to_bypass_actor(BOT, "exempt", driver.github.auth)]
    driver.acme.add_ruleset("only the queue", [rule("update")], bypass=bypass)


@pytest.mark.long
@pytest.mark.parametrize(
    "config", mark_long_after(1, [BY_GITHUB, Config()]), ids=["GitHub merges", "the tested commit is pushed"]
)
@asynchronous
async def test_with_restricted_updates_only_the_queue_merges(github_scenario: StartScenario, config: Config):
    async with github_scenario(config) as scenario:
        is_pushed = config.landing is LandingMethod.TESTED_COMMIT
        driver = require_approval(scenario, "exempt" if is_pushed else "never")
        restrict_updates(driver)
        scenario.open(1)
        driver.approve(1, MAINTAINER)
        writer = Caller(MAINTAINER, driver.github.auth.tokens[TOKEN].permissions)
        with pytest.raises(MergeRefused):
            merge(driver.acme, driver.acme.pull_requests[1], "merge", None, "By hand", writer)
        await scenario.submit(1)
        await scenario.passes(1)
        assert driver.is_merged(1)
        assert scenario.queue_actor.queue.state is QueueState.RUNNING
