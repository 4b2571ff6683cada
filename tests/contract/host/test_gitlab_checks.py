"""Checks on GitLab from jobs, pipelines and external statuses, and our own status among them."""

from collections import OrderedDict

import pytest

from mergeyard.adapters.forges.gitlab.checks import MAX_REMEMBERED, remember
from mergeyard.adapters.forges.gitlab.host import GitlabHost
from mergeyard.adapters.forges.rate_limits import WritePace
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import DraftPullRequest, HostRefused, HostUnavailable
from tests.contract.host.environment import ONE
from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.asynchronous import asynchronous
from tests.support.forges.gitlab.rules import detailed_merge_status
from tests.support.forges.gitlab.world import BOT, CommitStatus, MergeRequest

OURS = Status(context="mergeyard", state=StatusState.PENDING, at=Instant(0), url="https://queue.test/1")
STATUSES = {
    "success": {"success"},
    "failure": {"failed", "canceled", "canceling"},
    "pending": {"created", "waiting_for_resource", "preparing", "pending", "running", "manual", "scheduled"},
}


async def states(gitlab: GitlabEnvironment, sha: Sha | None = None, test_branch: str = "") -> dict[str, str]:
    async with gitlab.host() as host:
        found = await host.statuses(gitlab.repo, sha or gitlab.head(), "main", test_branch)
        assert len({status.context for status in found}) == len(found)
        return {status.context: status.state.value for status in found}


@asynchronous
async def test_every_job_status_is_mapped(gitlab: GitlabEnvironment):
    gitlab.open(1)
    pipeline = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1")
    for names in STATUSES.values():
        for name in names:
            gitlab.acts.add_job(gitlab.project, pipeline, name, name)
    found = await states(gitlab)
    assert {state: {name for name in names if found[name] == state} for state, names in STATUSES.items()} == STATUSES


@asynchronous
async def test_jobs_belong_to_the_pipeline_and_external_statuses_do_not(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1")
    job = gitlab.acts.add_job(gitlab.project, pipeline, "unit", "success")
    reported = gitlab.acts.report_status(gitlab.project, pipeline, "coverage", "failed", by=gitlab.world.user("ada"))
    assert reported
    reported.target_url, reported.description = "https://coverage.test", "61 %"
    async with gitlab.host() as host:
        found = {status.context: status for status in await host.statuses(gitlab.repo, head, "main")}
    assert {name: status.suite for name, status in found.items()} == {
        "unit": "pipeline",
        "coverage": "",
        "pipeline": "pipeline",
    }
    page = f"{gitlab.world.web_url}/acme/app/-/jobs/{job.id}"
    assert (found["unit"].url, found["coverage"].url) == (page, "https://coverage.test")
    assert found["coverage"].description == "61 %"
    assert found["pipeline"].url == f"{gitlab.world.web_url}/acme/app/-/pipelines/{pipeline.id}"
    assert found["pipeline"].state is StatusState.FAILURE


@asynchronous
async def test_a_failed_job_that_is_allowed_to_fail_passes(gitlab: GitlabEnvironment):
    gitlab.open(1)
    pipeline = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1")
    gitlab.acts.add_job(gitlab.project, pipeline, "flaky", "failed", allow_failure=True)
    gitlab.acts.add_job(gitlab.project, pipeline, "unit", "success")
    assert await states(gitlab) == {"flaky": "neutral", "unit": "success", "pipeline": "success"}


@pytest.mark.parametrize(
    ("status", "expected"),
    [("running", "pending"), ("created", "pending"), ("failed", "neutral"), ("canceled", "neutral")],
)
@asynchronous
async def test_a_pipeline_with_our_status_waits_for_a_job_that_is_allowed_to_fail(
    gitlab: GitlabEnvironment, status: str, expected: str
):
    head = gitlab.open(1)
    pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1")
    gitlab.acts.add_job(gitlab.project, pipeline, "flaky", status, allow_failure=True)
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, head, OURS)
    assert await states(gitlab) == {"flaky": expected, "pipeline": expected}


@asynchronous
async def test_a_job_of_an_older_pipeline_does_not_count_for_the_one_with_our_status(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    for status in ("failed", "success"):
        pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1")
        gitlab.acts.add_job(gitlab.project, pipeline, "unit", status)
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, head, OURS)
    assert await states(gitlab) == {"unit": "success", "pipeline": "success"}


@asynchronous
async def test_the_latest_attempt_of_a_retried_job_counts(gitlab: GitlabEnvironment):
    gitlab.open(1)
    first = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1")
    gitlab.acts.add_job(gitlab.project, first, "unit", "failed")
    assert await states(gitlab) == {"unit": "failure", "pipeline": "failure"}
    gitlab.acts.add_job(gitlab.project, first, "unit", "running")
    assert await states(gitlab) == {"unit": "pending", "pipeline": "pending"}
    again = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1")
    gitlab.acts.add_job(gitlab.project, again, "unit", "success")
    assert await states(gitlab) == {"unit": "success", "pipeline": "success"}


@asynchronous
async def test_both_of_two_pipelines_of_a_commit_must_pass(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1", status="failed")
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "refs/merge-requests/1/head", status="success")
    assert await states(gitlab) == {"pipeline": "failure"}


@pytest.mark.parametrize("states_in_order", [("failed", "success"), ("success", "failed")])
@asynchronous
async def test_a_job_that_failed_in_one_of_two_pipelines_has_failed(
    gitlab: GitlabEnvironment, states_in_order: tuple[str, str]
):
    gitlab.open(1)
    for ref, state in zip(("topic-1", "refs/merge-requests/1/head"), states_in_order, strict=True):
        pipeline = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), ref)
        gitlab.acts.add_job(gitlab.project, pipeline, "unit", state)
    assert await states(gitlab) == {"unit": "failure", "pipeline": "failure"}


@asynchronous
async def test_a_job_that_still_runs_in_one_of_two_pipelines_has_not_passed(gitlab: GitlabEnvironment):
    gitlab.open(1)
    for ref, state in (("topic-1", "running"), ("refs/merge-requests/1/head", "success")):
        pipeline = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), ref)
        gitlab.acts.add_job(gitlab.project, pipeline, "unit", state)
    assert await states(gitlab) == {"unit": "pending", "pipeline": "pending"}


@pytest.mark.parametrize(("of_job", "of_status"), [("failed", "success"), ("success", "failed")])
@asynchronous
async def test_neither_a_job_nor_a_status_of_the_same_name_hides_the_other(
    gitlab: GitlabEnvironment, of_job: str, of_status: str
):
    gitlab.open(1)
    first = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1")
    gitlab.acts.add_job(gitlab.project, first, "unit", of_job)
    second = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1", source="external")
    gitlab.acts.report_status(gitlab.project, second, "unit", of_status, by=gitlab.world.user("ada"))
    assert (await states(gitlab))["unit"] == "failure"


@pytest.mark.parametrize("is_bridge", [False, True])
@pytest.mark.parametrize("shows_address", [False, True])
@asynchronous
async def test_a_status_that_claims_the_address_of_a_job_does_not_overrule_the_failed_job(
    gitlab: GitlabEnvironment, is_bridge: bool, shows_address: bool
):
    """Some versions of GitLab show the address of a job with its status, and others do not."""
    gitlab.open(1)
    first = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1")
    job = gitlab.acts.add_job(gitlab.project, first, "unit", "failed", is_bridge=is_bridge)
    job.target_url = f"{gitlab.world.web_url}/acme/app/-/jobs/{job.id}" if shows_address else None
    second = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1", source="external")
    claim = gitlab.acts.report_status(gitlab.project, second, "unit", "success", by=gitlab.world.user("ada"))
    assert claim
    claim.target_url = f"{gitlab.world.web_url}/acme/app/-/jobs/{claim.id}"
    assert (await states(gitlab))["unit"] == "failure"


@pytest.mark.parametrize(
    ("build", "expected", "skipped"),
    [("success", "success", "skipped"), ("failed", "failure", "failure"), ("running", "pending", "pending")],
)
@asynchronous
async def test_a_skipped_job_is_skipped_only_in_a_pipeline_that_passed(
    gitlab: GitlabEnvironment, build: str, expected: str, skipped: str
):
    gitlab.open(1)
    pipeline = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1")
    gitlab.acts.add_job(gitlab.project, pipeline, "build", build)
    gitlab.acts.add_job(gitlab.project, pipeline, "e2e", "skipped")
    gitlab.acts.add_job(gitlab.project, pipeline, "lint", "skipped", allow_failure=True)
    assert await states(gitlab) == {"build": expected, "e2e": skipped, "lint": skipped, "pipeline": expected}


@asynchronous
async def test_a_skipped_job_does_not_wait_for_our_own_status(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1")
    gitlab.acts.add_job(gitlab.project, pipeline, "build", "success")
    gitlab.acts.add_job(gitlab.project, pipeline, "e2e", "skipped")
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, head, OURS)
    assert await states(gitlab) == {"build": "success", "e2e": "skipped", "pipeline": "success"}


@asynchronous
async def test_a_pipeline_with_only_skipped_jobs_has_tested_nothing_whatever_our_status_is(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1")
    gitlab.acts.add_job(gitlab.project, pipeline, "unit", "skipped")
    assert await states(gitlab) == {"unit": "failure", "pipeline": "failure"}
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, head, OURS)
    assert await states(gitlab) == {"unit": "failure", "pipeline": "failure"}
    gitlab.project.skipped_pipeline_passes = True
    assert await states(gitlab) == {"unit": "skipped", "pipeline": "skipped"}


@asynchronous
async def test_a_pipeline_that_was_skipped_has_tested_nothing(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic-1", status="skipped")
    assert await states(gitlab) == {"pipeline": "failure"}
    gitlab.project.skipped_pipeline_passes = True
    assert await states(gitlab) == {"pipeline": "skipped"}
    gitlab.project.skipped_pipeline_passes = False
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "refs/merge-requests/1/head", status="success")
    assert await states(gitlab) == {"pipeline": "success"}


@asynchronous
async def test_a_skipped_pipeline_of_a_test_branch_never_passes(gitlab: GitlabEnvironment):
    gitlab.open(1)
    gitlab.project.skipped_pipeline_passes = True
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "mergeyard/pr-1/0", status="skipped")
    assert await states(gitlab) == {"pipeline": "failure"}
    pipeline = gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "mergeyard/pr-1/0")
    gitlab.acts.add_job(gitlab.project, pipeline, "unit", "skipped")
    assert await states(gitlab) == {"unit": "failure", "pipeline": "failure"}
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "refs/merge-requests/2/head", status="skipped")
    assert await states(gitlab) == {"unit": "failure", "pipeline": "failure"}


@asynchronous
async def test_a_commit_without_a_pipeline_has_no_checks(gitlab: GitlabEnvironment):
    gitlab.open(1)
    assert await states(gitlab) == {}
    assert await states(gitlab, Sha("1" * 40)) == {}


@asynchronous
async def test_a_pipeline_is_required_where_the_project_wants_it_to_succeed(gitlab: GitlabEnvironment):
    async with gitlab.host() as host:
        assert await host.required_statuses(gitlab.repo, "main") == ()
        gitlab.project.pipelines_must_succeed = True
        assert await host.required_statuses(gitlab.repo, "main") == ("pipeline",)


# CI/CD switched off


@asynchronous
async def test_without_ci_of_gitlab_reported_statuses_count_under_their_own_names_only(gitlab: GitlabEnvironment):
    head, ada = gitlab.open(1), gitlab.world.user("ada")
    gitlab.project.has_ci = False
    assert await states(gitlab) == {}
    pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1", source="external")
    gitlab.acts.report_status(gitlab.project, pipeline, "unit", "success", by=ada)
    assert await states(gitlab) == {"unit": "success"}
    gitlab.acts.report_status(gitlab.project, pipeline, "e2e", "running", by=ada)
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, head, OURS)
    assert await states(gitlab) == {"unit": "success", "e2e": "pending"}
    gitlab.acts.report_status(gitlab.project, pipeline, "e2e", "success", by=ada)
    assert await states(gitlab) == {"unit": "success", "e2e": "success"}
    gitlab.acts.report_status(gitlab.project, pipeline, "unit", "failed", by=ada)
    assert await states(gitlab) == {"unit": "failure", "e2e": "success"}


# Test branches and external pipelines


@asynchronous
async def test_an_external_pipeline_is_not_the_pipeline(gitlab: GitlabEnvironment):
    """Every Developer can report a status, which makes such a pipeline. It counts under its own name."""
    head, ada = gitlab.open(1), gitlab.world.user("ada")
    pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1", source="external")
    gitlab.acts.report_status(gitlab.project, pipeline, "jenkins", "success", by=ada)
    assert await states(gitlab) == {"jenkins": "success"}
    assert await states(gitlab, test_branch="topic-1") == {"jenkins": "success"}
    gitlab.acts.add_pipeline(gitlab.project, head, "topic-1", status="failed")
    assert await states(gitlab) == {"jenkins": "success", "pipeline": "failure"}


@pytest.mark.parametrize("ref", ["ada/anything", "mergeyard/pr-1/y", "refs/merge-requests/1/head"])
@asynchronous
async def test_a_pipeline_of_another_ref_than_the_test_branch_is_not_its_pipeline(gitlab: GitlabEnvironment, ref: str):
    head = gitlab.open(1)
    gitlab.acts.add_pipeline(gitlab.project, head, ref, status="success")
    assert await states(gitlab) == {"pipeline": "success"}
    assert await states(gitlab, test_branch=TEST_BRANCH) == {}
    gitlab.acts.add_pipeline(gitlab.project, head, TEST_BRANCH, status="failed")
    assert await states(gitlab, test_branch=TEST_BRANCH) == {"pipeline": "failure"}


@asynchronous
async def test_a_skipped_pipeline_of_the_test_branch_fails_whatever_else_there_is(gitlab: GitlabEnvironment):
    async with gitlab.host() as host:
        draft = await open_draft(gitlab, host)
        gitlab.project.merge_pipelines_enabled = False
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), TEST_BRANCH, status="skipped")
    gitlab.acts.add_merge_request_pipeline(gitlab.project, draft, status="success")
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "ada/anything", status="success")
    assert await states(gitlab, test_branch=TEST_BRANCH) == {"pipeline": "failure"}


@asynchronous
async def test_a_pipeline_of_the_draft_tests_the_test_branch(gitlab: GitlabEnvironment):
    async with gitlab.host() as host:
        draft = await open_draft(gitlab, host)
        gitlab.project.merge_pipelines_enabled = False
    gitlab.acts.add_merge_request_pipeline(gitlab.project, draft, status="success")
    assert await states(gitlab, test_branch=TEST_BRANCH) == {"pipeline": "success"}
    other = gitlab.acts.open_merge_request(gitlab.project, TEST_BRANCH, base="production", by="ada")
    assert other.head == gitlab.head()
    gitlab.acts.add_merge_request_pipeline(gitlab.project, other, status="failed")
    assert await states(gitlab, test_branch=TEST_BRANCH) == {"pipeline": "success"}


# Merged results pipelines of drafts

TEST_BRANCH = "mergeyard/pr-1/x"


async def open_draft(gitlab: GitlabEnvironment, host: GitlabHost, branch: str = TEST_BRANCH) -> MergeRequest:
    gitlab.project.premium = gitlab.project.merge_pipelines_enabled = True
    if gitlab.origin.ref(branch) is None:
        gitlab.origin.branch(branch, base="main", files={branch: "1"})
    await host.open_draft(gitlab.repo, DraftPullRequest(branch=branch, base_branch="main", title="Testing", text=""))
    return list(gitlab.project.merge_requests.values())[-1]


@asynchronous
async def test_a_pipeline_of_the_merged_result_tests_the_draft(gitlab: GitlabEnvironment):
    async with gitlab.host() as host:
        draft = await open_draft(gitlab, host)
        other = await open_draft(gitlab, host, "mergeyard/pr-2/y")
        gitlab.acts.add_merge_request_pipeline(gitlab.project, other, status="running")
        tip = gitlab.head()
        assert await states(gitlab, tip) == {}
        pipeline = gitlab.acts.add_merge_request_pipeline(gitlab.project, draft)
        assert pipeline.sha != tip
        gitlab.acts.add_job(gitlab.project, pipeline, "unit", "failed")
        assert await states(gitlab, tip) == {"unit": "failure", "pipeline": "failure"}
        again = gitlab.acts.add_merge_request_pipeline(gitlab.project, draft)
        job = gitlab.acts.add_job(gitlab.project, again, "unit", "success")
        assert await states(gitlab, tip) == {"unit": "success", "pipeline": "success"}
        found = {status.context: status for status in await host.statuses(gitlab.repo, tip, "main")}
        assert found["unit"].url.endswith(f"/-/jobs/{job.id}")
        await host.close_draft(gitlab.repo, TEST_BRANCH)
        assert await states(gitlab, tip) == {"unit": "success", "pipeline": "success"}


def move_test_branch(gitlab: GitlabEnvironment, tip: Sha) -> None:
    before = gitlab.origin.tip(TEST_BRANCH)
    gitlab.origin.set_ref(TEST_BRANCH, tip)
    gitlab.acts.on_refs_updated(gitlab.project, gitlab.world.user("ada"), {f"refs/heads/{TEST_BRANCH}": (before, tip)})


@asynchronous
async def test_a_merged_result_of_what_a_user_pushed_to_the_test_branch_does_not_test_its_commit(
    gitlab: GitlabEnvironment,
):
    async with gitlab.host() as host:
        draft = await open_draft(gitlab, host)
        tip = gitlab.head()
        running = gitlab.acts.add_merge_request_pipeline(gitlab.project, draft)
        gitlab.acts.add_job(gitlab.project, running, "unit", "running")
        assert await states(gitlab, tip) == {"unit": "pending", "pipeline": "pending"}
        move_test_branch(gitlab, gitlab.origin.branch("pushed", base=tip, files={"b.txt": "1"}))
        other = gitlab.acts.add_merge_request_pipeline(gitlab.project, draft)
        gitlab.acts.add_job(gitlab.project, other, "unit", "success")
        move_test_branch(gitlab, tip)
        assert await states(gitlab, tip) == {"unit": "pending", "pipeline": "pending"}
        gitlab.acts.add_job(gitlab.project, running, "unit", "failed")
        assert await states(gitlab, tip) == {"unit": "failure", "pipeline": "failure"}


@asynchronous
async def test_the_parents_of_a_merged_result_are_read_once(gitlab: GitlabEnvironment):
    async with gitlab.host() as host:
        draft = await open_draft(gitlab, host)
        pipeline = gitlab.acts.add_merge_request_pipeline(gitlab.project, draft, status="success")
        for _ in range(2):
            (found,) = await host.statuses(gitlab.repo, gitlab.head(), "main")
            assert found.state is StatusState.SUCCESS
    assert len([call for call in gitlab.gitlab.faults.calls if call.endswith(f"/commits/{pipeline.sha}")]) == 1


def count_searches(gitlab: GitlabEnvironment) -> int:
    return len([call for call in gitlab.gitlab.faults.calls if call.startswith("GET") and "/merge_requests" in call])


@asynchronous
async def test_a_draft_is_searched_once_per_poll_interval_and_known_at_once_when_it_was_opened(
    gitlab: GitlabEnvironment,
):
    gitlab.project.premium = gitlab.project.merge_pipelines_enabled = True
    tip = gitlab.origin.branch(TEST_BRANCH, base="main", files={TEST_BRANCH: "1"})
    async with gitlab.host() as host:
        for _ in range(3):
            await host.statuses(gitlab.repo, tip, "main")
        assert count_searches(gitlab) == 1
        gitlab.clock.move(host.poll_interval_ms)
        await host.statuses(gitlab.repo, tip, "main")
        assert count_searches(gitlab) == 2
        draft = await open_draft(gitlab, host)
        assert gitlab.head() == tip
        gitlab.acts.add_merge_request_pipeline(gitlab.project, draft, status="failed")
        (found,) = await host.statuses(gitlab.repo, tip, "main")
        assert found.state is StatusState.FAILURE


def test_only_the_latest_values_are_remembered():
    values = OrderedDict[int, int]()
    for number in range(MAX_REMEMBERED):
        remember(values, number, number)
    remember(values, 0, 7)
    remember(values, -1, -1)
    assert len(values) == MAX_REMEMBERED
    assert (1 in values, values[0], values[-1]) == (False, 7, -1)


@asynchronous
async def test_a_pipeline_of_the_branch_and_one_of_the_merged_result_must_both_pass(gitlab: GitlabEnvironment):
    async with gitlab.host() as host:
        draft = await open_draft(gitlab, host)
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), TEST_BRANCH, status="success")
    assert await states(gitlab) == {"pipeline": "success"}
    gitlab.acts.add_merge_request_pipeline(gitlab.project, draft, status="failed")
    assert await states(gitlab) == {"pipeline": "failure"}


@asynchronous
async def test_a_skipped_pipeline_of_the_merged_result_has_tested_nothing(gitlab: GitlabEnvironment):
    gitlab.project.skipped_pipeline_passes = True
    async with gitlab.host() as host:
        draft = await open_draft(gitlab, host)
    gitlab.acts.add_merge_request_pipeline(gitlab.project, draft, status="skipped")
    assert await states(gitlab) == {"pipeline": "failure"}


@asynchronous
async def test_the_merged_result_of_an_ordinary_merge_request_does_not_test_its_head(gitlab: GitlabEnvironment):
    gitlab.open(1, author=BOT)
    gitlab.project.premium = gitlab.project.merge_pipelines_enabled = True
    gitlab.acts.add_merge_request_pipeline(gitlab.project, gitlab.request(), status="success")
    assert await states(gitlab) == {}


# Our own status


@asynchronous
async def test_our_own_status_is_shown_and_not_read_as_a_check(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, head, OURS)
        assert list(await host.statuses(gitlab.repo, head, "main")) == []
    (status,) = gitlab.project.statuses
    assert (status.name, status.status, status.target_url) == ("mergeyard", "pending", "https://queue.test/1")


def own_statuses(gitlab: GitlabEnvironment) -> list[CommitStatus]:
    return [one for one in gitlab.project.statuses if one.name == "mergeyard" and not one.outdated]


def say(state: StatusState, description: str, url: str = "https://queue.test/1") -> Status:
    return Status(context="mergeyard", state=state, at=Instant(0), url=url, description=description)


@asynchronous
async def test_repeating_our_status_is_harmless_and_another_state_replaces_it(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        for state in ("pending", "pending", "success", "success", "pending", "error", "failure", "failure"):
            await host.set_status(gitlab.repo, head, say(StatusState(state), "x" * 1000))
    assert [(one.status, one.description) for one in own_statuses(gitlab)] == [("failed", "x" * 255)]
    assert len([one for one in gitlab.project.statuses if one.name == "mergeyard"]) == 3


@asynchronous
async def test_only_an_urgent_status_does_not_wait_for_other_writes(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host(write_pace=WritePace(interval_ms=0, per_minute=1, per_hour=1)) as host:
        await host.set_status(gitlab.repo, head, say(StatusState.PENDING, "Not ready."))
        await host.set_status(gitlab.repo, head, say(StatusState.PENDING, "In the merge queue."), urgent=True)
        with pytest.raises(HostUnavailable, match="limits how much we write"):
            await host.set_status(gitlab.repo, head, say(StatusState.SUCCESS, "Merged."))
    assert [one.description for one in own_statuses(gitlab)] == ["In the merge queue."]


@asynchronous
async def test_every_new_description_is_shown_though_gitlab_stores_one_only_with_a_new_state(
    gitlab: GitlabEnvironment,
):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        shown = list[tuple[str, str | None]]()
        for description in ("Not ready.", "In the merge queue.", "Not ready.", "In the merge queue."):
            await host.set_status(gitlab.repo, head, say(StatusState.PENDING, description))
            (own,) = own_statuses(gitlab)
            shown.append((own.status, own.description))
    assert shown == [
        ("pending", "Not ready."),
        ("running", "In the merge queue."),
        ("pending", "Not ready."),
        ("running", "In the merge queue."),
    ]


@pytest.mark.parametrize("before", [1, 2])
@pytest.mark.parametrize(("version", "expected"), [((19, 4), "skipped"), ((16, 5), "success")])
@asynchronous
async def test_a_head_that_was_taken_out_of_the_queue_can_be_merged_by_its_users(
    gitlab: GitlabEnvironment, before: int, version: tuple[int, int], expected: str
):
    head = gitlab.open(1)
    gitlab.project.version, gitlab.project.pipelines_must_succeed = version, True
    pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1")
    gitlab.acts.add_job(gitlab.project, pipeline, "unit", "success")
    async with gitlab.host() as host:
        for number in range(before):
            await host.set_status(gitlab.repo, head, say(StatusState.PENDING, str(number)))
        await host.set_status(gitlab.repo, head, say(StatusState.ERROR, "Removed."))
    assert [(one.status, one.description) for one in own_statuses(gitlab)] == [(expected, "Removed.")]
    assert detailed_merge_status(gitlab.project, gitlab.request()) == "mergeable"


@pytest.mark.parametrize("had_status", [True, False])
@pytest.mark.parametrize("job", [None, "skipped", "manual"])
@pytest.mark.parametrize("version", [(19, 4), (16, 5)])
@asynchronous
async def test_being_taken_out_of_the_queue_is_no_passed_pipeline(
    gitlab: GitlabEnvironment, version: tuple[int, int], job: str | None, had_status: bool
):
    head = gitlab.open(1)
    gitlab.project.version, gitlab.project.pipelines_must_succeed = version, True
    other = gitlab.acts.add_pipeline(gitlab.project, head, "a-stacked-branch")
    gitlab.acts.add_job(gitlab.project, other, "unit", "success")
    pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1")
    if job is not None:
        gitlab.acts.add_job(gitlab.project, pipeline, "deploy", job, allow_failure=True)
    async with gitlab.host() as host:
        await host.read_pull_request(gitlab.repo, ONE)
        if had_status:
            await host.set_status(gitlab.repo, head, say(StatusState.PENDING, "In the merge queue."))
        await host.set_status(gitlab.repo, head, say(StatusState.ERROR, "Removed."))
    assert detailed_merge_status(gitlab.project, gitlab.request()) == "ci_must_pass"


@asynchronous
async def test_our_status_goes_to_the_source_branch_though_other_branches_contain_the_head(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    gitlab.origin.branch("a-stacked-branch", base="topic-1")
    async with gitlab.host() as host:
        await host.read_pull_request(gitlab.repo, ONE)
        await host.set_status(gitlab.repo, head, OURS)
    (pipeline,) = gitlab.project.pipelines
    assert (pipeline.source, pipeline.ref) == ("external", "topic-1")


@pytest.mark.parametrize("ref", ["topic-1", "refs/merge-requests/1/head"])
@asynchronous
async def test_our_status_joins_the_pipeline_that_the_merge_request_shows(gitlab: GitlabEnvironment, ref: str):
    head = gitlab.open(1)
    shown = gitlab.acts.add_pipeline(gitlab.project, head, ref)
    gitlab.acts.add_pipeline(gitlab.project, head, "a-stacked-branch")
    async with gitlab.host() as host:
        await host.read_pull_request(gitlab.repo, ONE)
        await host.set_status(gitlab.repo, head, OURS)
    assert [one.pipeline for one in own_statuses(gitlab)] == [shown.id]


@asynchronous
async def test_our_status_stays_in_its_pipeline_when_another_one_starts(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        await host.read_pull_request(gitlab.repo, ONE)
        await host.set_status(gitlab.repo, head, say(StatusState.PENDING, "In the merge queue."))
        gitlab.acts.add_pipeline(gitlab.project, head, "topic-1", status="success")
        await host.read_pull_request(gitlab.repo, ONE)
        await host.set_status(gitlab.repo, head, say(StatusState.SUCCESS, "Merged."))
    assert [(one.status, one.pipeline) for one in own_statuses(gitlab)] == [("success", gitlab.project.pipelines[0].id)]


@asynchronous
async def test_a_head_that_was_not_read_yet_gets_our_status_in_its_latest_pipeline(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    latest = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1")
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, head, OURS)
    assert [one.pipeline for one in own_statuses(gitlab)] == [latest.id]


@asynchronous
async def test_an_address_that_gitlab_does_not_take_is_left_out(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, head, say(StatusState.PENDING, "1", url=f"https://{'x' * 248}"))
        assert [one.target_url for one in own_statuses(gitlab)] == [None]
        assert len([call for call in gitlab.gitlab.faults.calls if call.startswith("POST")]) == 1
        await host.set_status(gitlab.repo, head, say(StatusState.PENDING, "2", url=f"https://{'x' * 247}"))
        assert [one.target_url for one in own_statuses(gitlab)] == [f"https://{'x' * 247}"]
        gitlab.project.blocks_urls = True
        await host.set_status(gitlab.repo, head, say(StatusState.SUCCESS, "3"))
        assert [(one.status, one.description) for one in own_statuses(gitlab)] == [("success", "3")]


@asynchronous
async def test_a_status_that_another_request_is_changing_is_tried_again_later(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    gitlab.project.busy_statuses = 1
    async with gitlab.host() as host:
        with pytest.raises(HostUnavailable, match="409") as error:
            await host.set_status(gitlab.repo, head, OURS)
        assert not isinstance(error.value, HostRefused)
        await host.set_status(gitlab.repo, head, OURS)
    assert len(own_statuses(gitlab)) == 1


@asynchronous
async def test_a_pipeline_does_not_wait_for_our_own_status(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1")
    gitlab.acts.add_job(gitlab.project, pipeline, "unit", "success")
    gitlab.acts.add_job(gitlab.project, pipeline, "deploy", "manual", allow_failure=True)
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, head, OURS)
    assert await states(gitlab) == {"unit": "success", "deploy": "pending", "pipeline": "success"}
    gitlab.acts.add_job(gitlab.project, pipeline, "late", "running")
    assert (await states(gitlab))["pipeline"] == "pending"
    gitlab.acts.add_job(gitlab.project, pipeline, "late", "failed")
    assert (await states(gitlab))["pipeline"] == "failure"


def open_from_fork(gitlab: GitlabEnvironment) -> None:
    fork = gitlab.gitlab.create_project("ada/app")
    fork.origin.run("fetch", "--quiet", gitlab.origin.url, "+refs/heads/main:refs/heads/main")
    fork.origin.branch("topic", base="main", files={"b.txt": "1"})
    gitlab.acts.open_merge_request(gitlab.project, "topic", source=fork)


@pytest.mark.parametrize("is_read", [False, True])
@asynchronous
async def test_a_status_that_the_merge_request_of_a_fork_cannot_show_is_no_error(
    gitlab: GitlabEnvironment, is_read: bool
):
    open_from_fork(gitlab)
    async with gitlab.host() as host:
        if is_read:
            gitlab.origin.branch("mergeyard/pr-1/x", base=gitlab.head())
            await host.read_pull_request(gitlab.repo, ONE)
        await host.set_status(gitlab.repo, gitlab.head(), OURS)
    assert gitlab.project.statuses == []


@asynchronous
async def test_a_fork_whose_pipeline_runs_in_the_project_gets_our_status(gitlab: GitlabEnvironment):
    open_from_fork(gitlab)
    pipeline = gitlab.acts.add_merge_request_pipeline(gitlab.project, gitlab.request(), of=gitlab.project)
    async with gitlab.host() as host:
        await host.read_pull_request(gitlab.repo, ONE)
        await host.set_status(gitlab.repo, gitlab.head(), OURS)
    assert [one.pipeline for one in own_statuses(gitlab)] == [pipeline.id]


@asynchronous
async def test_our_own_success_is_not_a_passed_pipeline(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        passed = Status(context="mergeyard", state=StatusState.SUCCESS, at=Instant(0))
        await host.set_status(gitlab.repo, head, passed)
    assert await states(gitlab) == {}
