"""Faults between Gitea and Mergeyard: nothing is done twice, and errors are not taken for results."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeyard.adapters.forges.gitea.pull_requests import RECHECK_WINDOW_MS
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.pull_requests import HeadBranchAccess
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import HostAccessLost, HostUnavailable, Merge, Merged, NotMerged
from tests.contract.host.environment import ONE
from tests.contract.host.gitea_environment import SECRET, GiteaEnvironment, environment_on
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.forges.faults import ActsFirst, LosesResponse, RespondsWith
from tests.support.forges.gitea.fake import FakeGitea
from tests.support.forges.gitea.world import Blocker
from tests.support.polling import eventually


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeGitea]:
    with FakeGitea(tmp_path) as fake:
        yield fake


@pytest.fixture
def gitea(fake: FakeGitea, tmp_path: Path) -> Iterator[GiteaEnvironment]:
    with environment_on(fake, tmp_path) as env:
        yield env


@asynchronous
async def test_a_merge_whose_response_was_lost_is_found_and_not_repeated(fake: FakeGitea, gitea: GiteaEnvironment):
    merge = Merge(
        number=ONE, head=gitea.open(1), base_branch="main", method=MergeMethod.SQUASH, title="Merge #1", message=""
    )
    fake.faults.plan(LosesResponse(), "/merge$", method="POST")
    async with gitea.host() as host:
        with pytest.raises(HostUnavailable):
            await host.merge(gitea.repo, merge)
        assert await host.merge(gitea.repo, merge) == Merged(gitea.project.fetch("main"))
    assert len(gitea.project.origin.log("main", "%s")) == 3


@asynchronous
async def test_a_merge_mark_whose_response_was_lost_is_set_once(fake: FakeGitea, gitea: GiteaEnvironment):
    head, landed = gitea.open(1), gitea.land(1)
    fake.faults.plan(LosesResponse(), "/merge$", method="POST")
    async with gitea.host() as host:
        with pytest.raises(HostUnavailable):
            await host.mark_merged(gitea.repo, ONE, head, landed)
        await host.mark_merged(gitea.repo, ONE, head, landed)
    assert gitea.project.pull_request(1)["merge_commit_sha"] == landed


@asynchronous
async def test_a_comment_whose_response_was_lost_is_not_posted_again(fake: FakeGitea, gitea: GiteaEnvironment):
    gitea.open(1)
    fake.faults.plan(LosesResponse(), "/comments", method="POST")
    async with gitea.host() as host:
        with pytest.raises(HostUnavailable):
            await host.put_comment(gitea.repo, ONE, "<!-- mergeyard -->\nwaiting", None)
        await host.put_comment(gitea.repo, ONE, "<!-- mergeyard -->\ntesting", None)
    assert gitea.project.comments(1) == ["<!-- mergeyard -->\ntesting"]


@pytest.mark.parametrize("status", [401, 429, 500, 503])
@asynchronous
async def test_a_temporary_error_is_never_taken_for_a_result(fake: FakeGitea, gitea: GiteaEnvironment, status: int):
    head = gitea.open(1)
    fake.faults.plan(RespondsWith(status), "/repos", times=6)
    async with gitea.host() as host:
        for ask in (
            host.read_pull_request(gitea.repo, ONE),
            host.has_repository(gitea.repo),
            host.required_statuses(gitea.repo, "main"),
            host.statuses(gitea.repo, head, "main"),
            host.thread(gitea.repo, ONE, Instant(0)),
            host.can_write(gitea.repo, "ada", "main"),
        ):
            with pytest.raises((HostUnavailable, HostAccessLost)):
                await ask


@asynchronous
async def test_a_pull_request_that_gitea_still_checks_is_neither_merged_nor_refused(
    fake: FakeGitea, gitea: GiteaEnvironment
):
    merge = Merge(number=ONE, head=gitea.open(1), base_branch="main", method=MergeMethod.REBASE, title="", message="")
    fake.pull_request("acme/app", 1).mergeability_unknown = True
    async with gitea.host() as host:
        assert isinstance(await host.merge(gitea.repo, merge), NotMerged)
        fake.pull_request("acme/app", 1).mergeability_unknown = False
        assert isinstance(await host.merge(gitea.repo, merge), Merged)


@asynchronous
async def test_a_failed_merge_call_stays_temporary_though_a_dependency_was_closed(
    fake: FakeGitea, gitea: GiteaEnvironment
):
    merge = Merge(
        number=ONE, head=gitea.open(1), base_branch="main", method=MergeMethod.SQUASH, title="Merge #1", message=""
    )
    gitea.open(2)
    gitea.project.depend(1, on=2)
    gitea.close(2)
    fake.faults.plan(RespondsWith(500), "/merge$", method="POST")
    async with gitea.host() as host:
        with pytest.raises(HostUnavailable, match="500"):
            await host.merge(gitea.repo, merge)
        assert isinstance(await host.merge(gitea.repo, merge), Merged)


@asynchronous
async def test_a_merge_whose_response_was_lost_is_not_refused_for_a_later_dependency(
    fake: FakeGitea, gitea: GiteaEnvironment
):
    merge = Merge(
        number=ONE, head=gitea.open(1), base_branch="main", method=MergeMethod.SQUASH, title="Merge #1", message=""
    )
    gitea.open(2)
    depends = Blocker(fake.world.repository("acme", "app"), fake.pull_request("acme/app", 2))
    late = ActsFirst(lambda: fake.pull_request("acme/app", 1).blockers.append(depends))
    fake.faults.plan(LosesResponse(), "/merge$", method="POST")
    fake.faults.plan(late, "/dependencies$")
    async with gitea.host() as host:
        assert isinstance(await host.merge(gitea.repo, merge), Merged)


@asynchronous
async def test_a_pull_request_that_gitea_checks_for_long_is_left_to_git(fake: FakeGitea, gitea: GiteaEnvironment):
    gitea.open(1)
    fake.pull_request("acme/app", 1).mergeability_unknown = True
    clock = ManualClock()
    async with gitea.host(clock) as host:
        assert await gitea.mergeability(host, ONE) is Mergeability.CHECKING
        clock.move_to(Instant(clock.now() + RECHECK_WINDOW_MS))
        assert await gitea.mergeability(host, ONE) is Mergeability.UNKNOWN


@asynchronous
async def test_a_rule_that_vanishes_while_it_is_read_is_not_taken_for_none(fake: FakeGitea, gitea: GiteaEnvironment):
    gitea.open(1)
    gitea.project.protect("main", required_approvals=1)
    fake.faults.plan(RespondsWith(404), "/branch_protections/main$")
    async with gitea.host() as host:
        with pytest.raises(HostUnavailable):
            await host.read_pull_request(gitea.repo, ONE)


@asynchronous
async def test_without_webhooks_every_change_is_visible_in_the_refs(fake: FakeGitea, gitea: GiteaEnvironment):
    gitea.project.add_webhook("http://127.0.0.1:9", SECRET, "push", "pull_request", "pull_request_sync")
    fake.deliveries.drop_all = True
    gitea.open(1)
    async with gitea.host() as host:
        before = await host.refs(gitea.repo, ["main"])
        pushed = gitea.push(1)
        landed = gitea.project.commit("main", {"m.txt": "1"})
        after = await host.refs(gitea.repo, ["main"])
    assert {ref for ref, _ in after.items() - before.items()} >= {"refs/pull/1/head", "refs/heads/main"}
    assert (after["refs/pull/1/head"], after["refs/heads/main"]) == (pushed, landed)
    eventually(lambda: all(each.status is None for each in fake.deliveries.log))


@asynchronous
async def test_a_head_branch_that_gitea_does_not_show_us_counts_as_protected(fake: FakeGitea, gitea: GiteaEnvironment):
    gitea.open(1)
    fake.faults.plan(RespondsWith(403), "/branches/topic-1$")
    async with gitea.host() as host:
        pull_request = await host.read_pull_request(gitea.repo, ONE)
        assert pull_request
        assert pull_request.head_branch_access is HeadBranchAccess.PROTECTED
        fake.faults.plan(RespondsWith(503), "/branches/topic-1$")
        with pytest.raises(HostUnavailable, match="503"):
            await host.read_pull_request(gitea.repo, ONE)
