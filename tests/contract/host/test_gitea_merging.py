"""How Gitea merges, refuses to, and shows as merged what was pushed."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.ports.forge import (
    Merge,
    Merged,
    MergeForbidden,
    MergeRefused,
    NotMerged,
)
from mergeyard.ports.host import HostTrouble
from tests.contract.host.gitea_stage import GiteaStage
from tests.contract.host.stage import ONE, TWO
from tests.support.asynchronous import asynchronous
from tests.support.patience import eventually


def merge_of(head: Sha, method: MergeMethod = MergeMethod.MERGE_COMMIT, number: PrNumber = ONE) -> Merge:
    return Merge(number=number, head=head, base="main", method=method, title="Merge #1", message="Mergeyard-Run: 1")


def depend(gitea: GiteaStage, number: int, on: int) -> None:
    told = {"owner": gitea.project.owner, "repo": gitea.project.name, "index": on}
    gitea.project.ask("POST", f"/issues/{number}/dependencies", told)


@pytest.mark.parametrize("method", MergeMethod)
@asynchronous
async def test_it_merges_in_every_way_and_tells_the_commit_again(gitea: GiteaStage, method: MergeMethod):
    head = gitea.open(1)
    async with gitea.host() as host:
        outcome = await host.merge(gitea.repo, merge_of(head, method))
        assert isinstance(outcome, Merged)
        assert outcome.commit == gitea.project.fetch("main")
        assert await host.merge(gitea.repo, merge_of(head, method)) == outcome
        assert await host.merged_as(gitea.repo, merge_of(head, method)) == outcome.commit
        pull = await host.pull(gitea.repo, ONE)
        assert pull
        assert (pull.is_open, pull.merged_into) == (False, "main")
    expected = "A change" if method is MergeMethod.REBASE else "Merge #1\n\nMergeyard-Run: 1"
    assert gitea.project.origin.log("main", "%B")[-1].startswith(expected)


@asynchronous
async def test_another_head_or_base_than_the_one_that_was_meant_is_not_merged(gitea: GiteaStage):
    head = gitea.open(1)
    pushed = gitea.push(1)
    async with gitea.host() as host:
        assert isinstance(await host.merge(gitea.repo, merge_of(head)), NotMerged)
        assert isinstance(await host.merge(gitea.repo, replace(merge_of(pushed), base="release")), NotMerged)
        assert await host.merged_as(gitea.repo, merge_of(pushed)) is None
        assert isinstance(await host.merge(gitea.repo, merge_of(head, number=TWO)), NotMerged)


@asynchronous
async def test_a_push_to_the_branch_of_what_is_merged_changes_nothing_about_its_merge(gitea: GiteaStage):
    head = gitea.open(1)
    async with gitea.host() as host:
        outcome = await host.merge(gitea.repo, merge_of(head))
        later = gitea.project.commit("topic-1", {"later.txt": "1"})
        assert await host.merge(gitea.repo, merge_of(head)) == outcome
        assert await host.merged_as(gitea.repo, merge_of(later)) is None
        assert await host.merged_as(gitea.repo, replace(merge_of(head), base="release")) is None


@asynchronous
async def test_what_conflicts_or_lacks_reviews_is_not_merged_and_must_be_looked_at_again(gitea: GiteaStage):
    conflicting, unseen = gitea.open(1, files={"a.txt": "ours"}), gitea.open(2)
    gitea.project.commit("main", {"a.txt": "theirs"})
    eventually(lambda: not gitea.project.pull(1)["mergeable"])
    gitea.project.protect("main", required_approvals=1)
    async with gitea.host() as host:
        assert isinstance(await host.merge(gitea.repo, merge_of(conflicting)), NotMerged)
        gitea.project.until_checked(2)
        assert isinstance(await host.merge(gitea.repo, merge_of(unseen, number=TWO)), NotMerged)


@asynchronous
async def test_what_lacks_a_required_status_is_refused_in_its_own_words(gitea: GiteaStage):
    head = gitea.open(1)
    gitea.project.protect("main", ["unit"])
    gitea.project.until_checked(1)
    async with gitea.host() as host:
        refused = await host.merge(gitea.repo, merge_of(head))
        assert isinstance(refused, MergeRefused)
        assert "required status checks" in refused.words


@asynchronous
async def test_one_whose_required_status_is_still_pending_is_waited_for(gitea: GiteaStage):
    head = gitea.open(1)
    gitea.project.protect("main", ["unit"])
    gitea.project.until_checked(1)
    gitea.project.report(head, "unit", "pending")
    async with gitea.host() as host:
        assert isinstance(await host.merge(gitea.repo, merge_of(head)), NotMerged)
        gitea.project.report(head, "unit", "failure")
        assert isinstance(await host.merge(gitea.repo, merge_of(head)), MergeRefused)


@asynchronous
async def test_what_depends_on_something_open_is_refused_with_words_that_name_it(gitea: GiteaStage):
    head, _, _ = gitea.open(1), gitea.open(2), gitea.open(3)
    depend(gitea, 1, on=2)
    depend(gitea, 1, on=3)
    gitea.close(3)
    async with gitea.host() as host:
        refused = await host.merge(gitea.repo, merge_of(head))
        assert isinstance(refused, MergeRefused)
        assert "it depends on #2, still open" in refused.words
        gitea.close(2)
        assert isinstance(await host.merge(gitea.repo, merge_of(head)), Merged)


@asynchronous
async def test_what_lies_open_in_another_repository_is_named_with_it(gitea: GiteaStage, tmp_path: Path):
    head = gitea.open(1)
    fork = gitea.project.fork("grace", tmp_path)
    fork.open("topic", {"b.txt": "1"})
    gitea.project.ask("POST", "/issues/1/dependencies", {"owner": "grace", "repo": fork.name, "index": 1})
    async with gitea.host() as host:
        refused = await host.merge(gitea.repo, merge_of(head))
        assert isinstance(refused, MergeRefused)
        assert f"it depends on grace/{fork.name}#1" in refused.words


@asynchronous
async def test_where_a_method_or_the_account_is_not_allowed_nobody_is_to_blame(gitea: GiteaStage):
    head = gitea.open(1)
    gitea.project.change({"has_pull_requests": True, "allow_squash_merge": False})
    gitea.project.until_checked(1)
    async with gitea.host() as host:
        assert host.refuses(MergeMethod.SQUASH, LandingMethod.PROVIDER_MERGE) is None
        assert isinstance(await host.merge(gitea.repo, merge_of(head, MergeMethod.SQUASH)), MergeForbidden)
        gitea.project.protect("main", enable_merge_whitelist=True, merge_whitelist_usernames=["ada"])
        gitea.project.until_checked(1)
        assert isinstance(await host.merge(gitea.repo, merge_of(head)), MergeForbidden)
    token = gitea.people.token_of("acme", "read:repository", "read:user")
    async with gitea.host(token=token) as host:
        assert isinstance(await host.merge(gitea.repo, merge_of(head)), MergeForbidden)


@asynchronous
async def test_a_squashed_commit_that_was_pushed_is_shown_as_its_merge(gitea: GiteaStage):
    head = gitea.open(1)
    landed = gitea.project.commit("main", {"1.txt": "1"})
    async with gitea.host() as host:
        await host.mark_merged(gitea.repo, ONE, head, landed)
        assert await host.merged_as(gitea.repo, merge_of(head)) == landed


@asynchronous
async def test_what_was_pushed_to_since_it_landed_stays_open(gitea: GiteaStage):
    head = gitea.open(1)
    landed = gitea.land(1)
    gitea.push(1)
    async with gitea.host() as host:
        await host.mark_merged(gitea.repo, ONE, head, landed)
        pull = await host.pull(gitea.repo, ONE)
        assert pull
        assert pull.is_open


@asynchronous
async def test_where_it_may_not_be_marked_the_words_tell_which_setting_to_enable(gitea: GiteaStage):
    head = gitea.open(1)
    landed = gitea.land(1)
    gitea.project.change({"has_pull_requests": True, "allow_manual_merge": False})
    async with gitea.host() as host:
        with pytest.raises(HostTrouble, match="allow_manual_merge"):
            await host.mark_merged(gitea.repo, ONE, head, landed)
