"""How GitLab merges, when it refuses, and how it detects what the queue merged."""

import json
from collections.abc import Callable

import pytest

from mergeyard.adapters.forges.gitlab.merging import RECOMPUTING_MS
from mergeyard.adapters.forges.rate_limits import WritePace
from mergeyard.domain.config import Config, HeadBranchFallback, LandingMethod, MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import (
    HostAccessLost,
    HostUnavailable,
    Merge,
    Merged,
    MergeForbidden,
    MergeRefused,
    NotMerged,
)
from tests.contract.host.environment import ONE, TWO
from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.forges.faults import LosesResponse, RepeatsFirstResponse, RespondsWith
from tests.support.forges.gitlab.world import BOT, DEVELOPER, ApprovalRule

Happening = Callable[[GitlabEnvironment], None]


def order(head: Sha, method: MergeMethod = MergeMethod.MERGE_COMMIT, base: str = "main") -> Merge:
    return Merge(number=ONE, head=head, base_branch=base, method=method, title="Merge it", message="Mergeyard-Run: 7")


def open_from_fork(gitlab: GitlabEnvironment) -> Sha:
    fork = gitlab.gitlab.create_project("ada/app")
    fork.origin.run("fetch", "--quiet", gitlab.origin.url, "+refs/heads/main:refs/heads/main")
    head = fork.origin.branch("topic-1", base="main", files={"1.txt": "1"})
    gitlab.acts.open_merge_request(gitlab.project, "topic-1", source=fork)
    return head


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


def tick_squash(gitlab: GitlabEnvironment) -> None:
    gitlab.request().squash = True


def tick_squash_in_a_project_that_always_does(gitlab: GitlabEnvironment) -> None:
    """The rule of the branch decides."""
    gitlab.request().squash = True
    gitlab.project.premium, gitlab.project.squash_option = True, "always"
    gitlab.project.branch_squash_options = {"main": "default_on"}


@pytest.mark.parametrize("happen", [tick_squash, tick_squash_in_a_project_that_always_does])
@asynchronous
async def test_a_merge_request_that_asks_to_be_squashed_is_merged_with_its_commits(
    gitlab: GitlabEnvironment, happen: Callable[[GitlabEnvironment], None]
):
    gitlab.open(1)
    head = gitlab.push(1)
    happen(gitlab)
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(head)), Merged)
    assert head in gitlab.origin.run("rev-list", "main").decode().split()


@asynchronous
async def test_a_branch_that_is_squashed_in_a_project_that_never_does_is_squashed(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    gitlab.project.premium, gitlab.project.squash_option = True, "never"
    gitlab.project.branch_squash_options = {"main": "default_off"}
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(head, MergeMethod.SQUASH)), Merged)
    assert head not in gitlab.origin.run("rev-list", "main").decode().split()


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
        with pytest.raises(HostAccessLost, match="is not visible to us"):
            await host.merge(gitlab.repo, order(head))
        with pytest.raises(HostAccessLost, match="is not visible to us"):
            await host.find_merge_commit(gitlab.repo, order(head))


def conflict(gitlab: GitlabEnvironment) -> None:
    gitlab.acts.commit(gitlab.project, "main", {"1.txt": "something else"})


def make_a_draft(gitlab: GitlabEnvironment) -> None:
    gitlab.request().title = "Draft: not yet"


def close(gitlab: GitlabEnvironment) -> None:
    gitlab.close(1)


def disapprove(gitlab: GitlabEnvironment) -> None:
    gitlab.acts.require_approvals(gitlab.project, ApprovalRule(name="All Members", rule_type="any_approver"))


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


def never_squash_into_main(gitlab: GitlabEnvironment) -> None:
    gitlab.project.premium, gitlab.project.branch_squash_options = True, {"main": "never"}


def always_squash_into_main(gitlab: GitlabEnvironment) -> None:
    gitlab.project.premium, gitlab.project.branch_squash_options = True, {"main": "always"}


def be_archived(gitlab: GitlabEnvironment) -> None:
    gitlab.project.archived = True


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


def fall_behind_in_an_old_version(gitlab: GitlabEnvironment) -> None:
    fall_behind(gitlab)
    gitlab.project.version = (16, 5)


def have_a_hook_that_refuses(gitlab: GitlabEnvironment) -> None:
    gitlab.request().merge_error = "Something went wrong during merge pre-receive hook. Ask Ada"


def have_a_hook_that_limits_sizes(gitlab: GitlabEnvironment) -> None:
    message = "Something went wrong during merge pre-receive hook. A file exceeds the size limit of 500 MiB"
    gitlab.request().merge_error = message


def have_a_hook_that_freezes_the_branch(gitlab: GitlabEnvironment) -> None:
    message = "Something went wrong during merge pre-receive hook. main is temporarily frozen"
    gitlab.request().merge_error = message


def have_a_hook_that_wants_a_ticket(gitlab: GitlabEnvironment) -> None:
    message = "Something went wrong during merge pre-receive hook. Ticket 503 is not approved"
    gitlab.request().merge_error = message


def refuse_to_change_squashing(gitlab: GitlabEnvironment) -> None:
    gitlab.request().squash = True
    refusal = RespondsWith(403, body=b'{"message": "403 Not yours"}')
    gitlab.gitlab.faults.plan(refusal, "/merge_requests/1$", method="PUT")


def forbid_us_everything(gitlab: GitlabEnvironment) -> None:
    gitlab.gitlab.faults.plan(RespondsWith(403, body=b'{"message": "403 Forbidden"}'), "/merge$", method="PUT")


@pytest.mark.parametrize(
    ("happen", "method", "message"),
    [
        (only_fast_forward, MergeMethod.MERGE_COMMIT, "fast-forward only"),
        (always_squash, MergeMethod.MERGE_COMMIT, "set mergeMethod to squash"),
        (never_squash, MergeMethod.SQUASH, "set mergeMethod to merge_commit"),
        (always_squash_into_main, MergeMethod.MERGE_COMMIT, "set mergeMethod to squash"),
        (never_squash_into_main, MergeMethod.SQUASH, "set mergeMethod to merge_commit"),
        (be_archived, MergeMethod.MERGE_COMMIT, "unarchive it"),
        (never_squash, MergeMethod.REBASE, "cannot rebase"),
        (demote_us, MergeMethod.MERGE_COMMIT, "Protected branches"),
        (fall_behind, MergeMethod.MERGE_COMMIT, "choose the merge method with plain merge commits"),
        (fall_behind_in_an_old_version, MergeMethod.MERGE_COMMIT, "choose the merge method with plain merge commits"),
        (have_a_hook_that_refuses, MergeMethod.MERGE_COMMIT, "Ask Ada"),
        (have_a_hook_that_limits_sizes, MergeMethod.MERGE_COMMIT, "500 MiB"),
        (have_a_hook_that_freezes_the_branch, MergeMethod.MERGE_COMMIT, "frozen"),
        (have_a_hook_that_wants_a_ticket, MergeMethod.MERGE_COMMIT, "Ticket 503"),
        (refuse_to_change_squashing, MergeMethod.MERGE_COMMIT, '"Squash commits" of the merge request (403 Not yours)'),
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


def fail_the_merged_result(gitlab: GitlabEnvironment) -> None:
    want_a_pipeline(gitlab)
    gitlab.project.premium = gitlab.project.merge_pipelines_enabled = True
    gitlab.acts.add_merge_request_pipeline(gitlab.project, gitlab.request(), status="failed")


def fail_the_merged_result_with_our_status_on_the_head(gitlab: GitlabEnvironment) -> None:
    fail_the_merged_result(gitlab)
    have_our_status(gitlab)


def skip_the_pipeline(gitlab: GitlabEnvironment) -> None:
    want_a_pipeline(gitlab)
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1", status="skipped")


def have_a_pipeline_of_an_older_head(gitlab: GitlabEnvironment) -> None:
    want_a_pipeline(gitlab)
    gitlab.acts.add_pipeline(gitlab.project, gitlab.origin.tip("main"), "topic-1", status="running")


def fail_the_pipeline_in_an_old_version(gitlab: GitlabEnvironment) -> None:
    fail_the_pipeline(gitlab)
    gitlab.project.version = (16, 5)


def have_our_status(gitlab: GitlabEnvironment) -> None:
    external = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1", source="external")
    gitlab.acts.report_status(gitlab.project, external, "mergeyard", "pending", by=gitlab.world.user(BOT))


@pytest.mark.parametrize(
    "happen",
    [
        want_a_pipeline,
        fail_the_pipeline,
        fail_the_pipeline_in_an_old_version,
        fail_the_merged_result,
        fail_the_merged_result_with_our_status_on_the_head,
        skip_the_pipeline,
        have_a_pipeline_of_an_older_head,
    ],
)
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


def wait_for_a_pipeline_in_an_old_version(gitlab: GitlabEnvironment) -> None:
    """It reports a pipeline that waits as one that did not pass."""
    want_a_pipeline(gitlab)
    gitlab.project.version = (16, 5)
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1", status="pending")


def run_the_merged_result(gitlab: GitlabEnvironment) -> None:
    want_a_pipeline(gitlab)
    gitlab.project.premium = gitlab.project.merge_pipelines_enabled = True
    gitlab.acts.add_merge_request_pipeline(gitlab.project, gitlab.request(), status="running")
    have_our_status(gitlab)


def wait_for_the_merged_result_in_an_old_version(gitlab: GitlabEnvironment) -> None:
    """Its statuses do not name their pipeline."""
    want_a_pipeline(gitlab)
    gitlab.project.version = (16, 5)
    gitlab.project.premium = gitlab.project.merge_pipelines_enabled = True
    gitlab.acts.add_merge_request_pipeline(gitlab.project, gitlab.request(), status="pending")
    status = {"id": 7, "name": "mergeyard", "status": "pending", "created_at": "2026-01-01T00:00:00Z"}
    gitlab.gitlab.faults.plan(RespondsWith(200, body=json.dumps([status]).encode()), "/statuses$", method="GET")


def have_a_hook_that_is_late(gitlab: GitlabEnvironment) -> None:
    gitlab.request().merge_error = "Something went wrong during merge pre-receive hook. Net::ReadTimeout: timeout"


def have_a_hook_that_cannot_be_asked(gitlab: GitlabEnvironment) -> None:
    message = "Something went wrong during merge pre-receive hook. Internal API unreachable"
    gitlab.request().merge_error = message


def have_a_hook_whose_service_fails(gitlab: GitlabEnvironment) -> None:
    message = "Something went wrong during merge pre-receive hook. The policy server answered with status code: 502"
    gitlab.request().merge_error = message


def run_a_job_that_is_allowed_to_fail(gitlab: GitlabEnvironment) -> None:
    want_a_pipeline(gitlab)
    have_our_status(gitlab)
    gitlab.acts.add_job(gitlab.project, gitlab.project.pipelines[-1], "unit", "success")
    gitlab.acts.add_job(gitlab.project, gitlab.project.pipelines[-1], "flaky", "running", allow_failure=True)


def archive_the_pipeline(gitlab: GitlabEnvironment) -> None:
    """Nothing in it changes any more, also not our status."""
    want_a_pipeline(gitlab)
    have_our_status(gitlab)
    gitlab.acts.add_job(gitlab.project, gitlab.project.pipelines[-1], "unit", "success")
    gitlab.gitlab.faults.plan(RespondsWith(404), "/statuses/", method="POST")


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
        wait_for_a_pipeline_in_an_old_version,
        run_the_merged_result,
        wait_for_the_merged_result_in_an_old_version,
        have_a_hook_that_is_late,
        have_a_hook_that_cannot_be_asked,
        have_a_hook_whose_service_fails,
        run_a_job_that_is_allowed_to_fail,
        archive_the_pipeline,
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


@pytest.mark.parametrize(("status", "expected"), [("failed", MergeRefused), ("pending", NotMerged)])
@pytest.mark.parametrize("version", [(16, 5), (19, 4)])
@asynchronous
async def test_the_pipeline_of_a_fork_decides_though_it_is_in_another_project(
    gitlab: GitlabEnvironment, version: tuple[int, int], status: str, expected: type[MergeRefused | NotMerged]
):
    want_a_pipeline(gitlab)
    gitlab.project.version = version
    head = open_from_fork(gitlab)
    gitlab.acts.add_merge_request_pipeline(gitlab.project, gitlab.request(), status=status)
    async with gitlab.host() as host:
        assert isinstance(await host.merge(gitlab.repo, order(head)), expected)


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
    async with gitlab.host(write_pace=WritePace(interval_ms=0, per_minute=1, per_hour=1)) as host:
        await host.set_status(gitlab.repo, head, Status(context="mergeyard", state=state, at=Instant(0)))
        with pytest.raises(HostUnavailable, match="yet"):
            await host.merge(gitlab.repo, order(head))
        assert isinstance(await host.merge(gitlab.repo, order(head)), Merged)


@asynchronous
async def test_our_status_in_another_pipeline_does_not_hide_the_one_that_blocks_our_merge(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    want_a_pipeline(gitlab)
    have_our_status(gitlab)
    other = gitlab.acts.add_pipeline(gitlab.project, head, "a-stacked-branch", source="external")
    gitlab.acts.report_status(gitlab.project, other, "mergeyard", "success", by=gitlab.world.user(BOT))
    async with gitlab.host() as host:
        with pytest.raises(HostUnavailable, match="yet"):
            await host.merge(gitlab.repo, order(head))
        assert isinstance(await host.merge(gitlab.repo, order(head)), Merged)


@asynchronous
async def test_a_pipeline_that_gitlab_does_not_recompute_is_not_waited_for_without_end(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    want_a_pipeline(gitlab)
    pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1")
    gitlab.acts.add_job(gitlab.project, pipeline, "unit", "success")
    pipeline.stale_status = "running"
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, head, Status(context="mergeyard", state=StatusState.SUCCESS, at=Instant(0)))
        for _ in range(2):
            for _ in range(2):
                with pytest.raises(HostUnavailable, match="yet"):
                    await host.merge(gitlab.repo, order(head))
                gitlab.clock.move(RECOMPUTING_MS // 2)
            assert isinstance(await host.merge(gitlab.repo, order(head)), NotMerged)
        pipeline.stale_status = None
        assert isinstance(await host.merge(gitlab.repo, order(head)), Merged)


# Pushes by the queue


@asynchronous
async def test_gitlab_shows_by_itself_what_is_merged(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        assert not await host.mark_merged(gitlab.repo, ONE, head, head)
        assert await host.mark_merged(gitlab.repo, ONE, head, gitlab.land(1))
        gitlab.open(2)
        gitlab.close(2)
        assert not await host.mark_merged(gitlab.repo, TWO, gitlab.head(2), head)


@asynchronous
async def test_a_source_branch_is_left_to_its_users(gitlab: GitlabEnvironment):
    """The service writes no branch of users, also if the merge request asks for it."""
    head = gitlab.open(1)
    gitlab.request().force_remove_source_branch = True
    commit = gitlab.land(1)
    async with gitlab.host() as host:
        await host.mark_merged(gitlab.repo, ONE, head, commit)
    assert gitlab.origin.ref("topic-1") == head


@asynchronous
async def test_the_last_of_the_rate_limit_is_kept_for_merges(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    low = {"ratelimit-limit": "600", "ratelimit-remaining": "10", "ratelimit-reset": "99999999999"}
    async with gitlab.host() as host:
        gitlab.gitlab.faults.plan(RespondsWith(404, low), "/repository/branches/gone$")
        with pytest.raises(HostUnavailable, match="kept for merges"):
            await host.refs(gitlab.repo, ["gone"])
        for reading in (host.statuses(gitlab.repo, head, "main"), host.thread(gitlab.repo, ONE, Instant(0))):
            with pytest.raises(HostUnavailable, match="kept for merges"):
                await reading
        assert isinstance(await host.merge(gitlab.repo, order(head)), Merged)


SQUASH, REBASE = MergeMethod.SQUASH, MergeMethod.REBASE
TESTED_COMMIT, PROVIDER_MERGE = LandingMethod.TESTED_COMMIT, LandingMethod.PROVIDER_MERGE


@pytest.mark.parametrize(
    ("config", "advice"),
    [
        (Config(), None),
        (Config(landing=PROVIDER_MERGE), None),
        (Config(move_head_branches=False), None),
        (Config(merge_method=SQUASH), None),
        (Config(merge_method=SQUASH, landing=PROVIDER_MERGE, move_head_branches=False), None),
        (Config(merge_method=SQUASH, move_head_branches=False, head_branch_fallback=HeadBranchFallback.CLOSE), None),
        (Config(merge_method=SQUASH, move_head_branches=False), "set landing to provider_merge"),
        (Config(merge_method=REBASE, head_branch_fallback=HeadBranchFallback.CLOSE), None),
        (Config(merge_method=REBASE, move_head_branches=False, head_branch_fallback=HeadBranchFallback.CLOSE), None),
        (Config(merge_method=REBASE), "headBranchFallback to close"),
        (
            Config(merge_method=REBASE, landing=PROVIDER_MERGE, head_branch_fallback=HeadBranchFallback.CLOSE),
            "set landing to tested_commit",
        ),
    ],
)
@asynchronous
async def test_a_queue_that_gitlab_cannot_merge_for_is_refused_in_advance(
    gitlab: GitlabEnvironment, config: Config, advice: str | None
):
    """GitLab never rebases, so no merge request of a queue that rebases can be left to it."""
    async with gitlab.host() as host:
        reason = host.unsupported_reason(config)
        assert reason is None if advice is None else advice in str(reason)
