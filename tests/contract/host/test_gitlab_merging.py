"""How GitLab merges by itself, when it will not, and how it sees what we merged."""

from collections.abc import Callable

import pytest

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.ports.forge import Merge, Merged, MergeForbidden, MergeRefused, NotMerged
from mergeyard.ports.host import HostTrouble
from tests.contract.host.gitlab_stage import GitlabStage
from tests.contract.host.stage import ONE
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import Answers, LosesReply, Stale
from tests.support.forges.gitlab.nouns import DEVELOPER
from tests.support.forges.gitlab.world import OURS

Happening = Callable[[GitlabStage], None]


def order(head: Sha, method: MergeMethod = MergeMethod.MERGE_COMMIT, base: str = "main") -> Merge:
    return Merge(number=ONE, head=head, base=base, method=method, title="Merge it", message="Mergeyard-Run: 7")


@asynchronous
async def test_it_merges_this_very_head_with_our_words(gitlab: GitlabStage):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        outcome = await host.merge(gitlab.repo, order(head))
        assert outcome == Merged(gitlab.origin.tip("main"))
        assert await host.merged_as(gitlab.repo, order(head)) == gitlab.origin.tip("main")
    assert gitlab.origin.files("main") == {"a.txt": "1", "1.txt": "1"}
    assert gitlab.origin.log("main", "%B")[-1].strip() == "Merge it\n\nMergeyard-Run: 7"
    assert gitlab.origin.log("main", "%P")[-1].split()[1] == head


@pytest.mark.parametrize("merge_method", ["merge", "ff"])
@asynchronous
async def test_a_squash_is_one_commit_that_takes_the_place_of_all(gitlab: GitlabStage, merge_method: str):
    gitlab.open(1)
    head = gitlab.push(1)
    gitlab.project.merge_method = merge_method
    async with gitlab.host() as host:
        outcome = await host.merge(gitlab.repo, order(head, MergeMethod.SQUASH))
    assert outcome == Merged(gitlab.origin.tip("main"))
    history = gitlab.origin.run("rev-list", "main").decode().split()
    assert head not in history
    assert gitlab.origin.files("main") == gitlab.origin.files("topic-1")
    assert gitlab.origin.subjects("main")[-1] == "Merge it"


@asynchronous
async def test_asking_twice_merges_once(gitlab: GitlabStage):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        first = await host.merge(gitlab.repo, order(head))
        tip = gitlab.origin.tip("main")
        assert await host.merge(gitlab.repo, order(head)) == first
    assert gitlab.origin.tip("main") == tip


@asynchronous
async def test_when_the_answer_was_lost_asking_again_finds_the_merge(gitlab: GitlabStage):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(LosesReply(), "/merge$", method="PUT")
        with pytest.raises(HostTrouble):
            await host.merge(gitlab.repo, order(head))
        tip = gitlab.origin.tip("main")
        assert await host.merge(gitlab.repo, order(head)) == Merged(tip)
    assert gitlab.origin.tip("main") == tip


@asynchronous
async def test_a_head_that_was_pushed_since_is_not_merged(gitlab: GitlabStage):
    head = gitlab.open(1)
    tip = gitlab.origin.tip("main")
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(Stale(), "/merge_requests/1$", times=1)
        await host.pull(gitlab.repo, ONE)
        gitlab.push(1)
        assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)
    assert gitlab.origin.tip("main") == tip


@asynchronous
async def test_a_push_that_we_could_not_yet_see_is_found_out_by_gitlab(gitlab: GitlabStage):
    head = gitlab.open(1)
    tip = gitlab.origin.tip("main")
    async with gitlab.host() as host:
        stale = Stale()
        gitlab.gitlab.faults.plan(stale, "/merge_requests/1$", method="GET", times=2)
        await host.pull(gitlab.repo, ONE)
        gitlab.push(1)
        assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)
    assert gitlab.origin.tip("main") == tip


@asynchronous
async def test_what_somebody_merged_with_another_head_was_not_ours_to_merge(gitlab: GitlabStage):
    head = gitlab.open(1)
    gitlab.push(1)
    gitlab.land(1)
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)
        assert await host.merged_as(gitlab.repo, order(head)) is None


def retarget(gitlab: GitlabStage) -> None:
    gitlab.origin.branch("production", upon="main")
    gitlab.acts.change(gitlab.project, gitlab.request(), gitlab.world.person("ada"), target_branch="production")


@asynchronous
async def test_it_merges_only_into_the_branch_that_was_meant(gitlab: GitlabStage):
    head, tip = gitlab.open(1), gitlab.origin.tip("main")
    async with gitlab.host() as host:
        await host.pull(gitlab.repo, ONE)
        retarget(gitlab)
        assert await host.merge(gitlab.repo, order(head)) == NotMerged("Its base is production now.")
    assert gitlab.request().state == "opened"
    assert (gitlab.origin.tip("main"), gitlab.origin.tip("production")) == (tip, tip)


@asynchronous
async def test_what_was_merged_into_another_branch_was_not_ours_to_merge(gitlab: GitlabStage):
    head = gitlab.open(1)
    retarget(gitlab)
    landed = gitlab.land(1)
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)
        assert await host.merged_as(gitlab.repo, order(head)) is None
        assert await host.merged_as(gitlab.repo, order(head, base="production")) == landed


@asynchronous
async def test_what_is_open_was_merged_as_nothing(gitlab: GitlabStage):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        assert await host.merged_as(gitlab.repo, order(head)) is None


@asynchronous
async def test_a_project_that_we_cannot_see_does_not_pass_for_one_that_lacks_the_merge_request(gitlab: GitlabStage):
    head = gitlab.open(1)
    gitlab.project.members.pop(OURS)
    async with gitlab.host() as host:
        with pytest.raises(HostTrouble, match="no longer for us"):
            await host.merge(gitlab.repo, order(head))
        with pytest.raises(HostTrouble, match="no longer for us"):
            await host.merged_as(gitlab.repo, order(head))


def conflict(gitlab: GitlabStage) -> None:
    gitlab.acts.commit(gitlab.project, "main", {"1.txt": "something else"})


def make_a_draft(gitlab: GitlabStage) -> None:
    gitlab.request().title = "Draft: not yet"


def close(gitlab: GitlabStage) -> None:
    gitlab.close(1)


def disapprove(gitlab: GitlabStage) -> None:
    gitlab.request().approved = False


@pytest.mark.parametrize("happen", [conflict, make_a_draft, close, disapprove])
@asynchronous
async def test_what_changed_since_we_looked_must_be_looked_at_again(gitlab: GitlabStage, happen: Happening):
    head = gitlab.open(1)
    happen(gitlab)
    tip = gitlab.origin.tip("main")
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)
    assert gitlab.origin.tip("main") == tip


@asynchronous
async def test_one_that_is_gone_is_not_merged(gitlab: GitlabStage):
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(gitlab.origin.tip("main"))), NotMerged)
        assert await host.merged_as(gitlab.repo, order(gitlab.origin.tip("main"))) is None


def only_fast_forward(gitlab: GitlabStage) -> None:
    gitlab.project.merge_method = "ff"


def always_squash(gitlab: GitlabStage) -> None:
    gitlab.project.squash_option = "always"


def never_squash(gitlab: GitlabStage) -> None:
    gitlab.project.squash_option = "never"


def demote_us(gitlab: GitlabStage) -> None:
    gitlab.project.members[OURS] = DEVELOPER


def be_behind_a_setting_that_counts_no_more(gitlab: GitlabStage) -> None:
    gitlab.land(1)
    only_fast_forward(gitlab)
    demote_us(gitlab)


@asynchronous
async def test_what_is_merged_is_merged_whatever_was_set_since(gitlab: GitlabStage):
    head = gitlab.open(1)
    be_behind_a_setting_that_counts_no_more(gitlab)
    async with gitlab.host() as host:
        assert await host.merge(gitlab.repo, order(head)) == Merged(gitlab.origin.tip("main"))


def want_a_pipeline(gitlab: GitlabStage) -> None:
    gitlab.project.pipelines_must_succeed = True


def fall_behind(gitlab: GitlabStage) -> None:
    gitlab.project.merge_method = "rebase_merge"
    gitlab.acts.commit(gitlab.project, "main", {"b.txt": "1"})


def have_a_hook_that_refuses(gitlab: GitlabStage) -> None:
    gitlab.request().merge_error = "Something went wrong during merge pre-receive hook. Ask Ada"


def forbid_us_everything(gitlab: GitlabStage) -> None:
    gitlab.gitlab.faults.plan(Answers(403, body=b'{"message": "403 Forbidden"}'), "/merge$", method="PUT")


@pytest.mark.parametrize(
    ("happen", "method", "words"),
    [
        (only_fast_forward, MergeMethod.MERGE_COMMIT, "fast-forward only"),
        (always_squash, MergeMethod.MERGE_COMMIT, "set mergeMethod to squash"),
        (never_squash, MergeMethod.SQUASH, "set mergeMethod to merge_commit"),
        (never_squash, MergeMethod.REBASE, "cannot rebase"),
        (demote_us, MergeMethod.MERGE_COMMIT, "Protected branches"),
        (fall_behind, MergeMethod.MERGE_COMMIT, "choose the merge method with plain merge commits"),
        (have_a_hook_that_refuses, MergeMethod.MERGE_COMMIT, "Ask Ada"),
        (forbid_us_everything, MergeMethod.MERGE_COMMIT, "403 Forbidden"),
    ],
)
@asynchronous
async def test_what_we_may_not_do_here_is_nobodys_fault_and_told_in_words(
    gitlab: GitlabStage, happen: Happening, method: MergeMethod, words: str
):
    head = gitlab.open(1)
    happen(gitlab)
    tip = gitlab.origin.tip("main")
    async with gitlab.host() as host:
        outcome = await host.merge(gitlab.repo, order(head, method))
    assert isinstance(outcome, MergeForbidden)
    assert words in outcome.words
    assert gitlab.origin.tip("main") == tip


def fail_the_pipeline(gitlab: GitlabStage) -> None:
    want_a_pipeline(gitlab)
    gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1", status="failed")


@pytest.mark.parametrize("happen", [want_a_pipeline, fail_the_pipeline])
@asynchronous
async def test_a_head_without_a_pipeline_that_passed_is_refused_where_the_project_wants_one(
    gitlab: GitlabStage, happen: Happening
):
    head = gitlab.open(1)
    happen(gitlab)
    async with gitlab.host() as host:
        outcome = await host.merge(gitlab.repo, order(head))
    assert isinstance(outcome, MergeRefused)
    assert "Pipelines must succeed" in outcome.words


def run_a_pipeline(gitlab: GitlabStage) -> None:
    want_a_pipeline(gitlab)
    gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1", status="running")


def have_a_hook_that_is_late(gitlab: GitlabStage) -> None:
    words = "Something went wrong during merge pre-receive hook. 500 Internal Server Error. Try again."
    gitlab.request().merge_error = words


def stumble(gitlab: GitlabStage) -> None:
    gitlab.request().merge_error = "An error occurred while merging"


def conflict_after_a_hook_refused(gitlab: GitlabStage) -> None:
    have_a_hook_that_refuses(gitlab)
    conflict(gitlab)


def answer_405(gitlab: GitlabStage) -> None:
    gitlab.gitlab.faults.plan(Answers(405), "/merge$", method="PUT")


def answer_409(gitlab: GitlabStage) -> None:
    gitlab.gitlab.faults.plan(Answers(409), "/merge$", method="PUT")


def answer_422(gitlab: GitlabStage) -> None:
    gitlab.gitlab.faults.plan(Answers(422), "/merge$", method="PUT")


@pytest.mark.parametrize(
    "happen",
    [
        run_a_pipeline,
        have_a_hook_that_is_late,
        stumble,
        conflict_after_a_hook_refused,
        answer_405,
        answer_409,
        answer_422,
    ],
)
@asynchronous
async def test_what_may_pass_is_no_refusal(gitlab: GitlabStage, happen: Happening):
    head = gitlab.open(1)
    happen(gitlab)
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)


@asynchronous
async def test_while_gitlab_is_still_thinking_it_is_tried_again_later(gitlab: GitlabStage):
    head = gitlab.open(1)
    gitlab.request().undecided = "checking"
    async with gitlab.host() as host:
        with pytest.raises(HostTrouble, match="yet"):
            await host.merge(gitlab.repo, order(head))
        gitlab.request().undecided = None
        assert isinstance(await host.merge(gitlab.repo, order(head)), Merged)


@pytest.mark.parametrize("said", [StatusState.PENDING, StatusState.FAILURE])
@asynchronous
async def test_our_own_word_does_not_stand_in_the_way_of_our_own_merge(gitlab: GitlabStage, said: StatusState):
    head = gitlab.open(1)
    gitlab.project.pipelines_must_succeed = True
    gitlab.acts.job(gitlab.project, gitlab.acts.pipeline(gitlab.project, head, "topic-1"), "unit", "success")
    async with gitlab.host() as host:
        await host.show_status(gitlab.repo, head, Status(context="mergeyard", state=said, at=Instant(0)))
        with pytest.raises(HostTrouble, match="yet"):
            await host.merge(gitlab.repo, order(head))
        assert isinstance(await host.merge(gitlab.repo, order(head)), Merged)


# What we pushed ourselves


@asynchronous
async def test_gitlab_is_not_waited_for_where_it_marks_by_itself(gitlab: GitlabStage):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        await host.mark_merged(gitlab.repo, ONE, head, head)
    assert gitlab.gitlab.faults.calls == []


@asynchronous
async def test_with_the_last_of_the_budget_it_lands_and_nothing_else(gitlab: GitlabStage):
    head = gitlab.open(1)
    low = {"ratelimit-limit": "600", "ratelimit-remaining": "10", "ratelimit-reset": "99999999999"}
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(Answers(404, low), "/repository/branches/gone$")
        with pytest.raises(HostTrouble, match="for landings"):
            await host.refs(gitlab.repo, ["gone"])
        for reading in (host.statuses(gitlab.repo, head, "main"), host.thread(gitlab.repo, ONE, Instant(0))):
            with pytest.raises(HostTrouble, match="for landings"):
                await reading
        assert isinstance(await host.merge(gitlab.repo, order(head)), Merged)


@asynchronous
async def test_ways_to_land_that_gitlab_would_not_show_as_merged_are_refused_beforehand(gitlab: GitlabStage):
    async with gitlab.host() as host:
        fine = [
            (method, landing)
            for method in MergeMethod
            for landing in LandingMethod
            if host.refuses(method, landing) is None
        ]
        assert fine == [
            (MergeMethod.MERGE_COMMIT, LandingMethod.TESTED_COMMIT),
            (MergeMethod.MERGE_COMMIT, LandingMethod.PROVIDER_MERGE),
            (MergeMethod.SQUASH, LandingMethod.PROVIDER_MERGE),
        ]
        assert "provider_merge" in str(host.refuses(MergeMethod.SQUASH, LandingMethod.TESTED_COMMIT))
