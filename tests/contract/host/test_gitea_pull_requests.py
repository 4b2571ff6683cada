"""Behavior that only Gitea has, tested on the fake; `tests/forge` runs the same tests on a real one."""

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.gitea.pull_requests import RECHECK_WINDOW_MS
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import Repo
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import DraftPullRequest, HostUnavailable, Merge, NotMerged
from tests.contract.host.environment import ONE, TWO
from tests.contract.host.gitea_environment import GiteaEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.polling import eventually
from tests.support.repositories import ENVIRONMENT

CHECKING, NOT_MERGEABLE, MERGEABLE = Mergeability.CHECKING, Mergeability.NOT_MERGEABLE, Mergeability.MERGEABLE


@asynchronous
async def test_a_pull_request_from_another_repository_is_a_fork(gitea: GiteaEnvironment, tmp_path: Path):
    fork = gitea.project.fork("grace", tmp_path)
    head = fork.commit("topic", {"b.txt": "1"}, base="main")
    gitea.project.open("grace:topic", author="grace")
    async with gitea.host() as host:
        pull_request = await host.read_pull_request(gitea.repo, ONE)
        assert pull_request
        assert (pull_request.fork, pull_request.head, pull_request.head_branch, pull_request.author) == (
            True,
            head,
            "topic",
            "grace",
        )


@asynchronous
async def test_a_pull_request_that_gitea_keeps_calling_unmergeable_is_left_to_git(gitea: GiteaEnvironment):
    gitea.open(1, files={"a.txt": "ours"})
    clock = ManualClock()
    async with gitea.host(clock) as host:
        assert await gitea.mergeability(host, ONE) is MERGEABLE
        gitea.project.commit("main", {"a.txt": "theirs"})
        eventually(lambda: not gitea.project.pull_request(1)["mergeable"])
        assert await gitea.mergeability(host, ONE) is CHECKING
        before = await host.refs(gitea.repo, ["main"])
        clock.move_to(Instant(clock.now() + RECHECK_WINDOW_MS))
        after = await host.refs(gitea.repo, ["main"])
        assert {host.pull_request_number_of(ref) for ref, _ in after.items() - before.items()} == {ONE}
        assert await gitea.mergeability(host, ONE) is Mergeability.UNKNOWN


@asynchronous
async def test_a_conflict_counts_only_after_a_while_and_if_gitea_would_not_merge(gitea: GiteaEnvironment):
    head = gitea.open(1, files={"a.txt": "ours"})
    gitea.project.commit("main", {"a.txt": "theirs"})
    eventually(lambda: not gitea.project.pull_request(1)["mergeable"])
    merge = Merge(number=ONE, head=head, base_branch="main", method=MergeMethod.SQUASH, title="Merge #1", message="")
    clock = ManualClock()
    async with gitea.host(clock) as host:
        assert isinstance(await host.merge(gitea.repo, merge), NotMerged)
        assert await gitea.mergeability(host, ONE) is CHECKING
        clock.move_to(Instant(clock.now() + RECHECK_WINDOW_MS))
        assert await gitea.mergeability(host, ONE) is NOT_MERGEABLE
        gitea.project.commit("main", {"a.txt": "1"})
        gitea.project.wait_until_checked(1)
        assert await gitea.mergeability(host, ONE) is MERGEABLE


@asynchronous
async def test_missing_approvals_and_requested_changes_make_a_pull_request_unmergeable(gitea: GiteaEnvironment):
    gitea.open(1)
    gitea.project.add_collaborator("grace", "write")
    gitea.project.protect("main", required_approvals=1, block_on_rejected_reviews=True)
    gitea.project.wait_until_checked(1)
    async with gitea.host() as host:
        assert await gitea.mergeability(host, ONE) is NOT_MERGEABLE
        gitea.project.review(1, "grace", "APPROVED")
        assert await gitea.mergeability(host, ONE) is MERGEABLE
        gitea.project.add_collaborator("linus", "write")
        gitea.project.review(1, "linus", "REQUEST_CHANGES")
        assert await gitea.mergeability(host, ONE) is NOT_MERGEABLE
        gitea.project.review(1, "linus", "APPROVED")
        assert await gitea.mergeability(host, ONE) is MERGEABLE


@asynchronous
async def test_the_mergeability_of_a_draft_is_unknown(gitea: GiteaEnvironment):
    gitea.open(1, draft=True)
    async with gitea.host() as host:
        assert await gitea.mergeability(host, ONE) is Mergeability.UNKNOWN


@asynchronous
async def test_a_new_label_and_a_new_comment_show_among_the_refs(gitea: GiteaEnvironment):
    gitea.open(1)
    async with gitea.host() as host:
        before = await host.refs(gitea.repo, ["main"])
        gitea.project.label(1, "merge-queue")
        labelled = await host.refs(gitea.repo, ["main"])
        assert {host.pull_request_number_of(ref) for ref, _ in labelled.items() - before.items()} == {ONE}
        gitea.project.comment(1, "grace", "/merge")
        commented = await host.refs(gitea.repo, ["main"])
        assert {host.pull_request_number_of(ref) for ref, _ in commented.items() - labelled.items()} == {ONE}


# Test branches


@asynchronous
async def test_a_draft_shows_a_test_branch_and_is_not_among_the_pull_requests(gitea: GiteaEnvironment):
    gitea.project.commit("mergeyard/pr-1/x", {"b.txt": "1"}, base="main")
    draft = DraftPullRequest(branch="mergeyard/pr-1/x", base_branch="main", title="Test of #1", text="Never merged.")
    async with gitea.host() as host:
        for _ in range(2):
            await host.open_draft(gitea.repo, draft)
        pull_request = await host.read_pull_request(gitea.repo, ONE)
        assert pull_request
        assert (pull_request.draft, pull_request.is_open) == (True, True)
        assert host.head_ref(ONE) not in await host.refs(gitea.repo, ["main"])
        assert not await host.open_pull_requests(gitea.repo, "main")
        for _ in range(2):
            await host.close_draft(gitea.repo, draft.branch)
        pull_request = await host.read_pull_request(gitea.repo, ONE)
        assert pull_request
        assert not pull_request.is_open
        assert await host.read_pull_request(gitea.repo, TWO) is None


@asynchronous
async def test_git_gets_its_credentials_only_from_the_environment(gitea: GiteaEnvironment):
    tip = gitea.project.origin.tip("main")
    async with gitea.host() as host:
        remote = await host.remote(gitea.repo)
    command = [
        "git",
        "--git-dir",
        str(gitea.project.origin.path),
        "push",
        "--quiet",
        remote.url,
        f"{tip}:refs/heads/new",
    ]
    subprocess.run(command, env={**ENVIRONMENT, **remote.environment}, check=True)
    assert gitea.project.refs()["refs/heads/new"] == tip
    assert "@" not in remote.url


# Names


@asynchronous
async def test_no_repository_name_leads_to_another_url(gitea: GiteaEnvironment):
    names = ("..", ".", "a/b", "a%2fb", "a b", "", "ä", "a?b", "a\nb")
    async with gitea.host() as host:
        for repo in (replace(gitea.repo, **{part: name}) for name in names for part in ("owner", "name")):
            assert not await host.has_repository(repo)
            with pytest.raises(HostUnavailable):
                await host.read_pull_request(repo, ONE)
            with pytest.raises(HostUnavailable):
                await host.remote(repo)


@asynchronous
async def test_repository_names_are_compared_without_case(gitea: GiteaEnvironment):
    shouted = Repo(gitea.repo.host, gitea.repo.owner.upper(), gitea.repo.name.upper())
    async with gitea.host() as host:
        assert await host.has_repository(shouted)
        assert host.canonical_repo(shouted) == gitea.repo
