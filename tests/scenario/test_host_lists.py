"""The lists that users choose from, on a plain Git host: open pull requests, and checks seen lately."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from mergeyard.adapters.git_cli.mirrors import GitCli
from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.pull_requests import StatusState
from mergeyard.ports.forge import ChecksFrom, HostRefused, OpenPullRequest
from mergeyard.ports.git import Identity
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.host_lists import MAX_CACHED_QUEUES, OpenPullRequests, RecentChecks, ShortCache
from mergeyard.service.repositories import Repositories
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.scenario import KEY, REPO, SECOND, Scenario, a_scenario


class HangingHost(PlainHost):
    """Never responds."""

    async def open_pull_requests(self, repo: Repo, branch: str) -> Sequence[OpenPullRequest]:
        await asyncio.Event().wait()
        return await super().open_pull_requests(repo, branch)


class RefusingHost(PlainHost):
    async def open_pull_requests(self, repo: Repo, branch: str) -> Sequence[OpenPullRequest]:  # noqa: ARG002
        raise HostRefused(f"{repo} answered 403")


async def listed(scenario: Scenario) -> list[int]:
    return [one.number for one in await scenario.service.open_pull_requests.list(KEY)]


@asynchronous
async def test_open_pull_requests_are_listed_and_read_again_after_ten_seconds(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        assert await listed(scenario) == [1]
        scenario.open(2)
        await scenario.advance_time(9 * SECOND)
        assert await listed(scenario) == [1]
        await scenario.advance_time(SECOND)
        assert await listed(scenario) == [2, 1]


@asynchronous
async def test_the_lists_of_two_branches_are_kept_apart(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        scenario.set_pull_request(2, base="release")
        assert await listed(scenario) == [1]
        (other,) = await scenario.service.open_pull_requests.list(QueueKey(REPO, "release"))
        assert other.number == 2


@asynchronous
async def test_a_host_that_does_not_list_its_pull_requests_refuses_with_what_to_do(tmp_path: Path):
    git = GitCli(tmp_path / "mirrors", Identity("Mergeyard", "mergeyard@example.org"))
    hosts = {
        "hangs": HangingHost("hangs", tmp_path, ChecksFrom.API),
        "refuses": RefusingHost("refuses", tmp_path, ChecksFrom.API),
        "empty": PlainHost("empty", tmp_path, ChecksFrom.API),
    }
    lists = OpenPullRequests(Repositories(hosts, git), ManualClock(), timeout_s=0.01)
    for name, code, problem in (
        ("hangs", Code.PROVIDER_TIMEOUT, "hangs did not answer within 0.01 seconds. Enter the number"),
        ("refuses", Code.PROVIDER_ERROR, "answered 403"),
        ("empty", Code.PROVIDER_UNAVAILABLE, "there is no repository"),
        ("missing", Code.HOST_NOT_ALLOWED, "not configured"),
    ):
        with pytest.raises(RequestRefused, match=problem) as refused:
            await lists.list(QueueKey(Repo(name, "acme", "app"), "main"))
        assert refused.value.code is code


@asynchronous
async def test_recent_checks_are_those_reported_for_the_tip_and_for_the_newest_pull_requests(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1, 2, 3, 4, 5, 6)
        await scenario.report(scenario.origin.tip("main"), StatusState.SUCCESS, "unit")
        await scenario.report(scenario.origin.tip("feature6"), StatusState.FAILURE, "lint")
        await scenario.report(scenario.origin.tip("feature2"), StatusState.PENDING, "docs")
        await scenario.report(scenario.origin.tip("feature2"), StatusState.PENDING, "mergeyard")
        await scenario.report(scenario.origin.tip("feature2"), StatusState.PENDING, "unit")
        await scenario.report(scenario.origin.tip("feature2"), StatusState.PENDING, "too long" * 32)
        await scenario.report(scenario.origin.tip("feature1"), StatusState.SUCCESS, "too old")
        assert await scenario.service.recent_checks.list(REPO, "main") == ("docs", "lint", "unit")
        await scenario.report(scenario.origin.tip("feature6"), StatusState.SUCCESS, "build")
        await scenario.advance_time(10 * SECOND)
        assert "build" in await scenario.service.recent_checks.list(REPO, "main")


@asynchronous
async def test_recent_checks_are_at_most_fifty(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        for number in range(60):
            await scenario.report_without_waiting(scenario.origin.tip("main"), check=f"check-{number:02}")
        assert len(await scenario.service.recent_checks.list(REPO, "main")) == 50


@asynchronous
async def test_a_branch_that_does_not_exist_has_no_recent_checks(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        assert await scenario.service.recent_checks.list(REPO, "missing") == ()


@asynchronous
async def test_recent_checks_are_empty_while_the_host_does_not_answer(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await scenario.report(scenario.origin.tip("main"), StatusState.SUCCESS, "unit")
        folder = scenario.origin.path
        folder.rename(folder.with_name("away"))
        assert await scenario.service.recent_checks.list(REPO, "main") == ()
        folder.with_name("away").rename(folder)
        assert await scenario.service.recent_checks.list(REPO, "main") == ("unit",)
        host = HangingHost(REPO.host, tmp_path / "repos", ChecksFrom.API)
        repositories = Repositories({REPO.host: host}, scenario.service.git)
        lists = OpenPullRequests(repositories, scenario.clock)
        slow = RecentChecks(repositories, lists, scenario.store, scenario.clock, timeout_s=0.01)
        assert await slow.list(REPO, "main") == ()
        await host.close()


def test_a_cache_keeps_a_limited_number_of_lists():
    cache = ShortCache[int](ManualClock())
    keys = [QueueKey(REPO, str(number)) for number in range(MAX_CACHED_QUEUES + 1)]
    for number, key in enumerate(keys):
        cache.put(key, number)
    assert [cache.get(key) for key in (keys[0], keys[1], keys[-1])] == [None, 1, MAX_CACHED_QUEUES]
