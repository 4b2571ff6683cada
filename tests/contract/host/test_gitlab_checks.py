"""Checks on GitLab from jobs, pipelines and external statuses, and our own status among them."""

import pytest

from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import Instant
from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.asynchronous import asynchronous

OURS = Status(context="mergeyard", state=StatusState.PENDING, at=Instant(0), url="https://queue.test/1")
STATUSES = {
    "success": {"success"},
    "failure": {"failed", "canceled", "canceling"},
    "pending": {"created", "waiting_for_resource", "preparing", "pending", "running", "manual", "scheduled"},
}


async def states(gitlab: GitlabEnvironment, sha: Sha | None = None) -> dict[str, str]:
    async with gitlab.host() as host:
        found = await host.statuses(gitlab.repo, sha or gitlab.head(), "main")
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


# Our own status


@asynchronous
async def test_our_own_status_is_shown_and_not_read_as_a_check(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, head, OURS)
        assert list(await host.statuses(gitlab.repo, head, "main")) == []
    (status,) = gitlab.project.statuses
    assert (status.name, status.status, status.target_url) == ("mergeyard", "pending", "https://queue.test/1")


@asynchronous
async def test_repeating_our_status_is_harmless_and_another_state_replaces_it(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        for state in ("pending", "pending", "success", "success", "pending", "failure", "error"):
            status = Status(context="mergeyard", state=StatusState(state), at=Instant(0), description="x" * 1000)
            await host.set_status(gitlab.repo, head, status)
    current = [one for one in gitlab.project.statuses if not one.outdated]
    assert [(one.status, one.description) for one in current] == [("failed", "x" * 255)]


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


@asynchronous
async def test_a_refused_status_for_a_fork_is_no_error(gitlab: GitlabEnvironment):
    fork = gitlab.gitlab.create_project("ada/app")
    fork.origin.run("fetch", "--quiet", gitlab.origin.url, "+refs/heads/main:refs/heads/main")
    fork.origin.branch("topic", base="main", files={"b.txt": "1"})
    gitlab.acts.open_merge_request(gitlab.project, "topic", source=fork)
    async with gitlab.host() as host:
        await host.set_status(gitlab.repo, gitlab.head(), OURS)
    assert gitlab.project.statuses == []


@asynchronous
async def test_our_own_success_is_not_a_passed_pipeline(gitlab: GitlabEnvironment):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        passed = Status(context="mergeyard", state=StatusState.SUCCESS, at=Instant(0))
        await host.set_status(gitlab.repo, head, passed)
    assert await states(gitlab) == {}
