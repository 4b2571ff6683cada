"""Behavior that only Gitea has, tested on the fake; `tests/forge` runs the same tests on a real one."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.gitea.pull_requests import RECHECK_WINDOW_MS
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Repo
from mergeyard.domain.pull_requests import HeadBranchAccess
from mergeyard.domain.states import Mergeability
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import DraftPullRequest, HostUnavailable, Merge, NotMerged, PullRequestText
from tests.contract.host.environment import ONE, TWO
from tests.contract.host.gitea_environment import GiteaEnvironment
from tests.forge.gitea_admin import BOT
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


async def access_of(gitea: GiteaEnvironment, number: PullRequestNumber = ONE) -> HeadBranchAccess:
    async with gitea.host() as host:
        pull_request = await host.read_pull_request(gitea.repo, number)
        assert pull_request
        assert not pull_request.is_merged_by_head
        return pull_request.head_branch_access


@asynchronous
async def test_the_head_branch_of_a_fork_is_not_ours(gitea: GiteaEnvironment, tmp_path: Path):
    fork = gitea.project.fork("grace", tmp_path)
    fork.commit("topic", {"b.txt": "1"}, base="main")
    gitea.project.open("grace:topic", author="grace")
    assert await access_of(gitea) is HeadBranchAccess.IN_FORK
    async with gitea.host() as host:
        pull_request = await host.read_pull_request(gitea.repo, ONE)
        assert pull_request
        assert pull_request.head_repo == f"grace/{fork.name}"
        for skipped in ("with_requirements", "with_head_branch"):
            pull_request = await host.read_pull_request(gitea.repo, ONE, **{skipped: False})
            assert pull_request
            assert pull_request.head_branch_access is HeadBranchAccess.IN_FORK


@asynchronous
async def test_a_head_branch_that_a_rule_protects_is_reported(gitea: GiteaEnvironment):
    gitea.open(1)
    assert await access_of(gitea) is HeadBranchAccess.NOT_MOVED
    gitea.project.protect("topic-1")
    assert await access_of(gitea) is HeadBranchAccess.PROTECTED
    async with gitea.host() as host:
        for skipped in ("with_requirements", "with_head_branch"):
            pull_request = await host.read_pull_request(gitea.repo, ONE, **{skipped: False})
            assert pull_request
            assert pull_request.head_branch_access is HeadBranchAccess.NOT_MOVED


@asynchronous
async def test_the_default_branch_is_shared_although_it_is_a_head(gitea: GiteaEnvironment):
    gitea.open(1, base="release")
    gitea.project.commit("main", {"c.txt": "1"})
    gitea.project.open("main", base="release")
    assert await access_of(gitea, TWO) is HeadBranchAccess.SHARED


@asynchronous
async def test_the_text_and_the_address_that_an_account_shows_are_read(gitea: GiteaEnvironment):
    gitea.open(1, title="Add a page", author="grace")
    gitea.project.update_pull_request(1, body="é" * 70_000)
    async with gitea.host() as host:
        text = await host.read_text(gitea.repo, ONE)
        assert await host.own_address(gitea.repo) == f"{BOT}@example.org"
    assert text == PullRequestText(
        title="Add a page", body="é" * 65_536, author_name="grace", author_email="grace@example.org"
    )


@asynchronous
async def test_an_administrator_of_the_server_does_not_publish_addresses(gitea: GiteaEnvironment):
    gitea.open(1, author="grace")
    async with gitea.host(token=gitea.people.admin_token) as host:
        text = await host.read_text(gitea.repo, ONE)
        assert text
        assert (text.author_name, text.author_email) == ("grace", "")


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
async def test_an_approval_counts_until_it_is_dismissed(gitea: GiteaEnvironment):
    gitea.open(1)
    gitea.project.add_collaborator("grace", "write")
    gitea.project.protect("main", required_approvals=1)
    async with gitea.host() as host:
        assert await gitea.unmet(host, ONE) == ["Waiting for a review (0 of 1 approvals)."]
        gitea.project.request_review(1, "grace")
        assert await gitea.unmet(host, ONE) == ["Waiting for a review from @grace (0 of 1 approvals)."]
        approval = gitea.project.review(1, "grace", "APPROVED")
        assert await gitea.unmet(host, ONE) == []
        gitea.project.dismiss(1, approval)
        assert await gitea.unmet(host, ONE) == ["Waiting for a review (0 of 1 approvals)."]
        gitea.project.wait_until_checked(1)
        assert await gitea.mergeability(host, ONE) is MERGEABLE


@asynchronous
async def test_only_approvals_of_official_reviewers_count(gitea: GiteaEnvironment):
    gitea.open(1)
    gitea.project.add_collaborator("linus", "write")
    gitea.project.add_collaborator("grace", "write")
    allowed: dict[str, Any] = {"enable_approvals_whitelist": True, "approvals_whitelist_username": ["grace"]}
    gitea.project.protect("main", required_approvals=1, **allowed)
    async with gitea.host() as host:
        gitea.project.review(1, "eve", "APPROVED")
        gitea.project.review(1, "linus", "APPROVED")
        assert await gitea.unmet(host, ONE) == ["Waiting for a review (0 of 1 approvals)."]
        gitea.project.review(1, "grace", "APPROVED")
        assert await gitea.unmet(host, ONE) == []
        approved = await host.read_pull_request(gitea.repo, ONE)
    assert approved
    assert [rule.given_by for rule in approved.requirements] == [("@grace",)]


@asynchronous
async def test_requested_changes_block_until_the_same_reviewer_approves(gitea: GiteaEnvironment):
    gitea.open(1)
    gitea.project.add_collaborator("linus", "write")
    gitea.project.protect("main", block_on_rejected_reviews=True)
    async with gitea.host() as host:
        assert await gitea.unmet(host, ONE) == []
        gitea.project.review(1, "linus", "REQUEST_CHANGES")
        rejected = "Changes were requested by @linus. Make them, and ask for another review."
        assert await gitea.unmet(host, ONE) == [rejected]
        gitea.project.review(1, "linus", "APPROVED")
        assert await gitea.unmet(host, ONE) == []


@asynchronous
async def test_a_review_after_many_others_counts(gitea: GiteaEnvironment):
    gitea.open(1)
    gitea.project.add_collaborator("linus", "write")
    gitea.project.protect("main", block_on_rejected_reviews=True)
    for _ in range(50):
        gitea.project.review(1, "linus", "COMMENT")
    gitea.project.review(1, "linus", "REQUEST_CHANGES")
    async with gitea.host() as host:
        rejected = "Changes were requested by @linus. Make them, and ask for another review."
        assert await gitea.unmet(host, ONE) == [rejected]


@asynchronous
async def test_a_requested_review_blocks_if_the_rule_says_so(gitea: GiteaEnvironment):
    gitea.open(1)
    gitea.project.add_collaborator("grace", "write")
    gitea.project.protect("main", block_on_official_review_requests=True)
    async with gitea.host() as host:
        gitea.project.request_review(1, "grace")
        assert await gitea.unmet(host, ONE) == ["Waiting for a review from @grace (0 of 1 approvals)."]
        gitea.project.review(1, "grace", "APPROVED")
        assert await gitea.unmet(host, ONE) == []
        gitea.project.request_review(1, "grace")
        assert await gitea.unmet(host, ONE) == ["Waiting for a review from @grace (0 of 1 approvals)."]


@asynchronous
async def test_rejections_and_requested_reviews_block_only_if_the_rule_says_so(gitea: GiteaEnvironment):
    gitea.open(1)
    for name in ("grace", "linus", "eve"):
        gitea.project.add_collaborator(name, "write")
    gitea.project.protect("main", required_approvals=1)
    gitea.project.review(1, "grace", "APPROVED")
    gitea.project.review(1, "linus", "REQUEST_CHANGES")
    gitea.project.request_review(1, "eve")
    async with gitea.host() as host:
        assert await gitea.unmet(host, ONE) == []


@pytest.mark.parametrize("ignores_stale", [True, False])
@asynchronous
async def test_an_approval_of_an_earlier_head_counts_unless_the_rule_ignores_it(
    gitea: GiteaEnvironment, ignores_stale: bool
):
    gitea.open(1)
    gitea.project.add_collaborator("grace", "write")
    gitea.project.protect("main", required_approvals=1, ignore_stale_approvals=ignores_stale)
    gitea.project.review(1, "grace", "APPROVED")
    async with gitea.host() as host:
        assert await gitea.unmet(host, ONE) == []
        gitea.push(1)
        assert await gitea.unmet(host, ONE) == ["Waiting for a review (0 of 1 approvals)."] * ignores_stale


@asynchronous
async def test_protected_files_and_open_dependencies_block(gitea: GiteaEnvironment):
    gitea.open(1, files={"Ci/Deploy.yml": "1", "b.txt": "1"})
    gitea.open(2)
    gitea.project.protect("main", protected_file_patterns="ci/**; *.lock")
    async with gitea.host() as host:
        blocked = "A rule of the Git host blocks the pull request: {}. Satisfy or change the rule."
        assert await gitea.unmet(host, ONE) == [blocked.format("protected file Ci/Deploy.yml")]
        assert await gitea.unmet(host, TWO) == []
        gitea.project.depend(2, on=1)
        assert await gitea.unmet(host, TWO) == [blocked.format("open dependency #1")]
        gitea.close(1)
        assert await gitea.unmet(host, TWO) == []


ALL_SCOPES = ("write:repository", "write:issue", "read:user")
BYPASSES: dict[str, dict[str, Any]] = {"none": {}, "no administrator": {"block_admin_merge_override": True}}
BYPASSES["allow-lists"] = {
    "enable_push_whitelist": True,
    "push_whitelist_usernames": ["acme", "linus", "mergeyard-bot"],
    "enable_merge_whitelist": True,
    "merge_whitelist_usernames": ["acme", "linus", "mergeyard-bot"],
}
UNREADABLE = (
    "The queue cannot read a rule of the Git host. An administrator has to grant: the permission admin in the "
    "repository."
)


@pytest.mark.parametrize("bypass", BYPASSES)
@pytest.mark.parametrize("viewer", ["acme", "linus", "mergeyard-bot"])
@asynchronous
async def test_no_power_of_our_account_replaces_an_approval(gitea: GiteaEnvironment, viewer: str, bypass: str):
    """The owner, a writer and an administrator."""
    gitea.open(1)
    for name in ("grace", "linus"):
        gitea.project.add_collaborator(name, "write")
    gitea.project.protect("main", required_approvals=1, **BYPASSES[bypass])
    gitea.project.wait_until_checked(1)
    hidden = [UNREADABLE] if viewer == "linus" else []
    async with gitea.host(token=gitea.people.token_of(viewer, *ALL_SCOPES)) as host:
        assert await gitea.mergeability(host, ONE) is MERGEABLE
        assert await gitea.unmet(host, ONE) == ["Waiting for a review (0 of 1 approvals).", *hidden]
        gitea.project.review(1, "grace", "APPROVED")
        assert await gitea.unmet(host, ONE) == hidden


@asynchronous
async def test_a_rule_that_cannot_be_read_is_ignored_if_configured_so_but_never_without_a_rule(
    gitea: GiteaEnvironment,
):
    gitea.open(1)
    gitea.open(2, base="release/1")
    gitea.project.protect("main", required_approvals=1)
    token = gitea.people.token_of("ada", *ALL_SCOPES)
    async with gitea.host(token=token) as host:
        assert await gitea.unmet(host, TWO) == []
        assert await gitea.unmet(host, ONE) == ["Waiting for a review (0 of 1 approvals).", UNREADABLE]
    async with gitea.host(token=token, unreadable_rules_block=False) as host:
        assert await gitea.unmet(host, ONE) == ["Waiting for a review (0 of 1 approvals)."]


@asynchronous
async def test_the_rule_of_a_pattern_with_a_slash_counts(gitea: GiteaEnvironment):
    gitea.open(1, base="release/1")
    gitea.project.protect("release/*", required_approvals=2)
    async with gitea.host() as host:
        assert await gitea.unmet(host, ONE) == ["Waiting for a review (0 of 2 approvals)."]


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
