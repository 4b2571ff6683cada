"""GitHub and GitLab after a repository was renamed, while they limit requests, and when they end their API."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.adapters.forges.rate_limits import WritePace
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import Repo, Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant, later
from mergeyard.ports.forge import (
    DraftPullRequest,
    HostAccessLost,
    HostRefused,
    HostUnavailable,
    Merge,
    Merged,
    RequestPurpose,
    requests_for,
)
from tests.contract.host.environment import ONE, TWO
from tests.contract.host.github_environment import GithubEnvironment, github_environment
from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.forges.faults import ALWAYS, AddsHeaders
from tests.support.forges.github.limits import VersionEnd
from tests.support.forges.github.world import BranchProtection

# Renamed repositories


@asynchronous
async def test_the_new_name_of_a_repository_on_github_is_reported(github: GithubEnvironment):
    github.open(1)
    async with github.host() as host:
        github.github.rename_repository("acme/app", "acme/new")
        for call in (
            host.read_pull_request(github.repo, ONE),
            host.refs(github.repo, ["main"]),
            host.put_comment(github.repo, ONE, "Queued", None),
            host.has_repository(github.repo),
        ):
            with pytest.raises(HostAccessLost, match=r"acme/app is now github\.example/acme/new: create") as raised:
                await call
            assert not isinstance(raised.value, HostRefused)
        assert await host.read_pull_request(replace(github.repo, name="new"), ONE)


@asynchronous
async def test_the_new_name_of_a_branch_on_github_is_reported(github: GithubEnvironment):
    """Source: the API description, "Get a branch", status 301."""
    github.acme.protections["main"] = BranchProtection(contexts=["unit"])
    github.acme.rename_branch("main", "release/1")
    async with github.host() as host:
        with pytest.raises(HostUnavailable, match="the branch main was renamed to release/1: create a queue for"):
            await host.required_statuses(github.repo, "main")


@asynchronous
async def test_the_new_name_of_a_project_on_gitlab_is_reported(gitlab: GitlabEnvironment):
    gitlab.open(1)
    async with gitlab.host() as host:
        gitlab.world.rename(gitlab.project, "acme/new")
        for call in (
            host.read_pull_request(gitlab.repo, ONE),
            host.refs(gitlab.repo, ["main"]),
            host.put_comment(gitlab.repo, ONE, "Queued", "1"),
            host.has_repository(gitlab.repo),
        ):
            with pytest.raises(HostAccessLost, match=r"acme/app is now .*/acme/new: create") as raised:
                await call
            assert not isinstance(raised.value, HostRefused)
        assert await host.read_pull_request(replace(gitlab.repo, name="new"), ONE)


# Limits


async def keep_moving(clock: ManualClock) -> None:
    """Lets the time pass whenever a task waits for it."""
    while True:
        await clock.next_sleep()
        while (wakeup := clock.next_wakeup()) is not None:
            clock.move_to(wakeup)


@asynchronous
async def test_paced_writes_stay_within_the_limits_of_github(tmp_path: Path):
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        github.open(1)
        github.github.limits.content_per_minute = 6
        pace, started_at = WritePace(interval_ms=10 * SECOND, per_minute=6, per_hour=400), clock.now()
        moving = asyncio.create_task(keep_moving(clock))
        async with asyncio.timeout(30), github.host(clock, write_pace=pace) as host:
            comment = await host.put_comment(github.repo, ONE, "Queued", None)
            for _ in range(20):
                await host.react(github.repo, ONE, comment, success=True)
        moving.cancel()
        assert clock.now() - started_at == 200 * SECOND


@asynchronous
async def test_the_write_limit_of_github_delays_comments_and_no_reads(tmp_path: Path):
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        github.open(1)
        github.github.limits.content_per_minute = 1
        github.github.limits.retry_after_s = None
        async with github.host(clock) as host:
            comment = await host.put_comment(github.repo, ONE, "Queued", None)
            for message in ("blocked from content creation", "wait for 60 seconds"):
                with pytest.raises(HostUnavailable, match=message) as raised:
                    await host.put_comment(github.repo, ONE, "Merged", comment)
                assert not isinstance(raised.value, HostRefused)
            assert await host.read_pull_request(github.repo, ONE)
            clock.move_to(later(clock.now(), MINUTE))
            assert await host.put_comment(github.repo, ONE, "Merged", comment) == comment


@pytest.mark.parametrize("has_retry_after", [True, False])
@asynchronous
async def test_the_limit_of_one_endpoint_of_gitlab_delays_nothing_else(
    gitlab: GitlabEnvironment, has_retry_after: bool
):
    gitlab.open(1)
    gitlab.world.limits.has_retry_after = has_retry_after
    gitlab.world.limits.by_route["POST /projects/:id/merge_requests/:iid/notes"] = 1
    async with gitlab.host() as host:
        comment = await host.put_comment(gitlab.repo, ONE, "Queued", None)
        for message in ("requested too many times", "asks us to wait"):
            with pytest.raises(HostUnavailable, match=message):
                await host.put_comment(gitlab.repo, ONE, "Another", None)
        assert await host.read_pull_request(gitlab.repo, ONE)
        assert await host.put_comment(gitlab.repo, ONE, "Merged", comment) == comment
        gitlab.clock.move(MINUTE)
        assert await host.put_comment(gitlab.repo, ONE, "Another", None) != comment


DRAFT = DraftPullRequest(branch="mergeyard/pr-1/x", base_branch="main", title="Testing #1", text="By the queue.")
PASSED = Status(context="mergeyard", state=StatusState.SUCCESS, at=Instant(0))
ONE_WRITE_AN_HOUR = WritePace(interval_ms=0, per_minute=60, per_hour=1)
USED_UP = {"ratelimit-limit": "5000", "ratelimit-remaining": "10", "ratelimit-reset": "9999999999"}
"""Ten requests are left, as GitLab reports it; GitHub adds `x-` to each name."""


async def check_merges_go_through(
    host: GithubHost | GitlabHost, repo: Repo, head: Sha, message: str, settle: Callable[[], object] = lambda: None
) -> None:
    """The limit that causes this message delays a comment and an ordinary check, and nothing that a merge needs."""
    for call in (host.put_comment(repo, ONE, "Queued", None), host.set_status(repo, head, PASSED)):
        with pytest.raises(HostUnavailable, match=message):
            await call
    await host.open_draft(repo, DRAFT)
    settle()
    with requests_for(RequestPurpose.MERGING):
        draft = await host.read_pull_request(repo, TWO)
    assert draft
    assert draft.is_open
    await host.close_draft(repo, DRAFT.branch)
    settle()
    with requests_for(RequestPurpose.MERGING):
        draft = await host.read_pull_request(repo, TWO)
    assert draft
    assert not draft.is_open
    await host.set_status(repo, head, PASSED, urgent=True)
    merge = Merge(number=ONE, head=head, base_branch="main", method=MergeMethod.MERGE_COMMIT, title="x", message="")
    with requests_for(RequestPurpose.MERGING):
        assert isinstance(await host.merge(repo, merge), Merged)


@pytest.mark.parametrize("has_drafts", [True, False])
@pytest.mark.parametrize("env", ["github", "github app"], indirect=True)
@asynchronous
async def test_merges_on_github_do_not_wait_for_the_pace_of_comments(env: GithubEnvironment, has_drafts: bool):
    head = env.open(1)
    env.origin.branch(DRAFT.branch, base="topic-1")
    env.acme.drafts_supported = has_drafts
    async with env.host(write_pace=ONE_WRITE_AN_HOUR) as host:
        await host.put_comment(env.repo, ONE, "Queued", None)
        await check_merges_go_through(host, env.repo, head, "limits how much we write")
    assert env.acme.statuses[head]["mergeyard"].state == "success"


@pytest.mark.parametrize("env", ["github", "github app"], indirect=True)
@asynchronous
async def test_merges_on_github_can_use_the_reserve(env: GithubEnvironment):
    head = env.open(1)
    env.origin.branch(DRAFT.branch, base="topic-1")
    env.github.faults.plan(AddsHeaders({f"x-{name}": value for name, value in USED_UP.items()}), times=ALWAYS)
    async with env.host() as host:
        with requests_for(RequestPurpose.MERGING):
            await host.read_pull_request(env.repo, ONE)
        await check_merges_go_through(host, env.repo, head, "kept for merges")


@asynchronous
async def test_only_reads_for_a_landing_use_the_reserve_of_github(github: GithubEnvironment):
    github.open(1)
    async with github.host() as host:
        low = AddsHeaders({f"x-{name}": value for name, value in USED_UP.items()})
        github.github.faults.plan(low, "/pulls/1$", times=ALWAYS)
        with pytest.raises(HostUnavailable, match="kept for merges"):
            await host.read_pull_request(github.repo, ONE)
        with requests_for(RequestPurpose.MERGING):
            assert await host.read_pull_request(github.repo, ONE)


@asynchronous
async def test_only_reads_for_a_landing_use_the_reserve_of_gitlab(gitlab: GitlabEnvironment):
    gitlab.open(1)
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(AddsHeaders(USED_UP), "/merge_requests/1$", times=ALWAYS)
        with pytest.raises(HostUnavailable, match="kept for merges"):
            await host.read_pull_request(gitlab.repo, ONE)
        with requests_for(RequestPurpose.MERGING):
            assert await host.read_pull_request(gitlab.repo, ONE)


@pytest.mark.parametrize("message", ["limits how much we write", "kept for merges"])
@asynchronous
async def test_merges_on_gitlab_do_not_wait_for_comments(gitlab: GitlabEnvironment, message: str):
    """Writes to GitLab are not paced; the pace shows here which of them are urgent."""
    head = gitlab.open(1)
    gitlab.origin.branch(DRAFT.branch, base="topic-1")
    async with gitlab.host(write_pace=ONE_WRITE_AN_HOUR) as host:
        await host.put_comment(gitlab.repo, ONE, "Queued", None)
        if "kept" in message:
            gitlab.gitlab.faults.plan(AddsHeaders(USED_UP), times=ALWAYS)
            with requests_for(RequestPurpose.MERGING):
                await host.read_pull_request(gitlab.repo, ONE)
        await check_merges_go_through(host, gitlab.repo, head, message, lambda: gitlab.clock.move(2 * MINUTE))


@asynchronous
async def test_an_ended_version_of_githubs_api_does_not_look_like_missing_data(github: GithubEnvironment):
    now = github.github.clock.now()
    github.github.limits.versions["2022-11-28"] = VersionEnd(now, now)
    async with github.host() as host:
        for call in (host.read_pull_request(github.repo, ONE), host.has_repository(github.repo)):
            with pytest.raises(HostUnavailable, match="this version of its API: update Mergeyard") as raised:
                await call
            assert not isinstance(raised.value, HostRefused)
