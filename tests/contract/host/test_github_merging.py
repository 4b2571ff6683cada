"""How pull requests are merged by GitHub, and what comes of it when it does not answer as it should."""

import json

import pytest
from msgspec.structs import replace

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.domain.states import Mergeability
from mergeyard.ports.forge import Merge, Merged, MergeForbidden, MergeRefused, NotMerged
from mergeyard.ports.host import HostRefused, HostTrouble
from tests.contract.host.github_stage import GithubStage
from tests.contract.host.stage import ONE
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import ALWAYS, Answers, LosesReply, Stale
from tests.support.forges.github.facts import Guard


def a_merge(head: Sha, method: MergeMethod = MergeMethod.MERGE_COMMIT) -> Merge:
    return Merge(number=ONE, head=head, base="main", method=method, title="Merge #1", message="Mergeyard-Run: x")


# It is merged


@pytest.mark.parametrize("method", MergeMethod)
@asynchronous
async def test_every_method_puts_one_commit_on_the_target(github: GithubStage, method: MergeMethod):
    head, base = github.open(1), github.origin.tip("main")
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head, method))
        assert outcome == Merged(github.origin.tip("main"))
        assert await host.merged_as(github.repo, a_merge(head)) == github.origin.tip("main")
    parents = [base, head] if method is MergeMethod.MERGE_COMMIT else [base]
    assert github.origin.log("main", "%P")[-1].split(" ") == parents


@asynchronous
async def test_the_words_of_the_commit_are_ours(github: GithubStage):
    head = github.open(1)
    async with github.host() as host:
        await host.merge(github.repo, a_merge(head, MergeMethod.SQUASH))
    assert github.origin.log("main", "%B")[-1].strip() == "Merge #1\n\nMergeyard-Run: x"


@asynchronous
async def test_merging_again_tells_the_same_commit(github: GithubStage):
    head = github.open(1)
    async with github.host() as host:
        once = await host.merge(github.repo, a_merge(head))
        assert await host.merge(github.repo, a_merge(head)) == once
    assert len(github.origin.subjects("main")) == 2


@asynchronous
async def test_a_reply_that_was_lost_is_trouble_and_asking_again_finds_out(github: GithubStage):
    head = github.open(1)
    github.github.faults.plan(LosesReply(), "/merge", method="PUT")
    async with github.host() as host:
        with pytest.raises(HostTrouble, match="does not answer"):
            await host.merge(github.repo, a_merge(head))
        landed = github.origin.tip("main")
        assert await host.merged_as(github.repo, a_merge(head)) == landed
        assert await host.merge(github.repo, a_merge(head)) == Merged(landed)


@asynchronous
async def test_what_is_not_merged_became_nothing(github: GithubStage):
    head = github.open(1)
    async with github.host() as host:
        assert await host.merged_as(github.repo, a_merge(head)) is None
        github.close(1)
        assert await host.merged_as(github.repo, a_merge(head)) is None


@asynchronous
async def test_another_head_or_another_base_that_was_merged_is_not_what_was_asked_for(github: GithubStage):
    head = github.open(1)
    landed = github.land(1)
    async with github.host() as host:
        assert await host.merged_as(github.repo, a_merge(head)) == landed
        assert await host.merged_as(github.repo, a_merge(landed)) is None
        assert await host.merged_as(github.repo, replace(a_merge(head), base="release")) is None


# It is not, for now


@asynchronous
async def test_another_head_is_not_merged(github: GithubStage):
    head = github.open(1)
    github.push(1)
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head))
    assert outcome == NotMerged("Somebody pushed to it.")
    assert len(github.origin.subjects("main")) == 1


@asynchronous
async def test_a_head_that_is_pushed_in_this_very_moment_is_not_merged(github: GithubStage):
    head = github.open(1)
    github.github.faults.plan(Stale(), "/pulls/1$", times=2)
    async with github.host() as host:
        assert await host.pull(github.repo, ONE)
        github.push(1)
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)
    assert len(github.origin.subjects("main")) == 1


@asynchronous
async def test_one_that_was_given_another_base_is_not_merged_there(github: GithubStage):
    head = github.open(1)
    github.origin.branch("release", upon="main")
    github.acme.edits(1, base="release")
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)
    assert github.change().open


@asynchronous
async def test_one_that_was_pushed_to_and_merged_by_hand_is_not_ours(github: GithubStage):
    head = github.open(1)
    github.push(1)
    github.land(1)
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)


@asynchronous
async def test_a_conflict_that_came_up_is_looked_at_again(github: GithubStage):
    head = github.open(1, files={"a.txt": "mine"})
    github.acme.commits("main", {"a.txt": "theirs"})
    async with github.host() as host:
        assert await host.merge(github.repo, a_merge(head)) == NotMerged("Pull Request is not mergeable")


@asynchronous
async def test_a_status_that_is_required_now_is_looked_at_again(github: GithubStage):
    head = github.open(1)
    github.acme.guards["main"] = Guard(contexts=["unit"])
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head))
        pull = await host.pull(github.repo, ONE)
        assert pull
        assert (outcome, pull.mergeability) == (
            NotMerged('Required status check "unit" is expected.'),
            Mergeability.NOT_MERGEABLE,
        )


@asynchronous
async def test_a_base_that_moved_in_this_very_moment_is_looked_at_again(github: GithubStage):
    head = github.open(1)
    body = b'{"message": "Base branch was modified. Review and try the merge again."}'
    github.github.faults.plan(Answers(405, body=body), "/merge")
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)


PASSING = [
    (405, "Pull Request is not mergeable"),
    (405, 'Repository rule violations found\n\nRequired status check "unit" is expected.'),
    (405, "Merge already in progress"),
    (409, "Head branch is out of date"),
    (422, "Something that nobody has heard of"),
]


@pytest.mark.parametrize(("status", "words"), PASSING)
@asynchronous
async def test_what_may_pass_is_looked_at_again_though_its_page_says_that_it_can_be_merged(
    github: GithubStage, status: int, words: str
):
    head = github.open(1)
    github.github.faults.plan(Answers(status, body=json.dumps({"message": words}).encode()), "/merge")
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)
        assert isinstance(await host.merge(github.repo, a_merge(head)), Merged)


@asynchronous
async def test_a_repository_that_we_may_no_longer_see_is_no_verdict(github: GithubStage):
    head = github.open(1)
    github.github.faults.plan(Answers(404), times=ALWAYS)
    async with github.host() as host:
        with pytest.raises(HostTrouble, match="do not see"):
            await host.merge(github.repo, a_merge(head))
        with pytest.raises(HostTrouble, match="do not see"):
            await host.merged_as(github.repo, a_merge(head))


@asynchronous
async def test_one_that_was_closed_or_is_gone_is_not_merged(github: GithubStage):
    head = github.open(1)
    github.close(1)
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)
        github.github.faults.plan(Answers(405), "/merge")
        github.github.faults.plan(Answers(404), "/pulls/1")
        assert isinstance(await host.merge(github.repo, a_merge(head)), NotMerged)


TROUBLE = {str(status): Answers(status) for status in (401, 429, 500, 502, 503, 504)} | {
    "wait": Answers(403, {"retry-after": "60"}),
    "abuse": Answers(403, body=b'{"message": "You have triggered an abuse detection mechanism."}'),
    "a limit": Answers(403, body=b'{"message": "You have exceeded a secondary rate limit."}'),
}


@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE.keys())
@asynchronous
async def test_trouble_of_the_host_is_no_verdict(github: GithubStage, trouble: Answers):
    head = github.open(1)
    github.github.faults.plan(trouble, "/merge")
    async with github.host() as host:
        with pytest.raises(HostTrouble, match=str(trouble.status)) as raised:
            await host.merge(github.repo, a_merge(head))
        assert not isinstance(raised.value, HostRefused)


# It never will be


@asynchronous
async def test_one_that_cannot_be_rebased_is_refused_in_the_hosts_words(github: GithubStage):
    head = github.open(1)
    github.github.faults.plan(Answers(405, body=b'{"message": "This branch can\'t be rebased"}'), "/merge")
    async with github.host() as host:
        assert await host.merge(github.repo, a_merge(head)) == MergeRefused("This branch can't be rebased")


SETTINGS = [
    "Merge commits are not allowed on this repository.",
    "Repository rule violations found\n\nCannot update this protected ref.",
    "Changes must be made through the merge queue",
    "This branch must not contain merge commits.",
    "You're not authorized to push to this branch.",
]


@pytest.mark.parametrize("words", SETTINGS)
@asynchronous
async def test_a_setting_that_lets_nobody_in_is_nobodys_fault(github: GithubStage, words: str):
    head = github.open(1)
    github.github.faults.plan(Answers(405, body=json.dumps({"message": words}).encode()), "/merge")
    async with github.host() as host:
        assert isinstance(await host.merge(github.repo, a_merge(head)), MergeForbidden)


@asynchronous
async def test_a_method_that_the_repository_does_not_allow_is_nobodys_fault(github: GithubStage):
    head = github.open(1)
    github.acme.methods.remove("squash")
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head, MergeMethod.SQUASH))
    assert outcome == MergeForbidden("Squash merges are not allowed on this repository.")


@pytest.mark.parametrize("status", [403, 404])
@asynchronous
async def test_a_right_that_is_missing_is_nobodys_fault(github: GithubStage, status: int):
    head = github.open(1)
    body = b'{"message": "Resource not accessible by integration"}'
    github.github.faults.plan(Answers(status, body=body), "/merge")
    async with github.host() as host:
        outcome = await host.merge(github.repo, a_merge(head))
    assert outcome == MergeForbidden("Resource not accessible by integration")


# What we push ourselves


def test_only_merge_commits_are_pushed_by_us_others_are_merged_by_github(github: GithubStage):
    host = github.made_host()
    tested, provider = LandingMethod.TESTED_COMMIT, LandingMethod.PROVIDER_MERGE
    assert [method for method in MergeMethod if host.refuses(method, tested) is None] == [MergeMethod.MERGE_COMMIT]
    assert "provider_merge" in (host.refuses(MergeMethod.SQUASH, tested) or "")
    assert not any(host.refuses(method, provider) for method in MergeMethod)


@asynchronous
async def test_github_marks_by_itself_and_nobody_waits_for_it(github: GithubStage):
    head = github.open(1)
    async with github.host() as host:
        await host.mark_merged(github.repo, ONE, head, github.land(1))
    assert github.github.faults.calls == []
