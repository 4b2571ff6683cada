"""Checks of a commit at GitHub, and which one counts if several have the same name."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant, later
from mergeyard.ports.forge import HostUnavailable
from tests.contract.host.github_environment import GithubEnvironment, github_environment
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.forges.faults import RespondsWith
from tests.support.forges.github.world import BranchProtection


async def states_of(host: GithubHost, env: GithubEnvironment, sha: Sha) -> dict[str, StatusState]:
    return {status.context: status.state for status in await host.statuses(env.repo, sha, "main")}


@asynchronous
async def test_a_status_is_read_with_all_its_fields(github: GithubEnvironment):
    head = github.open(1)
    status = github.acme.report_status(head, "ci/unit", "failure", "https://ci/1", description="2 of 300 failed")
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
async def test_a_check_run_is_read_with_its_suite(github: GithubEnvironment):
    head = github.open(1)
    done = Instant(int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * SECOND)
    github.acme.add_check_run(
        head, "unit", conclusion="success", completed_at=done, url="https://ci/2", title="All is well"
    )
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
async def test_every_conclusion_passes_or_fails(github: GithubEnvironment, conclusion: str):
    head = github.open(1)
    github.acme.add_check_run(head, "unit", conclusion=conclusion)
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": CONCLUSIONS[conclusion]}


@pytest.mark.parametrize("conclusion", ["stale", "startup_failure", "something new"])
@asynchronous
async def test_an_undocumented_or_unknown_conclusion_fails(github: GithubEnvironment, conclusion: str):
    head = github.open(1)
    run = b'{"id": 1, "name": "unit", "status": "completed", "conclusion": "%b"}' % conclusion.encode()
    body = b'{"total_count": 1, "check_runs": [%b]}' % run
    github.github.faults.plan(RespondsWith(200, body=body), "/check-runs")
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.FAILURE}


@pytest.mark.parametrize("status", ["queued", "in_progress", "waiting", "requested", "pending"])
@asynchronous
async def test_a_check_that_is_not_finished_is_pending(github: GithubEnvironment, status: str):
    head = github.open(1)
    github.acme.add_check_run(head, "unit", status)
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.PENDING}


@asynchronous
async def test_a_rerun_check_is_pending_again(github: GithubEnvironment):
    head = github.open(1)
    github.acme.add_check_run(head, "unit", conclusion="failure")
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.FAILURE}
        github.acme.add_check_run(head, "unit", "queued")
        assert await states_of(host, github, head) == {"unit": StatusState.PENDING}


TWO_SUITES = {
    "apps": ({"app": "One"}, {"app": "Other"}),
    "workflows": ({"suite": 1}, {"suite": 2}),
}


@pytest.mark.parametrize(("one", "other"), TWO_SUITES.values(), ids=TWO_SUITES)
@asynchronous
async def test_the_worse_of_two_suites_with_a_check_of_the_same_name_counts(
    github: GithubEnvironment, one: dict[str, Any], other: dict[str, Any]
):
    head = github.open(1)
    github.acme.add_check_run(head, "unit", conclusion="failure", **one)
    github.acme.add_check_run(head, "unit", conclusion="success", **other)
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.FAILURE}
        github.acme.add_check_run(head, "unit", "in_progress", **one)
        assert await states_of(host, github, head) == {"unit": StatusState.PENDING}
        github.acme.add_check_run(head, "unit", conclusion="success", **one)
        assert await states_of(host, github, head) == {"unit": StatusState.SUCCESS}


@pytest.mark.parametrize(("status", "conclusion"), [("failure", "success"), ("success", "failure")])
@asynchronous
async def test_the_worse_of_a_status_and_a_check_of_the_same_name_counts(
    github: GithubEnvironment, status: str, conclusion: str
):
    head = github.open(1)
    github.acme.report_status(head, "unit", status)
    github.acme.add_check_run(head, "unit", conclusion=conclusion)
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.FAILURE}


TIED = BranchProtection(contexts=["unit"], apps={"unit": 7})


@pytest.mark.parametrize("protection", ["protections", "rulesets"])
@asynchronous
async def test_a_passed_check_counts_only_from_the_app_that_must_report_it(github: GithubEnvironment, protection: str):
    head = github.open(1)
    getattr(github.acme, protection)["main"] = BranchProtection(contexts=["lint", "unit"], apps={"unit": 7})
    github.acme.add_check_run(head, "lint", conclusion="success")
    github.acme.add_check_run(head, "unit", conclusion="success")
    async with github.host() as host:
        assert await host.required_statuses(github.repo, "main") == ("lint", "unit")
        assert await states_of(host, github, head) == {"lint": StatusState.SUCCESS}
        github.acme.report_status(head, "unit", "success")
        assert await states_of(host, github, head) == {"lint": StatusState.SUCCESS}
        github.acme.add_check_run(head, "unit", conclusion="success", app="Seven", app_id=7)
        assert await states_of(host, github, head) == {"lint": StatusState.SUCCESS, "unit": StatusState.SUCCESS}


@asynchronous
async def test_a_status_from_the_required_app_counts(github: GithubEnvironment):
    head = github.open(1)
    github.acme.protections["main"] = TIED
    github.acme.report_status(head, "unit", "success", app=7)
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.SUCCESS}


@asynchronous
async def test_branch_rules_are_read_before_a_check_counts(github: GithubEnvironment):
    head = github.open(1)
    github.acme.protections["main"] = TIED
    github.acme.report_status(head, "unit", "success")
    async with github.host() as host:
        assert await states_of(host, github, head) == {}
        github.acme.report_status(head, "unit", "success", app=7)
        assert await states_of(host, github, head) == {"unit": StatusState.SUCCESS}


@pytest.mark.parametrize("path", ["/branches/main$", "/rules/"])
@pytest.mark.parametrize("status", [403, 503])
@asynchronous
async def test_no_check_counts_while_the_rules_cannot_be_read(github: GithubEnvironment, path: str, status: int):
    head = github.open(1)
    github.acme.protections["main"] = TIED
    github.acme.report_status(head, "unit", "success")
    github.github.faults.plan(RespondsWith(status), path)
    async with github.host() as host:
        with pytest.raises(HostUnavailable):
            await host.statuses(github.repo, head, "main")
        assert await states_of(host, github, head) == {}


@asynchronous
async def test_rules_are_read_once_a_minute_for_all_commits(tmp_path: Path):
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        heads = [github.open(1), github.open(2)]
        github.acme.report_status(heads[0], "unit", "success")
        async with github.host() as host:
            for head in heads:
                await host.statuses(github.repo, head, "main")
            assert sum("/rules/" in call for call in github.github.faults.calls) == 1
            github.acme.protections["main"] = TIED
            assert await states_of(host, github, heads[0]) == {"unit": StatusState.SUCCESS}
            clock.move_to(later(clock.now(), MINUTE))
            assert await states_of(host, github, heads[0]) == {}


@asynchronous
async def test_only_the_rules_of_the_target_branch_count(github: GithubEnvironment):
    head = github.open(1, base="release")
    github.acme.protections["release"] = TIED
    github.acme.report_status(head, "unit", "success")
    async with github.host() as host:
        assert await host.statuses(github.repo, head, "main")
        assert not await host.statuses(github.repo, head, "release")


@asynchronous
async def test_every_page_of_statuses_and_checks_is_read_and_our_own_left_out(github: GithubEnvironment):
    head = github.open(1)
    github.acme.report_status(head, "mergeyard", "pending")
    for number in range(120):
        github.acme.report_status(head, f"status {number}", "success")
        github.acme.add_check_run(head, f"check {number}", conclusion="success")
    async with github.host() as host:
        assert len(await host.statuses(github.repo, head, "main")) == 240


@asynchronous
async def test_a_commit_without_reports_has_no_checks(github: GithubEnvironment):
    head = github.open(1)
    async with github.host() as host:
        assert await host.statuses(github.repo, head, "main") == ()
