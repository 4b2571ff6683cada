"""When something goes wrong between a Gitea and us: nothing is done twice, nothing is taken for what it is not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeyard.adapters.forges.gitea.doubts import PATIENCE
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.instants import Instant
from mergeyard.domain.states import Mergeability
from mergeyard.ports.forge import Merge, Merged, NotMerged
from mergeyard.ports.host import HostTrouble
from tests.contract.host.gitea_stage import SECRET, GiteaStage, staged
from tests.contract.host.stage import ONE
from tests.support.asynchronous import asynchronous
from tests.support.clock import HandClock
from tests.support.forges.faults import Answers, LosesReply
from tests.support.forges.gitea.fake import FakeGitea
from tests.support.forges.gitea.nouns import Blocker
from tests.support.meanwhile import Meanwhile
from tests.support.patience import eventually


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeGitea]:
    with FakeGitea(tmp_path) as fake:
        yield fake


@pytest.fixture
def gitea(fake: FakeGitea, tmp_path: Path) -> Iterator[GiteaStage]:
    with staged(fake, tmp_path) as stage:
        yield stage


@asynchronous
async def test_a_merge_whose_answer_was_lost_is_found_and_not_made_again(fake: FakeGitea, gitea: GiteaStage):
    merge = Merge(number=ONE, head=gitea.open(1), base="main", method=MergeMethod.SQUASH, title="Merge #1", message="")
    fake.faults.plan(LosesReply(), "/merge$", method="POST")
    async with gitea.host() as host:
        with pytest.raises(HostTrouble):
            await host.merge(gitea.repo, merge)
        assert await host.merge(gitea.repo, merge) == Merged(gitea.project.fetch("main"))
    assert len(gitea.project.origin.log("main", "%s")) == 3


@asynchronous
async def test_a_mark_whose_answer_was_lost_is_set_once(fake: FakeGitea, gitea: GiteaStage):
    head, landed = gitea.open(1), gitea.land(1)
    fake.faults.plan(LosesReply(), "/merge$", method="POST")
    async with gitea.host() as host:
        with pytest.raises(HostTrouble):
            await host.mark_merged(gitea.repo, ONE, head, landed)
        await host.mark_merged(gitea.repo, ONE, head, landed)
    assert gitea.project.pull(1)["merge_commit_sha"] == landed


@asynchronous
async def test_a_comment_whose_answer_was_lost_is_not_made_again(fake: FakeGitea, gitea: GiteaStage):
    gitea.open(1)
    fake.faults.plan(LosesReply(), "/comments", method="POST")
    async with gitea.host() as host:
        with pytest.raises(HostTrouble):
            await host.say(gitea.repo, ONE, "<!-- mergeyard -->\nwaiting", None)
        await host.say(gitea.repo, ONE, "<!-- mergeyard -->\ntesting", None)
    assert gitea.project.comments(1) == ["<!-- mergeyard -->\ntesting"]


@pytest.mark.parametrize("status", [401, 429, 500, 503])
@asynchronous
async def test_passing_trouble_is_never_taken_for_an_answer(fake: FakeGitea, gitea: GiteaStage, status: int):
    head = gitea.open(1)
    fake.faults.plan(Answers(status), "/repos", times=6)
    async with gitea.host() as host:
        for ask in (
            host.pull(gitea.repo, ONE),
            host.knows(gitea.repo),
            host.required_statuses(gitea.repo, "main"),
            host.statuses(gitea.repo, head, "main"),
            host.thread(gitea.repo, ONE, Instant(0)),
            host.may_write(gitea.repo, "ada", "main"),
        ):
            with pytest.raises(HostTrouble):
                await ask


@asynchronous
async def test_what_is_still_being_checked_is_not_merged_and_not_refused(fake: FakeGitea, gitea: GiteaStage):
    merge = Merge(number=ONE, head=gitea.open(1), base="main", method=MergeMethod.REBASE, title="", message="")
    fake.pull("acme/app", 1).checking = True
    async with gitea.host() as host:
        assert isinstance(await host.merge(gitea.repo, merge), NotMerged)
        fake.pull("acme/app", 1).checking = False
        assert isinstance(await host.merge(gitea.repo, merge), Merged)


@asynchronous
async def test_trouble_with_a_merge_stays_trouble_though_something_it_depended_on_is_closed(
    fake: FakeGitea, gitea: GiteaStage
):
    merge = Merge(number=ONE, head=gitea.open(1), base="main", method=MergeMethod.SQUASH, title="Merge #1", message="")
    gitea.open(2)
    gitea.project.ask("POST", "/issues/1/dependencies", {"owner": "acme", "repo": "app", "index": 2})
    gitea.close(2)
    fake.faults.plan(Answers(500), "/merge$", method="POST")
    async with gitea.host() as host:
        with pytest.raises(HostTrouble, match="500"):
            await host.merge(gitea.repo, merge)
        assert isinstance(await host.merge(gitea.repo, merge), Merged)


@asynchronous
async def test_a_merge_whose_answer_was_lost_is_not_refused_for_what_was_opened_since(
    fake: FakeGitea, gitea: GiteaStage
):
    merge = Merge(number=ONE, head=gitea.open(1), base="main", method=MergeMethod.SQUASH, title="Merge #1", message="")
    gitea.open(2)
    depends = Blocker(fake.world.repository("acme", "app"), fake.pull("acme/app", 2))
    late = Meanwhile(lambda: fake.pull("acme/app", 1).blockers.append(depends))
    fake.faults.plan(LosesReply(), "/merge$", method="POST")
    fake.faults.plan(late, "/dependencies$")
    async with gitea.host() as host:
        assert isinstance(await host.merge(gitea.repo, merge), Merged)


@asynchronous
async def test_what_is_checked_for_long_is_left_to_git_unless_reviews_are_missing(fake: FakeGitea, gitea: GiteaStage):
    gitea.open(1)
    fake.pull("acme/app", 1).checking = True
    clock = HandClock()
    async with gitea.host(clock) as host:
        assert await gitea.mergeability(host, ONE) is Mergeability.CHECKING
        clock.move_to(Instant(clock.now() + PATIENCE))
        assert await gitea.mergeability(host, ONE) is Mergeability.UNKNOWN
        gitea.project.protect("main", required_approvals=1)
        assert await gitea.mergeability(host, ONE) is Mergeability.NOT_MERGEABLE


@asynchronous
async def test_with_all_webhooks_lost_everything_is_still_among_the_refs(fake: FakeGitea, gitea: GiteaStage):
    gitea.project.send_news_to("http://127.0.0.1:9", SECRET, "push", "pull_request", "pull_request_sync")
    fake.deliveries.losing = True
    gitea.open(1)
    async with gitea.host() as host:
        before = await host.refs(gitea.repo, ["main"])
        pushed = gitea.push(1)
        landed = gitea.project.commit("main", {"m.txt": "1"})
        after = await host.refs(gitea.repo, ["main"])
    assert {ref for ref, _ in after.items() - before.items()} >= {"refs/pull/1/head", "refs/heads/main"}
    assert (after["refs/pull/1/head"], after["refs/heads/main"]) == (pushed, landed)
    eventually(lambda: all(each.status is None for each in fake.deliveries.log))
