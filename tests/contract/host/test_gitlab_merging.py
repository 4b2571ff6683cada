"""How GitLab merges, when it refuses, and how it detects what the queue merged."""

from collections.abc import Callable

import pytest

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import HostUnavailable, Merge, Merged, MergeForbidden, MergeRefused, NotMerged
from tests.contract.host.environment import ONE
from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import LosesResponse, RepeatsFirstResponse, RespondsWith
from tests.support.forges.gitlab.world import BOT, DEVELOPER

Happening = Callable[[GitlabEnvironment], None]


def order(head: Sha, method: MergeMethod = MergeMethod.MERGE_COMMIT, base: str = "main") -> Merge:
    return Merge(number=ONE, head=head, base_branch=base, method=method, title="Merge it", message="Mergeyard-Run: 7")


@asynchronous
async def test_the_given_head_is_merged_with_our_message(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        outcome = await host.merge(gitlab.repo, order(head))
        assert outcome == Merged(gitlab.origin.tip("main"))
        assert await host.find_merge_commit(gitlab.repo, order(head)) == gitlab.origin.tip("main")
    assert gitlab.origin.files("main") == {"a.txt": "1", "1.txt": "1"}
    assert gitlab.origin.log("main", "%B")[-1].strip() == "Merge it\n\nMergeyard-Run: 7"
    assert gitlab.origin.log("main", "%P")[-1].split()[1] == head


@pytest.mark.parametrize("merge_method", ["merge", "ff"])
@asynchronous
async def test_a_squash_replaces_all_commits_with_one(gitlab: GitlabEnvironment, merge_method: str):
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
async def test_asking_twice_merges_once(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        first = await host.merge(gitlab.repo, order(head))
        tip = gitlab.origin.tip("main")
        assert await host.merge(gitlab.repo, order(head)) == first
    assert gitlab.origin.tip("main") == tip


@asynchronous
async def test_after_a_lost_response_the_next_call_finds_the_merge(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(LosesResponse(), "/merge$", method="PUT")
        with pytest.raises(HostUnavailable):
            await host.merge(gitlab.repo, order(head))
        tip = gitlab.origin.tip("main")
        assert await host.merge(gitlab.repo, order(head)) == Merged(tip)
    assert gitlab.origin.tip("main") == tip


@asynchronous
async def test_a_head_that_was_pushed_since_is_not_merged(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    tip = gitlab.origin.tip("main")
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(RepeatsFirstResponse(), "/merge_requests/1$", times=1)
        await host.read_pull_request(gitlab.repo, ONE)
        gitlab.push(1)
        assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)
    assert gitlab.origin.tip("main") == tip


@asynchronous
async def test_gitlab_refuses_a_head_that_changed_after_our_read(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    tip = gitlab.origin.tip("main")
    async with gitlab.host() as host:
        stale = RepeatsFirstResponse()
        gitlab.gitlab.faults.plan(stale, "/merge_requests/1$", method="GET", times=2)
        await host.read_pull_request(gitlab.repo, ONE)
        gitlab.push(1)
        assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)
    assert gitlab.origin.tip("main") == tip


@asynchronous
async def test_a_merge_of_another_head_by_a_user_is_not_the_requested_one(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    gitlab.push(1)
    gitlab.land(1)
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)
        assert await host.find_merge_commit(gitlab.repo, order(head)) is None


def retarget(gitlab: GitlabEnvironment) -> None:
    gitlab.origin.branch("production", base="main")
    gitlab.acts.update(gitlab.project, gitlab.request(), gitlab.world.user("ada"), target_branch="production")


@asynchronous
async def test_a_merge_request_is_merged_only_into_the_given_branch(gitlab: GitlabEnvironment):
    head, tip = gitlab.open(1), gitlab.origin.tip("main")
    async with gitlab.host() as host:
        await host.read_pull_request(gitlab.repo, ONE)
        retarget(gitlab)
        assert await host.merge(gitlab.repo, order(head)) == NotMerged(
            "The target branch of the merge request is now production."
        )
    assert gitlab.request().state == "opened"
    assert (gitlab.origin.tip("main"), gitlab.origin.tip("production")) == (tip, tip)


@asynchronous
async def test_a_merge_into_another_branch_is_not_the_requested_one(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    retarget(gitlab)
    landed = gitlab.land(1)
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)
        assert await host.find_merge_commit(gitlab.repo, order(head)) is None
        assert await host.find_merge_commit(gitlab.repo, order(head, base="production")) == landed


@asynchronous
async def test_an_open_merge_request_has_no_merge_commit(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        assert await host.find_merge_commit(gitlab.repo, order(head)) is None


@asynchronous
async def test_an_invisible_project_is_not_taken_for_a_missing_merge_request(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    gitlab.project.members.pop(BOT)
    async with gitlab.host() as host:
        with pytest.raises(HostUnavailable, match="is not visible to us"):
            await host.merge(gitlab.repo, order(head))
        with pytest.raises(HostUnavailable, match="is not visible to us"):
            await host.find_merge_commit(gitlab.repo, order(head))


def conflict(gitlab: GitlabEnvironment) -> None:
    gitlab.acts.commit(gitlab.project, "main", {"1.txt": "something else"})


def make_a_draft(gitlab: GitlabEnvironment) -> None:
    gitlab.request().title = "Draft: not yet"


def close(gitlab: GitlabEnvironment) -> None:
    gitlab.close(1)


def disapprove(gitlab: GitlabEnvironment) -> None:
    gitlab.request().approved = False


@pytest.mark.parametrize("happen", [conflict, make_a_draft, close, disapprove])
@asynchronous
async def test_a_change_since_the_last_read_makes_the_merge_request_be_read_again(
    gitlab: GitlabEnvironment, happen: Happening
):
    head = gitlab.open(1)
    happen(gitlab)
    tip = gitlab.origin.tip("main")
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)
    assert gitlab.origin.tip("main") == tip


@asynchronous
async def test_a_deleted_merge_request_is_not_merged(gitlab: GitlabEnvironment):
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(gitlab.origin.tip("main"))), NotMerged)
        assert await host.find_merge_commit(gitlab.repo, order(gitlab.origin.tip("main"))) is None


def only_fast_forward(gitlab: GitlabEnvironment) -> None:
    gitlab.project.merge_method = "ff"


def always_squash(gitlab: GitlabEnvironment) -> None:
    gitlab.project.squash_option = "always"


def never_squash(gitlab: GitlabEnvironment) -> None:
    gitlab.project.squash_option = "never"


def demote_us(gitlab: GitlabEnvironment) -> None:
    gitlab.project.members[BOT] = DEVELOPER


def merge_and_then_change_settings(gitlab: GitlabEnvironment) -> None:
    gitlab.land(1)
    only_fast_forward(gitlab)
    demote_us(gitlab)


@asynchronous
async def test_an_already_merged_request_is_reported_as_merged_whatever_the_settings_are(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    merge_and_then_change_settings(gitlab)
    async with gitlab.host() as host:
        assert await host.merge(gitlab.repo, order(head)) == Merged(gitlab.origin.tip("main"))


def want_a_pipeline(gitlab: GitlabEnvironment) -> None:
    gitlab.project.pipelines_must_succeed = True


def fall_behind(gitlab: GitlabEnvironment) -> None:
    gitlab.project.merge_method = "rebase_merge"
    gitlab.acts.commit(gitlab.project, "main", {"b.txt": "1"})


def have_a_hook_that_refuses(gitlab: GitlabEnvironment) -> None:
    gitlab.request().merge_error = "Something went wrong during merge pre-receive hook. Ask Ada"


def forbid_us_everything(gitlab: GitlabEnvironment) -> None:
    gitlab.gitlab.faults.plan(RespondsWith(403, body=b'{"message": "403 Forbidden"}'), "/merge$", method="PUT")


@pytest.mark.parametrize(
    ("happen", "method", "message"),
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
async def test_a_forbidden_merge_is_not_the_fault_of_the_merge_request_and_has_a_message(
    gitlab: GitlabEnvironment, happen: Happening, method: MergeMethod, message: str
):
    head = gitlab.open(1)
    happen(gitlab)
    tip = gitlab.origin.tip("main")
    async with gitlab.host() as host:
        outcome = await host.merge(gitlab.repo, order(head, method))
    assert isinstance(outcome, MergeForbidden)
    assert message in outcome.detail
    assert gitlab.origin.tip("main") == tip


def fail_the_pipeline(gitlab: GitlabEnvironment) -> None:
    want_a_pipeline(gitlab)
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1", status="failed")


@pytest.mark.parametrize("happen", [want_a_pipeline, fail_the_pipeline])
@asynchronous
async def test_a_head_without_a_pipeline_that_passed_is_refused_where_the_project_wants_one(
    gitlab: GitlabEnvironment, happen: Happening
):
    head = gitlab.open(1)
    happen(gitlab)
    async with gitlab.host() as host:
        outcome = await host.merge(gitlab.repo, order(head))
    assert isinstance(outcome, MergeRefused)
    assert "Pipelines must succeed" in outcome.detail


def run_a_pipeline(gitlab: GitlabEnvironment) -> None:
    want_a_pipeline(gitlab)
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1", status="running")


def have_a_hook_that_is_late(gitlab: GitlabEnvironment) -> None:
    message = "Something went wrong during merge pre-receive hook. 500 Internal Server Error. Try again."
    gitlab.request().merge_error = message


def stumble(gitlab: GitlabEnvironment) -> None:
    gitlab.request().merge_error = "An error occurred while merging"


def conflict_after_a_hook_refused(gitlab: GitlabEnvironment) -> None:
    have_a_hook_that_refuses(gitlab)
    conflict(gitlab)


def answer_405(gitlab: GitlabEnvironment) -> None:
    gitlab.gitlab.faults.plan(RespondsWith(405), "/merge$", method="PUT")


def answer_409(gitlab: GitlabEnvironment) -> None:
    gitlab.gitlab.faults.plan(RespondsWith(409), "/merge$", method="PUT")


def answer_422(gitlab: GitlabEnvironment) -> None:
    gitlab.gitlab.faults.plan(RespondsWith(422), "/merge$", method="PUT")


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
async def test_a_temporary_failure_is_no_refusal(gitlab: GitlabEnvironment, happen: Happening):
    head = gitlab.open(1)
    happen(gitlab)
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)


@asynchronous
async def test_a_merge_is_retried_later_while_gitlab_checks_mergeability(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    gitlab.request().undecided = "checking"
    async with gitlab.host() as host:
        with pytest.raises(HostUnavailable, match="yet"):
            await host.merge(gitlab.repo, order(head))
        gitlab.request().undecided = None
        assert isinstance(await host.merge(gitlab.repo, order(head)), Merged)


@pytest.mark.parametrize("state", [StatusState.PENDING, StatusState.FAILURE])
@asynchronous
async def test_our_own_status_does_not_block_our_own_merge(gitlab: GitlabEnvironment, state: StatusState):
    head = gitlab.open(1)
    gitlab.project.pipelines_must_succeed = True
    gitlab.acts.add_job(gitlab.project, gitlab.acts.add_pipeline(gitlab.project, head, "topic-1"), "unit", "success")
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, head, Status(context="mergeyard", state=state, at=Instant(0)))
        with pytest.raises(HostUnavailable, match="yet"):
            await host.merge(gitlab.repo, order(head))
        assert isinstance(await host.merge(gitlab.repo, order(head)), Merged)


# Pushes by the queue


@asynchronous
async def test_marking_as_merged_does_not_wait_for_gitlab(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        await host.mark_merged(gitlab.repo, ONE, head, head)
    assert gitlab.gitlab.faults.calls == []


@asynchronous
async def test_the_last_of_the_rate_limit_is_reserved_for_landings(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    low = {"ratelimit-limit": "600", "ratelimit-remaining": "10", "ratelimit-reset": "99999999999"}
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(RespondsWith(404, low), "/repository/branches/gone$")
        with pytest.raises(HostUnavailable, match="for landings"):
            await host.refs(gitlab.repo, ["gone"])
        for reading in (host.statuses(gitlab.repo, head, "main"), host.thread(gitlab.repo, ONE, Instant(0))):
            with pytest.raises(HostUnavailable, match="for landings"):
                await reading
        assert isinstance(await host.merge(gitlab.repo, order(head)), Merged)


@asynchronous
async def test_landing_methods_that_gitlab_would_not_show_as_merged_are_refused_in_advance(gitlab: GitlabEnvironment):
    async with gitlab.host() as host:
        fine = [
            (method, landing)
            for method in MergeMethod
            for landing in LandingMethod
            if host.unsupported_reason(method, landing) is None
        ]
        assert fine == [
            (MergeMethod.MERGE_COMMIT, LandingMethod.TESTED_COMMIT),
            (MergeMethod.MERGE_COMMIT, LandingMethod.PROVIDER_MERGE),
            (MergeMethod.SQUASH, LandingMethod.PROVIDER_MERGE),
        ]
        assert "provider_merge" in str(host.unsupported_reason(MergeMethod.SQUASH, LandingMethod.TESTED_COMMIT))
