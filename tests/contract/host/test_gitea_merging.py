"""How Gitea merges, refuses to merge, and shows pushed commits as merged."""

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Config, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.ports.forge import HostRefused, Merge, Merged, MergeForbidden, MergeRefused, NotMerged
from tests.contract.host.environment import ONE, TWO
from tests.contract.host.gitea_environment import GiteaEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.polling import eventually


def merge_of(head: Sha, method: MergeMethod = MergeMethod.MERGE_COMMIT, number: PullRequestNumber = ONE) -> Merge:
    return Merge(
        number=number, head=head, base_branch="main", method=method, title="Merge #1", message="Mergeyard-Run: 1"
    )


@pytest.mark.parametrize("method", MergeMethod)
@asynchronous
async def test_every_merge_method_works_and_repeating_it_returns_the_same_commit(
    gitea: GiteaEnvironment, method: MergeMethod
):
    head = gitea.open(1)
    async with gitea.host() as host:
        outcome = await host.merge(gitea.repo, merge_of(head, method))
        assert isinstance(outcome, Merged)
        assert outcome.commit == gitea.project.fetch("main")
        assert await host.merge(gitea.repo, merge_of(head, method)) == outcome
        assert await host.find_merge_commit(gitea.repo, merge_of(head, method)) == outcome.commit
        pull_request = await host.read_pull_request(gitea.repo, ONE)
        assert pull_request
        assert (pull_request.is_open, pull_request.merged_into) == (False, "main")
    expected = "A change" if method is MergeMethod.REBASE else "Merge #1\n\nMergeyard-Run: 1"
    assert gitea.project.origin.log("main", "%B")[-1].startswith(expected)


@asynchronous
async def test_another_head_or_base_than_requested_is_not_merged(gitea: GiteaEnvironment):
    head = gitea.open(1)
    pushed = gitea.push(1)
    async with gitea.host() as host:
        assert isinstance(await host.merge(gitea.repo, merge_of(head)), NotMerged)
        assert isinstance(await host.merge(gitea.repo, replace(merge_of(pushed), base_branch="release")), NotMerged)
        assert await host.find_merge_commit(gitea.repo, merge_of(pushed)) is None
        assert isinstance(await host.merge(gitea.repo, merge_of(head, number=TWO)), NotMerged)


@asynchronous
async def test_a_push_after_the_merge_does_not_change_the_merge(gitea: GiteaEnvironment):
    head = gitea.open(1)
    async with gitea.host() as host:
        outcome = await host.merge(gitea.repo, merge_of(head))
        later = gitea.project.commit("topic-1", {"later.txt": "1"})
        assert await host.merge(gitea.repo, merge_of(head)) == outcome
        assert await host.find_merge_commit(gitea.repo, merge_of(later)) is None
        assert await host.find_merge_commit(gitea.repo, replace(merge_of(head), base_branch="release")) is None


@asynchronous
async def test_a_pull_request_that_conflicts_or_lacks_reviews_is_not_merged_and_is_read_again(gitea: GiteaEnvironment):
    conflicting, unseen = gitea.open(1, files={"a.txt": "ours"}), gitea.open(2)
    gitea.project.commit("main", {"a.txt": "theirs"})
    eventually(lambda: not gitea.project.pull_request(1)["mergeable"])
    gitea.project.protect("main", required_approvals=1)
    async with gitea.host() as host:
        assert isinstance(await host.merge(gitea.repo, merge_of(conflicting)), NotMerged)
        gitea.project.wait_until_checked(2)
        assert isinstance(await host.merge(gitea.repo, merge_of(unseen, number=TWO)), NotMerged)


@asynchronous
async def test_a_missing_required_status_is_refused_with_the_message_of_gitea(gitea: GiteaEnvironment):
    head = gitea.open(1)
    gitea.project.protect("main", ["unit"])
    gitea.project.wait_until_checked(1)
    async with gitea.host() as host:
        refused = await host.merge(gitea.repo, merge_of(head))
        assert isinstance(refused, MergeRefused)
        assert "required status checks" in refused.detail


@asynchronous
async def test_a_pending_required_status_is_waited_for(gitea: GiteaEnvironment):
    head = gitea.open(1)
    gitea.project.protect("main", ["unit"])
    gitea.project.wait_until_checked(1)
    gitea.project.report(head, "unit", "pending")
    async with gitea.host() as host:
        assert isinstance(await host.merge(gitea.repo, merge_of(head)), NotMerged)
        gitea.project.report(head, "unit", "failure")
        assert isinstance(await host.merge(gitea.repo, merge_of(head)), MergeRefused)


@asynchronous
async def test_a_pull_request_with_an_open_dependency_is_refused_with_its_name(gitea: GiteaEnvironment):
    head, _, _ = gitea.open(1), gitea.open(2), gitea.open(3)
    gitea.project.depend(1, on=2)
    gitea.project.depend(1, on=3)
    gitea.close(3)
    async with gitea.host() as host:
        refused = await host.merge(gitea.repo, merge_of(head))
        assert isinstance(refused, MergeRefused)
        assert "The pull request depends on #2, still open" in refused.detail
        gitea.close(2)
        assert isinstance(await host.merge(gitea.repo, merge_of(head)), Merged)


@asynchronous
async def test_an_open_dependency_in_another_repository_is_named_with_that_repository(
    gitea: GiteaEnvironment, tmp_path: Path
):
    head = gitea.open(1)
    fork = gitea.project.fork("grace", tmp_path)
    fork.open("topic", {"b.txt": "1"})
    gitea.project.request("POST", "/issues/1/dependencies", {"owner": "grace", "repo": fork.name, "index": 1})
    async with gitea.host() as host:
        refused = await host.merge(gitea.repo, merge_of(head))
        assert isinstance(refused, MergeRefused)
        assert f"The pull request depends on grace/{fork.name}#1" in refused.detail


@asynchronous
async def test_a_forbidden_method_or_account_is_not_the_fault_of_the_pull_request(gitea: GiteaEnvironment):
    head = gitea.open(1)
    gitea.project.update_settings({"has_pull_requests": True, "allow_squash_merge": False})
    gitea.project.wait_until_checked(1)
    async with gitea.host() as host:
        assert host.unsupported_reason(Config(merge_method=MergeMethod.SQUASH)) is None
        assert isinstance(await host.merge(gitea.repo, merge_of(head, MergeMethod.SQUASH)), MergeForbidden)
        gitea.project.protect("main", enable_merge_whitelist=True, merge_whitelist_usernames=["ada"])
        gitea.project.wait_until_checked(1)
        assert isinstance(await host.merge(gitea.repo, merge_of(head)), MergeForbidden)
    token = gitea.people.token_of("acme", "read:repository", "read:user")
    async with gitea.host(token=token) as host:
        assert isinstance(await host.merge(gitea.repo, merge_of(head)), MergeForbidden)


@asynchronous
async def test_a_squashed_commit_that_was_pushed_is_shown_as_its_merge(gitea: GiteaEnvironment):
    head = gitea.open(1)
    landed = gitea.project.commit("main", {"1.txt": "1"})
    async with gitea.host() as host:
        assert await host.mark_merged(gitea.repo, ONE, head, landed)
        assert await host.find_merge_commit(gitea.repo, merge_of(head)) == landed
    assert gitea.project.changed_files(1) == ["1.txt"]
    gitea.project.remove("topic-1")
    assert gitea.project.changed_files(1) == ["1.txt"]


@asynchronous
async def test_gitea_shows_no_changes_if_the_head_moves_before_it_is_merged(gitea: GiteaEnvironment):
    """So the queue does not move heads on Gitea."""
    head = gitea.open(1)
    landed = gitea.project.origin.commit("main", {"1.txt": "1"})
    gitea.project.origin.set_ref("topic-1", landed)
    gitea.project.push("main", "topic-1")
    eventually(lambda: gitea.project.pull_request(1)["changed_files"] == 0)
    async with gitea.host() as host:
        assert await host.mark_merged(gitea.repo, ONE, head, landed)
    assert gitea.project.pull_request(1)["merged"]
    assert gitea.project.changed_files(1) == []


@asynchronous
async def test_a_pull_request_that_was_pushed_to_after_it_landed_stays_open(gitea: GiteaEnvironment):
    head = gitea.open(1)
    landed = gitea.land(1)
    gitea.push(1)
    async with gitea.host() as host:
        assert not await host.mark_merged(gitea.repo, ONE, head, landed)
        pull_request = await host.read_pull_request(gitea.repo, ONE)
        assert pull_request
        assert pull_request.is_open


@asynchronous
async def test_a_closed_pull_request_cannot_be_marked_as_merged(gitea: GiteaEnvironment):
    head = gitea.open(1)
    landed = gitea.land(1)
    gitea.close(1)
    async with gitea.host() as host:
        assert not await host.mark_merged(gitea.repo, ONE, head, landed)
        assert await host.mark_merged(gitea.repo, TWO, head, landed)  # it does not exist, so it needs no mark


@asynchronous
async def test_an_open_pull_request_is_closed_and_a_merged_one_stays_merged(gitea: GiteaEnvironment):
    gitea.open(1)
    head = gitea.open(2)
    async with gitea.host() as host:
        assert isinstance(await host.merge(gitea.repo, merge_of(head, number=TWO)), Merged)
        for number in (ONE, ONE, TWO, PullRequestNumber(3)):
            await host.close_pull_request(gitea.repo, number)
    assert (gitea.project.pull_request(1)["state"], gitea.project.pull_request(1)["merged"]) == ("closed", False)
    assert gitea.project.pull_request(2)["merged"]


@asynchronous
async def test_pull_requests_into_a_branch_get_another_base_before_it_is_deleted(gitea: GiteaEnvironment):
    gitea.open(1, base="release")
    gitea.open(2, base="release")
    gitea.close(2)
    gitea.open(3, base="other")
    async with gitea.host() as host:
        await host.retarget_pull_requests(gitea.repo, "release", "main")
        await host.retarget_pull_requests(gitea.repo, "release", "main")
    gitea.project.remove("release")
    shown = [gitea.project.pull_request(number) for number in (1, 2, 3)]
    assert [(one["base"]["ref"], one["state"]) for one in shown] == [
        ("main", "open"),
        ("release", "closed"),
        ("other", "open"),
    ]


def test_gitea_refuses_unsigned_commits_forced_pushes_and_deletion_where_a_rule_says_so(gitea: GiteaEnvironment):
    project = gitea.project
    project.commit("topic", {"b.txt": "1"}, base="main")
    project.protect("topic")
    assert not project.push_as("acme", project.origin.tip("main"), "topic", "--force")
    with pytest.raises(subprocess.CalledProcessError):
        project.remove("topic")
    project.protect("main", require_signed_commits=True)
    unsigned = project.origin.commit("main", {"c.txt": "1"})
    assert not project.push_as("acme", unsigned, "main")
    assert project.push_as("acme", unsigned, "other")


@asynchronous
async def test_a_branch_stays_if_pull_requests_need_it(gitea: GiteaEnvironment):
    gitea.open(1)
    gitea.open(2, base="topic-1")
    async with gitea.host() as host:
        with pytest.raises(HostRefused, match="the head of another open pull request"):
            await host.retarget_pull_requests(gitea.repo, "topic-1", "main")
        assert gitea.project.pull_request(2)["base"]["ref"] == "topic-1"
        gitea.close(1)
        gitea.project.open("topic-2")
        with pytest.raises(HostRefused, match="already exists"):
            await host.retarget_pull_requests(gitea.repo, "topic-1", "main")


@asynchronous
async def test_if_marking_as_merged_is_forbidden_the_message_names_the_setting_to_enable(gitea: GiteaEnvironment):
    head = gitea.open(1)
    landed = gitea.land(1)
    gitea.project.update_settings({"has_pull_requests": True, "allow_manual_merge": False})
    async with gitea.host() as host:
        with pytest.raises(HostRefused, match="allow_manual_merge"):
            await host.mark_merged(gitea.repo, ONE, head, landed)
