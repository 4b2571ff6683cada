"""What only Gitea does, here on one that only looks like it; `tests/forge` has the real one do the same."""

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.gitea.doubts import PATIENCE
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import Mergeability
from mergeyard.ports.forge import Draft, Merge, NotMerged
from mergeyard.ports.host import HostTrouble
from tests.contract.host.gitea_stage import GiteaStage
from tests.contract.host.stage import ONE, TWO
from tests.support.asynchronous import asynchronous
from tests.support.clock import HandClock
from tests.support.patience import eventually
from tests.support.repositories import ENVIRONMENT

CHECKING, NOT_MERGEABLE, MERGEABLE = Mergeability.CHECKING, Mergeability.NOT_MERGEABLE, Mergeability.MERGEABLE


@asynchronous
async def test_what_comes_from_another_repository_is_a_fork(gitea: GiteaStage, tmp_path: Path):
    fork = gitea.project.fork("grace", tmp_path)
    head = fork.commit("topic", {"b.txt": "1"}, upon="main")
    gitea.project.open("grace:topic", author="grace")
    async with gitea.host() as host:
        pull = await host.pull(gitea.repo, ONE)
        assert pull
        assert (pull.fork, pull.head, pull.branch, pull.author) == (True, head, "topic", "grace")


@asynchronous
async def test_what_it_goes_on_denying_is_left_to_git_and_that_is_news(gitea: GiteaStage):
    gitea.open(1, files={"a.txt": "ours"})
    clock = HandClock()
    async with gitea.host(clock) as host:
        assert await gitea.mergeability(host, ONE) is MERGEABLE
        gitea.project.commit("main", {"a.txt": "theirs"})
        eventually(lambda: not gitea.project.pull(1)["mergeable"])
        assert await gitea.mergeability(host, ONE) is CHECKING
        before = await host.refs(gitea.repo, ["main"])
        clock.move_to(Instant(clock.now() + PATIENCE))
        after = await host.refs(gitea.repo, ["main"])
        assert {host.number_of(ref) for ref, _ in after.items() - before.items()} == {ONE}
        assert await gitea.mergeability(host, ONE) is Mergeability.UNKNOWN


@asynchronous
async def test_a_conflict_is_believed_only_when_it_lasts_and_of_what_it_would_not_merge(gitea: GiteaStage):
    head = gitea.open(1, files={"a.txt": "ours"})
    gitea.project.commit("main", {"a.txt": "theirs"})
    eventually(lambda: not gitea.project.pull(1)["mergeable"])
    merge = Merge(number=ONE, head=head, base="main", method=MergeMethod.SQUASH, title="Merge #1", message="")
    clock = HandClock()
    async with gitea.host(clock) as host:
        assert isinstance(await host.merge(gitea.repo, merge), NotMerged)
        assert await gitea.mergeability(host, ONE) is CHECKING
        clock.move_to(Instant(clock.now() + PATIENCE))
        assert await gitea.mergeability(host, ONE) is NOT_MERGEABLE
        gitea.project.commit("main", {"a.txt": "1"})
        gitea.project.until_checked(1)
        assert await gitea.mergeability(host, ONE) is MERGEABLE


@asynchronous
async def test_missing_approvals_and_requested_changes_keep_it_from_being_mergeable(gitea: GiteaStage):
    gitea.open(1)
    gitea.project.admit("grace", "write")
    gitea.project.protect("main", required_approvals=1, block_on_rejected_reviews=True)
    gitea.project.until_checked(1)
    async with gitea.host() as host:
        assert await gitea.mergeability(host, ONE) is NOT_MERGEABLE
        gitea.project.review(1, "grace", "APPROVED")
        assert await gitea.mergeability(host, ONE) is MERGEABLE
        gitea.project.admit("linus", "write")
        gitea.project.review(1, "linus", "REQUEST_CHANGES")
        assert await gitea.mergeability(host, ONE) is NOT_MERGEABLE
        gitea.project.review(1, "linus", "APPROVED")
        assert await gitea.mergeability(host, ONE) is MERGEABLE


@asynchronous
async def test_nobody_knows_whether_a_draft_can_be_merged(gitea: GiteaStage):
    gitea.open(1, draft=True)
    async with gitea.host() as host:
        assert await gitea.mergeability(host, ONE) is Mergeability.UNKNOWN


@asynchronous
async def test_a_new_label_and_a_new_comment_show_among_the_refs(gitea: GiteaStage):
    gitea.open(1)
    async with gitea.host() as host:
        before = await host.refs(gitea.repo, ["main"])
        gitea.project.label(1, "merge-queue")
        labelled = await host.refs(gitea.repo, ["main"])
        assert {host.number_of(ref) for ref, _ in labelled.items() - before.items()} == {ONE}
        gitea.project.comment(1, "grace", "/merge")
        told = await host.refs(gitea.repo, ["main"])
        assert {host.number_of(ref) for ref, _ in told.items() - labelled.items()} == {ONE}


# Test branches


@asynchronous
async def test_a_draft_shows_a_test_branch_and_is_no_news_of_a_pull_request(gitea: GiteaStage):
    gitea.project.commit("mergeyard/pr-1/x", {"b.txt": "1"}, upon="main")
    draft = Draft(branch="mergeyard/pr-1/x", base="main", title="Test of #1", text="Never merged.")
    async with gitea.host() as host:
        for _ in range(2):
            await host.open_draft(gitea.repo, draft)
        pull = await host.pull(gitea.repo, ONE)
        assert pull
        assert (pull.draft, pull.is_open) == (True, True)
        assert host.head_ref(ONE) not in await host.refs(gitea.repo, ["main"])
        for _ in range(2):
            await host.close_draft(gitea.repo, draft.branch)
        pull = await host.pull(gitea.repo, ONE)
        assert pull
        assert not pull.is_open
        assert await host.pull(gitea.repo, TWO) is None


@asynchronous
async def test_git_comes_in_with_what_only_its_environment_holds(gitea: GiteaStage):
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
async def test_no_name_leads_elsewhere(gitea: GiteaStage):
    names = ("..", ".", "a/b", "a%2fb", "a b", "", "ä", "a?b", "a\nb")
    async with gitea.host() as host:
        for repo in (replace(gitea.repo, **{part: name}) for name in names for part in ("owner", "name")):
            assert not await host.knows(repo)
            with pytest.raises(HostTrouble):
                await host.pull(repo, ONE)
            with pytest.raises(HostTrouble):
                await host.remote(repo)


@asynchronous
async def test_names_are_one_in_whatever_case(gitea: GiteaStage):
    shouted = Repo(gitea.repo.host, gitea.repo.owner.upper(), gitea.repo.name.upper())
    async with gitea.host() as host:
        assert await host.knows(shouted)
        assert host.same_name(shouted) == gitea.repo
