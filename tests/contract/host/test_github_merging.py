"""How GitHub merges pull requests, and what happens if it responds unexpectedly."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.domain.timestamps import SECOND, later
from mergeyard.ports.forge import (
    HostAccessLost,
    HostRefused,
    HostUnavailable,
    Merge,
    Merged,
    MergeForbidden,
    MergeOutcome,
    MergeRefused,
    NotMerged,
)
from tests.contract.host.environment import ONE, TWO
from tests.contract.host.github_environment import GithubEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.forges.faults import ALWAYS, LosesResponse, RepeatsFirstResponse, RespondsWith
from tests.support.forges.github.world import BranchProtection


def a_merge(head: Sha, method: MergeMethod = MergeMethod.MERGE_COMMIT) -> Merge:
    return Merge(number=ONE, head=head, base_branch="main", method=method, title="Merge #1", message="Mergeyard-Run: x")


# Merged


@pytest.mark.parametrize("method", MergeMethod)
@asynchronous
async def test_every_merge_method_puts_one_commit_on_the_target_branch(github: GithubEnvironment, method: MergeMethod):
    head, base = github.open(1), github.origin.tip("main")
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head, method))
        assert outcome == Merged(github.origin.tip("main"))
        assert await host.find_merge_commit(github.repo, a_merge(head)) == github.origin.tip("main")
    parents = [base, head] if method is MergeMethod.MERGE_COMMIT else [base]
    assert github.origin.log("main", "%P")[-1].split(" ") == parents


@asynchronous
async def test_the_commit_message_is_ours(github: GithubEnvironment):
    head = github.open(1)
    async with github.host() as host:
        await host.merge(github.repo, a_merge(head, MergeMethod.SQUASH))
    assert github.origin.log("main", "%B")[-1].strip() == "Merge #1\n\nMergeyard-Run: x"


@asynchronous
async def test_merging_again_returns_the_same_commit(github: GithubEnvironment):
    head = github.open(1)
    async with github.host() as host:
        once = await host.merge(github.repo, a_merge(head))
        assert await host.merge(github.repo, a_merge(head)) == once
    assert len(github.origin.subjects("main")) == 2


@asynchronous
async def test_a_lost_response_is_an_error_and_the_next_call_finds_the_merge(github: GithubEnvironment):
    head = github.open(1)
    github.github.faults.plan(LosesResponse(), "/merge", method="PUT")
    async with github.host() as host:
        with pytest.raises(HostUnavailable, match="does not answer"):
            await host.merge(github.repo, a_merge(head))
        landed = github.origin.tip("main")
        assert await host.find_merge_commit(github.repo, a_merge(head)) == landed
        assert await host.merge(github.repo, a_merge(head)) == Merged(landed)


@asynchronous
async def test_an_unmerged_pull_request_has_no_merge_commit(github: GithubEnvironment):
    head = github.open(1)
    async with github.host() as host:
        assert await host.find_merge_commit(github.repo, a_merge(head)) is None
        github.close(1)
        assert await host.find_merge_commit(github.repo, a_merge(head)) is None


@asynchronous
async def test_a_merge_of_another_head_or_base_is_not_the_requested_one(github: GithubEnvironment):
    head = github.open(1)
    landed = github.land(1)
    async with github.host() as host:
        assert await host.find_merge_commit(github.repo, a_merge(head)) == landed
        assert await host.find_merge_commit(github.repo, a_merge(landed)) is None
        assert await host.find_merge_commit(github.repo, replace(a_merge(head), base_branch="release")) is None


# Not merged for now


@asynchronous
async def test_another_head_is_not_merged(github: GithubEnvironment):
    head = github.open(1)
    github.push(1)
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head))
    assert outcome == NotMerged("The head of the pull request changed.")
    assert len(github.origin.subjects("main")) == 1


@asynchronous
async def test_a_head_that_is_pushed_during_the_merge_is_not_merged(github: GithubEnvironment):
    head = github.open(1)
    github.github.faults.plan(RepeatsFirstResponse(), "/pulls/1$", times=2)
    async with github.host() as host:
        assert await host.read_pull_request(github.repo, ONE)
        github.push(1)
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)
    assert len(github.origin.subjects("main")) == 1


@asynchronous
async def test_a_pull_request_with_a_changed_base_is_not_merged(github: GithubEnvironment):
    head = github.open(1)
    github.origin.branch("release", base="main")
    github.acme.edit(1, base="release")
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)
    assert github.change().open


@asynchronous
async def test_a_new_head_that_a_user_merged_is_not_the_requested_merge(github: GithubEnvironment):
    head = github.open(1)
    github.push(1)
    github.land(1)
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)


@asynchronous
async def test_a_new_conflict_makes_the_pull_request_be_read_again(github: GithubEnvironment):
    head = github.open(1, files={"a.txt": "mine"})
    github.acme.push_commit("main", {"a.txt": "theirs"})
    async with github.host() as host:
        assert await host.merge(github.repo, a_merge(head)) == NotMerged("Pull Request is not mergeable")


@asynchronous
async def test_a_newly_required_status_makes_the_pull_request_be_read_again(github: GithubEnvironment):
    head = github.open(1)
    github.acme.protections["main"] = BranchProtection(contexts=["unit"])
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head))
        pull_request = await host.read_pull_request(github.repo, ONE)
        assert pull_request
        assert outcome == NotMerged('Required status check "unit" is expected.')
        assert not pull_request.is_mergeable


@asynchronous
async def test_a_base_that_moved_during_the_merge_makes_the_pull_request_be_read_again(github: GithubEnvironment):
    head = github.open(1)
    body = b'{"message": "Base branch was modified. Review and try the merge again."}'
    github.github.faults.plan(RespondsWith(405, body=body), "/merge")
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)


TEMPORARY = [
    (405, "Pull Request is not mergeable"),
    (405, 'Repository rule violations found\n\nRequired status check "unit" is expected.'),
    (405, "Merge already in progress"),
    (409, "Head branch is out of date"),
    (422, "Something unknown"),
]


@pytest.mark.parametrize(("status", "message"), TEMPORARY)
@asynchronous
async def test_a_temporary_refusal_makes_a_mergeable_pull_request_be_read_again(
    github: GithubEnvironment, status: int, message: str
):
    head = github.open(1)
    github.github.faults.plan(RespondsWith(status, body=json.dumps({"message": message}).encode()), "/merge")
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)
        assert isinstance(await host.merge(github.repo, a_merge(head)), Merged)


@asynchronous
async def test_a_repository_that_is_no_longer_visible_is_no_refusal(github: GithubEnvironment):
    head = github.open(1)
    github.github.faults.plan(RespondsWith(404), times=ALWAYS)
    async with github.host() as host:
        with pytest.raises(HostAccessLost, match="is not visible to us"):
            await host.merge(github.repo, a_merge(head))
        with pytest.raises(HostAccessLost, match="is not visible to us"):
            await host.find_merge_commit(github.repo, a_merge(head))


@asynchronous
async def test_a_closed_or_deleted_pull_request_is_not_merged(github: GithubEnvironment):
    head = github.open(1)
    github.close(1)
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)
        github.github.faults.plan(RespondsWith(405), "/merge")
        github.github.faults.plan(RespondsWith(404), "/pulls/1")
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)


HOST_ERRORS = {str(status): RespondsWith(status) for status in (401, 429, 500, 502, 503, 504)} | {
    "wait": RespondsWith(403, {"retry-after": "60"}),
    "abuse": RespondsWith(403, body=b'{"message": "You have triggered an abuse detection mechanism."}'),
    "a limit": RespondsWith(403, body=b'{"message": "You have exceeded a secondary rate limit."}'),
}


@pytest.mark.parametrize("fault", HOST_ERRORS.values(), ids=HOST_ERRORS.keys())
@asynchronous
async def test_a_host_error_is_no_refusal(github: GithubEnvironment, fault: RespondsWith):
    head = github.open(1)
    github.github.faults.plan(fault, "/merge")
    async with github.host() as host:
        with pytest.raises((HostUnavailable, HostAccessLost), match=str(fault.status)) as raised:
            await host.merge(github.repo, a_merge(head))
        assert not isinstance(raised.value, HostRefused)


# Refused


@asynchronous
async def test_a_head_without_the_tip_is_explained_where_a_rule_requires_the_tip(github: GithubEnvironment):
    """Only a setting can help: the next merge makes every other pull request lack the tip."""
    head = github.open(1)
    github.acme.protections["main"] = BranchProtection(contexts=["unit"], strict=True)
    github.acme.report_status(head, "unit", "success")
    github.acme.push_commit("main", {"b.txt": "1"})
    github.acme.unknown_reads_after_move = 0
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head))
        squashed = await host.merge(github.repo, a_merge(head, MergeMethod.SQUASH))
        fallback = await host.merge(github.repo, replace(a_merge(head), is_fallback=True))
    assert isinstance(outcome, MergeForbidden)
    assert isinstance(squashed, MergeForbidden)
    assert "turn off *Require branches to be up to date before merging*" in outcome.detail
    assert all("`landing` to `tested_commit`" in each.detail for each in (outcome, squashed))
    assert isinstance(fallback, MergeForbidden)
    assert fallback.detail.endswith("turn off *Require branches to be up to date before merging*.")


@asynchronous
async def test_a_refusal_is_not_explained_by_a_missing_tip_if_github_names_another_cause(github: GithubEnvironment):
    """Our account can be allowed to bypass the rule."""
    head = github.open(1)
    github.acme.protections["main"] = BranchProtection(contexts=["unit"], strict=True)
    github.acme.report_status(head, "unit", "success")
    github.acme.push_commit("main", {"b.txt": "1"})
    github.acme.unknown_reads_after_move = 0
    body = b'{"message": "Base branch was modified. Review and try the merge again."}'
    github.github.faults.plan(RespondsWith(405, body=body), "/merge")
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)


@asynchronous
async def test_a_stacked_pull_request_is_refused_without_a_call(github: GithubEnvironment):
    """GitHub would merge the pull requests below it too."""
    head = github.open(1)
    github.open(2)
    github.acme.stack(1, 2)
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head))
        assert isinstance(outcome, MergeRefused)
        assert "belongs to a stack" in outcome.detail
        assert not any(call.startswith("PUT") for call in github.github.faults.calls)


@asynchronous
async def test_a_pull_request_that_becomes_stacked_during_the_merge_is_refused(github: GithubEnvironment):
    head = github.open(1)
    body = b'{"message": "Merging stacked PRs via this endpoint is not supported."}'
    github.github.faults.plan(RespondsWith(403, body=body), "/merge")
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), MergeRefused)


@asynchronous
async def test_a_refusal_that_names_a_check_with_the_word_stacked_is_not_about_a_stack(github: GithubEnvironment):
    head = github.open(1)
    body = b'{"message": "Required status check \\"stacked-tests\\" is expected."}'
    github.github.faults.plan(RespondsWith(405, body=body), "/merge")
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head))
        assert isinstance(outcome, NotMerged)
        assert "stacked-tests" in outcome.detail


@asynchronous
async def test_a_stacked_pull_request_that_is_merged_is_merged(github: GithubEnvironment):
    head = github.open(1)
    github.open(2)
    github.acme.stack(1, 2)
    landed = github.land(1)
    async with github.host() as host:
        assert await host.merge(github.repo, a_merge(head)) == Merged(landed)


@pytest.mark.parametrize(("commits", "kind"), [(100, NotMerged), (101, MergeRefused)])
@asynchronous
async def test_a_rebase_of_more_than_a_hundred_commits_is_refused(
    github: GithubEnvironment, commits: int, kind: type[MergeOutcome]
):
    head = github.open(1)
    github.change().commits = commits
    refusal = RespondsWith(405, body=b'{"message": "Pull Request is not mergeable"}')
    github.github.faults.plan(refusal, "/merge", times=2)
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head, MergeMethod.REBASE))
        assert isinstance(outcome, kind)
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)
    if isinstance(outcome, MergeRefused):
        assert "at most 100 commits, and this pull request has 101" in outcome.detail


NOT_AUTHORIZED = RespondsWith(409, body=b'{"message": "You\'re not authorized to push to this branch."}')


@pytest.mark.parametrize(("times", "kind"), [(1, Merged), (2, MergeForbidden)])
@asynchronous
async def test_a_missing_authorization_is_believed_the_second_time(
    github: GithubEnvironment, times: int, kind: type[MergeOutcome]
):
    head, clock = github.open(1), ManualClock()
    github.github.faults.plan(NOT_AUTHORIZED, "/merge", times=times)
    async with github.host(clock) as host:
        asleep = clock.next_sleep()
        merging = asyncio.create_task(host.merge(github.repo, a_merge(head)))
        await asleep
        clock.move_to(later(clock.now(), 2 * SECOND))
        assert isinstance(await merging, kind)


@asynchronous
async def test_a_pull_request_that_cannot_be_rebased_is_refused_with_the_hosts_message(github: GithubEnvironment):
    head = github.open(1)
    github.github.faults.plan(RespondsWith(405, body=b'{"message": "This branch can\'t be rebased"}'), "/merge")
    async with github.host() as host:
        assert await host.merge(github.repo, a_merge(head)) == MergeRefused("This branch can't be rebased")


SETTINGS = [
    "Merge commits are not allowed on this repository.",
    "Repository rule violations found\n\nCannot update this protected ref.",
    "Changes must be made through the merge queue",
    "This branch must not contain merge commits.",
]


@pytest.mark.parametrize("message", SETTINGS)
@asynchronous
async def test_a_setting_that_forbids_every_merge_is_not_the_fault_of_the_pull_request(
    github: GithubEnvironment, message: str
):
    head = github.open(1)
    github.github.faults.plan(RespondsWith(405, body=json.dumps({"message": message}).encode()), "/merge")
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), MergeForbidden)


@asynchronous
async def test_a_merge_method_that_is_not_allowed_is_not_the_fault_of_the_pull_request(github: GithubEnvironment):
    head = github.open(1)
    github.acme.merge_methods.remove("squash")
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head, MergeMethod.SQUASH))
    assert outcome == MergeForbidden("Squash merges are not allowed on this repository.")


@pytest.mark.parametrize("status", [403, 404])
@asynchronous
async def test_a_missing_permission_is_not_the_fault_of_the_pull_request(github: GithubEnvironment, status: int):
    head = github.open(1)
    body = b'{"message": "Resource not accessible by integration"}'
    github.github.faults.plan(RespondsWith(status, body=body), "/merge")
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head))
    assert outcome == MergeForbidden("Resource not accessible by integration")


# Pushes by the queue


@pytest.mark.parametrize("method", MergeMethod)
def test_every_method_is_supported_with_every_landing(github: GithubEnvironment, method: MergeMethod):
    host = github.make_host()
    configs = [Config(merge_method=method, landing=landing) for landing in LandingMethod]
    assert [host.unsupported_reason(config) for config in configs] == [None, None]


@asynchronous
async def test_a_landed_pull_request_counts_as_merged_when_github_shows_it(github: GithubEnvironment):
    head, other = github.open(1), github.open(2)
    async with github.host() as host:
        assert not await host.mark_merged(github.repo, ONE, head, head)
        assert await host.mark_merged(github.repo, ONE, head, github.land(1))
        github.close(2)
        assert not await host.mark_merged(github.repo, TWO, other, other)
    assert all(call.startswith("GET") for call in github.github.faults.calls)
