"""How GitHub merges pull requests, and what happens if it responds unexpectedly."""

import json

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.domain.states import Mergeability
from mergeyard.ports.forge import HostRefused, HostUnavailable, Merge, Merged, MergeForbidden, MergeRefused, NotMerged
from tests.contract.host.environment import ONE
from tests.contract.host.github_environment import GithubEnvironment
from tests.support.asynchronous import asynchronous
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
        assert (outcome, pull_request.mergeability) == (
            NotMerged('Required status check "unit" is expected.'),
            Mergeability.NOT_MERGEABLE,
        )


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
        with pytest.raises(HostUnavailable, match="is not visible to us"):
            await host.merge(github.repo, a_merge(head))
        with pytest.raises(HostUnavailable, match="is not visible to us"):
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
        with pytest.raises(HostUnavailable, match=str(fault.status)) as raised:
            await host.merge(github.repo, a_merge(head))
        assert not isinstance(raised.value, HostRefused)


# Refused


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
    "You're not authorized to push to this branch.",
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


def test_only_merge_commits_are_pushed_and_github_merges_the_other_methods(github: GithubEnvironment):
    host = github.make_host()
    tested, provider = LandingMethod.TESTED_COMMIT, LandingMethod.PROVIDER_MERGE
    assert [method for method in MergeMethod if host.unsupported_reason(method, tested) is None] == [
        MergeMethod.MERGE_COMMIT
    ]
    assert "provider_merge" in (host.unsupported_reason(MergeMethod.SQUASH, tested) or "")
    assert not any(host.unsupported_reason(method, provider) for method in MergeMethod)


@asynchronous
async def test_github_marks_pull_requests_as_merged_by_itself(github: GithubEnvironment):
    head = github.open(1)
    async with github.host() as host:
        await host.mark_merged(github.repo, ONE, head, github.land(1))
    assert github.github.faults.calls == []
