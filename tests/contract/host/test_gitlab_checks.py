"""What jobs, pipelines and others say on GitLab, and how our own word stands among them."""

import pytest

from mergeyard.domain.ids import Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.statuses import Status, StatusState
from tests.contract.host.gitlab_stage import GitlabStage
from tests.support.asynchronous import asynchronous

OURS = Status(context="mergeyard", state=StatusState.PENDING, at=Instant(0), url="https://queue.test/1")
WORDS = {
    "success": {"success"},
    "failure": {"failed", "canceled", "canceling"},
    "pending": {"created", "waiting_for_resource", "preparing", "pending", "running", "manual", "scheduled"},
}


async def states(gitlab: GitlabStage, sha: Sha | None = None) -> dict[str, str]:
    async with gitlab.host() as host:
        found = await host.statuses(gitlab.repo, sha or gitlab.head(), "main")
        assert len({status.context for status in found}) == len(found)
        return {status.context: status.state.value for status in found}


@asynchronous
async def test_every_word_of_a_job_means_something(gitlab: GitlabStage):
    gitlab.open(1)
    pipeline = gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1")
    for words in WORDS.values():
        for word in words:
            gitlab.acts.job(gitlab.project, pipeline, word, word)
    found = await states(gitlab)
    assert {state: {word for word in words if found[word] == state} for state, words in WORDS.items()} == WORDS


@asynchronous
async def test_jobs_belong_to_the_pipeline_and_what_others_report_does_not(gitlab: GitlabStage):
    head = gitlab.open(1)
    pipeline = gitlab.acts.pipeline(gitlab.project, head, "topic-1")
    job = gitlab.acts.job(gitlab.project, pipeline, "unit", "success")
    reported = gitlab.acts.report(gitlab.project, pipeline, "coverage", "failed", by=gitlab.world.person("ada"))
    assert reported
    reported.target_url, reported.description = "https://coverage.test", "61 %"
    async with gitlab.host() as host:
        found = {status.context: status for status in await host.statuses(gitlab.repo, head, "main")}
    assert {name: status.suite for name, status in found.items()} == {
        "unit": "pipeline",
        "coverage": "",
        "pipeline": "pipeline",
    }
    page = f"{gitlab.world.pages}/acme/app/-/jobs/{job.id}"
    assert (found["unit"].url, found["coverage"].url) == (page, "https://coverage.test")
    assert found["coverage"].description == "61 %"
    assert found["pipeline"].url == f"{gitlab.world.pages}/acme/app/-/pipelines/{pipeline.id}"
    assert found["pipeline"].state is StatusState.FAILURE


@asynchronous
async def test_a_job_that_may_fail_passes_when_it_does(gitlab: GitlabStage):
    gitlab.open(1)
    pipeline = gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1")
    gitlab.acts.job(gitlab.project, pipeline, "flaky", "failed", allow_failure=True)
    gitlab.acts.job(gitlab.project, pipeline, "unit", "success")
    assert await states(gitlab) == {"flaky": "neutral", "unit": "success", "pipeline": "success"}


@asynchronous
async def test_a_job_that_was_retried_counts_as_it_is_now(gitlab: GitlabStage):
    gitlab.open(1)
    first = gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1")
    gitlab.acts.job(gitlab.project, first, "unit", "failed")
    assert await states(gitlab) == {"unit": "failure", "pipeline": "failure"}
    gitlab.acts.job(gitlab.project, first, "unit", "running")
    assert await states(gitlab) == {"unit": "pending", "pipeline": "pending"}
    again = gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1")
    gitlab.acts.job(gitlab.project, again, "unit", "success")
    assert await states(gitlab) == {"unit": "success", "pipeline": "success"}


@asynchronous
async def test_of_two_pipelines_of_one_commit_both_must_pass(gitlab: GitlabStage):
    gitlab.open(1)
    gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1", status="failed")
    gitlab.acts.pipeline(gitlab.project, gitlab.head(), "refs/merge-requests/1/head", status="success")
    assert await states(gitlab) == {"pipeline": "failure"}


@pytest.mark.parametrize("states_in_turn", [("failed", "success"), ("success", "failed")])
@asynchronous
async def test_a_job_that_failed_in_one_of_two_pipelines_has_failed(
    gitlab: GitlabStage, states_in_turn: tuple[str, str]
):
    gitlab.open(1)
    for ref, state in zip(("topic-1", "refs/merge-requests/1/head"), states_in_turn, strict=True):
        pipeline = gitlab.acts.pipeline(gitlab.project, gitlab.head(), ref)
        gitlab.acts.job(gitlab.project, pipeline, "unit", state)
    assert await states(gitlab) == {"unit": "failure", "pipeline": "failure"}


@asynchronous
async def test_a_job_that_still_runs_in_one_of_two_pipelines_has_not_passed(gitlab: GitlabStage):
    gitlab.open(1)
    for ref, state in (("topic-1", "running"), ("refs/merge-requests/1/head", "success")):
        pipeline = gitlab.acts.pipeline(gitlab.project, gitlab.head(), ref)
        gitlab.acts.job(gitlab.project, pipeline, "unit", state)
    assert await states(gitlab) == {"unit": "pending", "pipeline": "pending"}


@pytest.mark.parametrize(("of_job", "of_status"), [("failed", "success"), ("success", "failed")])
@asynchronous
async def test_neither_a_job_nor_a_status_of_the_same_name_hides_the_other(
    gitlab: GitlabStage, of_job: str, of_status: str
):
    gitlab.open(1)
    first = gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1")
    gitlab.acts.job(gitlab.project, first, "unit", of_job)
    second = gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1", source="external")
    gitlab.acts.report(gitlab.project, second, "unit", of_status, by=gitlab.world.person("ada"))
    assert (await states(gitlab))["unit"] == "failure"


@pytest.mark.parametrize("is_bridge", [False, True])
@pytest.mark.parametrize("shows_address", [False, True])
@asynchronous
async def test_a_status_that_claims_the_address_of_a_job_does_not_overrule_the_failed_job(
    gitlab: GitlabStage, is_bridge: bool, shows_address: bool
):
    """Some versions of GitLab show the address of a job with its status, and others do not."""
    gitlab.open(1)
    first = gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1")
    job = gitlab.acts.job(gitlab.project, first, "unit", "failed", is_bridge=is_bridge)
    job.target_url = f"{gitlab.world.pages}/acme/app/-/jobs/{job.id}" if shows_address else None
    second = gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1", source="external")
    claim = gitlab.acts.report(gitlab.project, second, "unit", "success", by=gitlab.world.person("ada"))
    assert claim
    claim.target_url = f"{gitlab.world.pages}/acme/app/-/jobs/{claim.id}"
    assert (await states(gitlab))["unit"] == "failure"


@pytest.mark.parametrize(
    ("build", "expected", "skipped"),
    [("success", "success", "skipped"), ("failed", "failure", "failure"), ("running", "pending", "pending")],
)
@asynchronous
async def test_a_skipped_job_is_skipped_only_in_a_pipeline_that_passed(
    gitlab: GitlabStage, build: str, expected: str, skipped: str
):
    gitlab.open(1)
    pipeline = gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1")
    gitlab.acts.job(gitlab.project, pipeline, "build", build)
    gitlab.acts.job(gitlab.project, pipeline, "e2e", "skipped")
    gitlab.acts.job(gitlab.project, pipeline, "lint", "skipped", allow_failure=True)
    assert await states(gitlab) == {"build": expected, "e2e": skipped, "lint": skipped, "pipeline": expected}


@asynchronous
async def test_a_skipped_job_waits_for_no_word_of_ours(gitlab: GitlabStage):
    head = gitlab.open(1)
    pipeline = gitlab.acts.pipeline(gitlab.project, head, "topic-1")
    gitlab.acts.job(gitlab.project, pipeline, "build", "success")
    gitlab.acts.job(gitlab.project, pipeline, "e2e", "skipped")
    async with gitlab.host() as host:
        await host.show_status(gitlab.repo, head, OURS)
    assert await states(gitlab) == {"build": "success", "e2e": "skipped", "pipeline": "success"}


@asynchronous
async def test_a_pipeline_in_which_everything_was_skipped_has_tested_nothing_whatever_we_say(gitlab: GitlabStage):
    head = gitlab.open(1)
    pipeline = gitlab.acts.pipeline(gitlab.project, head, "topic-1")
    gitlab.acts.job(gitlab.project, pipeline, "unit", "skipped")
    assert await states(gitlab) == {"unit": "failure", "pipeline": "failure"}
    async with gitlab.host() as host:
        await host.show_status(gitlab.repo, head, OURS)
    assert await states(gitlab) == {"unit": "failure", "pipeline": "failure"}
    gitlab.project.skipped_is_fine = True
    assert await states(gitlab) == {"unit": "skipped", "pipeline": "skipped"}


@asynchronous
async def test_a_pipeline_that_was_skipped_has_tested_nothing(gitlab: GitlabStage):
    gitlab.open(1)
    gitlab.acts.pipeline(gitlab.project, gitlab.head(), "topic-1", status="skipped")
    assert await states(gitlab) == {"pipeline": "failure"}
    gitlab.project.skipped_is_fine = True
    assert await states(gitlab) == {"pipeline": "skipped"}
    gitlab.project.skipped_is_fine = False
    gitlab.acts.pipeline(gitlab.project, gitlab.head(), "refs/merge-requests/1/head", status="success")
    assert await states(gitlab) == {"pipeline": "success"}


@asynchronous
async def test_a_skipped_pipeline_of_a_test_branch_never_passes(gitlab: GitlabStage):
    gitlab.open(1)
    gitlab.project.skipped_is_fine = True
    gitlab.acts.pipeline(gitlab.project, gitlab.head(), "mergeyard/pr-1/0", status="skipped")
    assert await states(gitlab) == {"pipeline": "failure"}
    pipeline = gitlab.acts.pipeline(gitlab.project, gitlab.head(), "mergeyard/pr-1/0")
    gitlab.acts.job(gitlab.project, pipeline, "unit", "skipped")
    assert await states(gitlab) == {"unit": "failure", "pipeline": "failure"}
    gitlab.acts.pipeline(gitlab.project, gitlab.head(), "refs/merge-requests/2/head", status="skipped")
    assert await states(gitlab) == {"unit": "failure", "pipeline": "failure"}


@asynchronous
async def test_nobody_said_anything_about_a_commit_without_pipeline(gitlab: GitlabStage):
    gitlab.open(1)
    assert await states(gitlab) == {}
    assert await states(gitlab, Sha("1" * 40)) == {}


@asynchronous
async def test_a_pipeline_is_required_where_the_project_wants_it_to_succeed(gitlab: GitlabStage):
    async with gitlab.host() as host:
        assert await host.required_statuses(gitlab.repo, "main") == ()
        gitlab.project.pipelines_must_succeed = True
        assert await host.required_statuses(gitlab.repo, "main") == ("pipeline",)


# Our own word


@asynchronous
async def test_our_word_is_shown_and_not_read_as_that_of_others(gitlab: GitlabStage):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        await host.show_status(gitlab.repo, head, OURS)
        assert list(await host.statuses(gitlab.repo, head, "main")) == []
    (shown,) = gitlab.project.reported
    assert (shown.name, shown.status, shown.target_url) == ("mergeyard", "pending", "https://queue.test/1")


@asynchronous
async def test_saying_it_again_is_harmless_and_saying_something_else_takes_its_place(gitlab: GitlabStage):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        for state in ("pending", "pending", "success", "success", "pending", "failure", "error"):
            status = Status(context="mergeyard", state=StatusState(state), at=Instant(0), description="x" * 1000)
            await host.show_status(gitlab.repo, head, status)
    current = [one for one in gitlab.project.reported if not one.outdated]
    assert [(one.status, one.description) for one in current] == [("failed", "x" * 255)]


@asynchronous
async def test_a_pipeline_does_not_wait_for_our_own_word(gitlab: GitlabStage):
    head = gitlab.open(1)
    pipeline = gitlab.acts.pipeline(gitlab.project, head, "topic-1")
    gitlab.acts.job(gitlab.project, pipeline, "unit", "success")
    gitlab.acts.job(gitlab.project, pipeline, "deploy", "manual", allow_failure=True)
    async with gitlab.host() as host:
        await host.show_status(gitlab.repo, head, OURS)
    assert await states(gitlab) == {"unit": "success", "deploy": "pending", "pipeline": "success"}
    gitlab.acts.job(gitlab.project, pipeline, "late", "running")
    assert (await states(gitlab))["pipeline"] == "pending"
    gitlab.acts.job(gitlab.project, pipeline, "late", "failed")
    assert (await states(gitlab))["pipeline"] == "failure"


@asynchronous
async def test_where_gitlab_takes_no_status_for_a_fork_nothing_breaks(gitlab: GitlabStage):
    fork = gitlab.gitlab.project("ada/app")
    fork.origin.run("fetch", "--quiet", gitlab.origin.url, "+refs/heads/main:refs/heads/main")
    fork.origin.branch("topic", upon="main", files={"b.txt": "1"})
    gitlab.acts.open(gitlab.project, "topic", source=fork)
    async with gitlab.host() as host:
        await host.show_status(gitlab.repo, gitlab.head(), OURS)
    assert gitlab.project.reported == []


@asynchronous
async def test_our_own_success_is_no_pipeline_that_succeeded(gitlab: GitlabStage):
    head = gitlab.open(1)
    async with gitlab.host() as host:
        passed = Status(context="mergeyard", state=StatusState.SUCCESS, at=Instant(0))
        await host.show_status(gitlab.repo, head, passed)
    assert await states(gitlab) == {}
