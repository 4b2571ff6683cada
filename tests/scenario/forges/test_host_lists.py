"""The lists that users choose from come from the forge: open pull requests, and checks seen lately."""

import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.gitlab.checks import PIPELINE
from mergeyard.domain.pull_requests import StatusState
from mergeyard.ports.forge import ChecksFrom
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.host_lists import OpenPullRequests, RecentChecks
from mergeyard.service.repositories import Repositories
from mergeyard.wiring import make_host
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.scenario import KEY, REPO


@pytest.mark.long
@asynchronous
async def test_pull_requests_and_checks_of_the_forge_are_listed(forge_scenario: StartScenario):
    async with forge_scenario() as scenario:
        scenario.open(1, 2)
        await scenario.submit(2)
        await scenario.report_without_waiting(scenario.forge.head(2), StatusState.SUCCESS, "unit")
        await scenario.report_without_waiting(scenario.origin.tip("main"), StatusState.SUCCESS, "lint")
        assert [one.number for one in await scenario.service.open_pull_requests.list(KEY)] == [2, 1]
        checks = await scenario.service.recent_checks.list(REPO, "main")
        assert [name for name in checks if name != PIPELINE] == ["lint", "unit"]


@asynchronous
async def test_checks_of_the_forge_are_not_listed_if_the_queue_does_not_read_them_there(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        await scenario.report_without_waiting(scenario.origin.tip("main"), StatusState.SUCCESS, "lint")
        host = make_host(REPO.host, replace(scenario.forge.settings, checks=ChecksFrom.API), scenario.clock)
        repositories = Repositories({REPO.host: host}, scenario.service.git)
        lists = OpenPullRequests(repositories, scenario.clock)
        checks = RecentChecks(repositories, lists, scenario.store, scenario.clock)
        assert await checks.list(REPO, "main") == ()
        await host.close()


@asynchronous
async def test_a_forge_that_does_not_answer_lists_nothing(github_scenario: StartScenario):
    async with github_scenario() as scenario:
        scenario.fail_all_requests()
        assert await scenario.service.recent_checks.list(REPO, "main") == ()
        with pytest.raises(RequestRefused) as refused:
            await scenario.service.open_pull_requests.list(KEY)
        assert refused.value.code is Code.PROVIDER_UNAVAILABLE
