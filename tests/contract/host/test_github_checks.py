"""What is reported at GitHub about a commit, and whose word counts where several report the same."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.domain.ids import Sha
from mergeyard.domain.instants import MINUTE, SECOND, Instant, later
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.ports.host import HostTrouble
from tests.contract.host.github_stage import GithubStage, github_stage
from tests.support.asynchronous import asynchronous
from tests.support.clock import HandClock
from tests.support.forges.faults import Answers
from tests.support.forges.github.facts import Guard


async def states_of(host: GithubHost, stage: GithubStage, sha: Sha) -> dict[str, StatusState]:
    return {status.context: status.state for status in await host.statuses(stage.repo, sha, "main")}


@asynchronous
async def test_a_status_is_shown_with_all_that_its_reporter_said(github: GithubStage):
    head = github.open(1)
    status = github.acme.reports(head, "ci/unit", "failure", "https://ci/1", description="2 of 300 failed")
    async with github.host() as host:
        assert await host.statuses(github.repo, head, "main") == (
            Status(
                context="ci/unit",
                state=StatusState.FAILURE,
                at=Instant(status.at // SECOND * SECOND),
                url="https://ci/1",
                description="2 of 300 failed",
            ),
        )


@asynchronous
async def test_a_check_run_is_shown_with_its_suite(github: GithubStage):
    head = github.open(1)
    done = Instant(int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * SECOND)
    github.acme.runs(head, "unit", conclusion="success", completed_at=done, url="https://ci/2", title="All is well")
    async with github.host() as host:
        assert await host.statuses(github.repo, head, "main") == (
            Status(
                context="unit",
                state=StatusState.SUCCESS,
                at=done,
                url="https://ci/2",
                description="All is well",
                suite="GitHub Actions",
            ),
        )


CONCLUSIONS = {
    "success": StatusState.SUCCESS,
    "neutral": StatusState.NEUTRAL,
    "skipped": StatusState.SKIPPED,
    "failure": StatusState.FAILURE,
    "cancelled": StatusState.FAILURE,
    "timed_out": StatusState.FAILURE,
    "action_required": StatusState.FAILURE,
}


@pytest.mark.parametrize("conclusion", CONCLUSIONS)
@asynchronous
async def test_every_conclusion_passes_or_fails(github: GithubStage, conclusion: str):
    head = github.open(1)
    github.acme.runs(head, "unit", conclusion=conclusion)
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": CONCLUSIONS[conclusion]}


@pytest.mark.parametrize("conclusion", ["stale", "startup_failure", "something new"])
@asynchronous
async def test_what_is_undescribed_or_unheard_of_fails(github: GithubStage, conclusion: str):
    head = github.open(1)
    run = b'{"id": 1, "name": "unit", "status": "completed", "conclusion": "%b"}' % conclusion.encode()
    body = b'{"total_count": 1, "check_runs": [%b]}' % run
    github.github.faults.plan(Answers(200, body=body), "/check-runs")
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.FAILURE}


@pytest.mark.parametrize("status", ["queued", "in_progress", "waiting", "requested", "pending"])
@asynchronous
async def test_a_check_that_is_not_finished_is_pending(github: GithubStage, status: str):
    head = github.open(1)
    github.acme.runs(head, "unit", status)
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.PENDING}


@asynchronous
async def test_a_check_that_runs_again_is_no_longer_what_it_was(github: GithubStage):
    head = github.open(1)
    github.acme.runs(head, "unit", conclusion="failure")
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.FAILURE}
        github.acme.runs(head, "unit", "queued")
        assert await states_of(host, github, head) == {"unit": StatusState.PENDING}


TWO_SUITES = {
    "apps": ({"app": "One"}, {"app": "Other"}),
    "workflows": ({"suite": 1}, {"suite": 2}),
}


@pytest.mark.parametrize(("one", "other"), TWO_SUITES.values(), ids=TWO_SUITES)
@asynchronous
async def test_of_two_suites_with_a_check_of_the_same_name_the_worse_counts(
    github: GithubStage, one: dict[str, Any], other: dict[str, Any]
):
    head = github.open(1)
    github.acme.runs(head, "unit", conclusion="failure", **one)
    github.acme.runs(head, "unit", conclusion="success", **other)
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.FAILURE}
        github.acme.runs(head, "unit", "in_progress", **one)
        assert await states_of(host, github, head) == {"unit": StatusState.PENDING}
        github.acme.runs(head, "unit", conclusion="success", **one)
        assert await states_of(host, github, head) == {"unit": StatusState.SUCCESS}


@pytest.mark.parametrize(("status", "conclusion"), [("failure", "success"), ("success", "failure")])
@asynchronous
async def test_of_a_status_and_a_check_of_the_same_name_the_worse_counts(
    github: GithubStage, status: str, conclusion: str
):
    head = github.open(1)
    github.acme.reports(head, "unit", status)
    github.acme.runs(head, "unit", conclusion=conclusion)
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.FAILURE}


TIED = Guard(contexts=["unit"], apps={"unit": 7})


@pytest.mark.parametrize("protection", ["guards", "rulesets"])
@asynchronous
async def test_that_a_check_passed_is_believed_only_of_the_app_that_must_report_it(
    github: GithubStage, protection: str
):
    head = github.open(1)
    getattr(github.acme, protection)["main"] = Guard(contexts=["lint", "unit"], apps={"unit": 7})
    github.acme.runs(head, "lint", conclusion="success")
    github.acme.runs(head, "unit", conclusion="success")
    async with github.host() as host:
        assert await host.required_statuses(github.repo, "main") == ("lint", "unit")
        assert await states_of(host, github, head) == {"lint": StatusState.SUCCESS}
        github.acme.reports(head, "unit", "success")
        assert await states_of(host, github, head) == {"lint": StatusState.SUCCESS}
        github.acme.runs(head, "unit", conclusion="success", app="Seven", app_id=7)
        assert await states_of(host, github, head) == {"lint": StatusState.SUCCESS, "unit": StatusState.SUCCESS}


@asynchronous
async def test_a_status_that_the_right_app_reports_is_believed(github: GithubStage):
    head = github.open(1)
    github.acme.guards["main"] = TIED
    github.acme.reports(head, "unit", "success", app=7)
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.SUCCESS}


@asynchronous
async def test_rules_that_nobody_asked_for_are_read_before_anything_is_believed(github: GithubStage):
    head = github.open(1)
    github.acme.guards["main"] = TIED
    github.acme.reports(head, "unit", "success")
    async with github.host() as host:
        assert await states_of(host, github, head) == {}
        github.acme.reports(head, "unit", "success", app=7)
        assert await states_of(host, github, head) == {"unit": StatusState.SUCCESS}


@pytest.mark.parametrize("path", ["/branches/main$", "/rules/"])
@pytest.mark.parametrize("status", [403, 503])
@asynchronous
async def test_as_long_as_the_rules_cannot_be_read_nothing_is_believed(github: GithubStage, path: str, status: int):
    head = github.open(1)
    github.acme.guards["main"] = TIED
    github.acme.reports(head, "unit", "success")
    github.github.faults.plan(Answers(status), path)
    async with github.host() as host:
        with pytest.raises(HostTrouble):
            await host.statuses(github.repo, head, "main")
        assert await states_of(host, github, head) == {}


@asynchronous
async def test_rules_are_read_once_a_minute_for_all_commits(tmp_path: Path):
    clock = HandClock()
    with github_stage(tmp_path, clock) as github:
        heads = [github.open(1), github.open(2)]
        github.acme.reports(heads[0], "unit", "success")
        async with github.host() as host:
            for head in heads:
                await host.statuses(github.repo, head, "main")
            assert sum("/rules/" in call for call in github.github.faults.calls) == 1
            github.acme.guards["main"] = TIED
            assert await states_of(host, github, heads[0]) == {"unit": StatusState.SUCCESS}
            clock.move_to(later(clock.now(), MINUTE))
            assert await states_of(host, github, heads[0]) == {}


@asynchronous
async def test_only_the_rules_of_the_branch_count_on_which_it_is_to_land(github: GithubStage):
    head = github.open(1, base="release")
    github.acme.guards["release"] = TIED
    github.acme.reports(head, "unit", "success")
    async with github.host() as host:
        assert await host.statuses(github.repo, head, "main")
        assert not await host.statuses(github.repo, head, "release")


@asynchronous
async def test_every_page_of_statuses_and_checks_is_read_and_our_own_left_out(github: GithubStage):
    head = github.open(1)
    github.acme.reports(head, "mergeyard", "pending")
    for number in range(120):
        github.acme.reports(head, f"status {number}", "success")
        github.acme.runs(head, f"check {number}", conclusion="success")
    async with github.host() as host:
        assert len(await host.statuses(github.repo, head, "main")) == 240


@asynchronous
async def test_of_a_commit_that_nobody_spoke_of_there_is_nothing(github: GithubStage):
    head = github.open(1)
    async with github.host() as host:
        assert await host.statuses(github.repo, head, "main") == ()
