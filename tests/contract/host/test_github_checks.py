"""Checks of a commit at GitHub, and which one counts if several have the same name."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mergeyard.adapters.forges.github.host import GithubHost
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import HOUR, MINUTE, SECOND, Instant, later
from mergeyard.ports.forge import HostError
from tests.contract.host.github_environment import GithubEnvironment, github_environment
from tests.support.asynchronous import asynchronous
from tests.support.clock import ManualClock
from tests.support.forges.faults import RespondsWith
from tests.support.forges.github.world import BranchProtection, PublicApp


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


# Apps without a logo


JENKINS = PublicApp(id=7, slug="jenkins", has_logo=False)


@pytest.mark.parametrize("other", [{"app": 8}, {"creator": "eve"}, {"creator": "jenkins[bot]"}], ids=str)
@asynchronous
async def test_a_status_from_the_required_app_counts_also_if_the_app_has_no_logo(
    github: GithubEnvironment, other: dict[str, Any]
):
    """Of another app and of a user it does not count, whatever name they have."""
    head = github.open(1)
    github.acme.protections["main"] = TIED
    github.github.auth.public_apps |= {"jenkins": JENKINS, "other": PublicApp(id=8, slug="other", has_logo=False)}
    github.acme.report_status(head, "unit", "success", **other)
    async with github.host() as host:
        assert await states_of(host, github, head) == {}
        github.acme.report_status(head, "unit", "success", app=7)
        assert await states_of(host, github, head) == {"unit": StatusState.SUCCESS}
        github.acme.report_status(head, "unit", "success", **other)
        assert await states_of(host, github, head) == {}


@asynchronous
async def test_the_app_of_a_status_is_found_among_many_reports(github: GithubEnvironment):
    head = github.open(1)
    github.acme.protections["main"] = TIED
    github.github.auth.public_apps["jenkins"] = JENKINS
    github.acme.report_status(head, "unit", "success", app=7)
    for number in range(100):
        github.acme.report_status(head, f"lint {number % 3}", "success")
    async with github.host() as host:
        assert (await states_of(host, github, head))["unit"] is StatusState.SUCCESS


@asynchronous
async def test_the_creators_of_statuses_are_read_only_where_a_success_depends_on_them(github: GithubEnvironment):
    head = github.open(1)
    github.acme.protections["main"] = BranchProtection(contexts=["lint", "unit"], apps={"unit": 7})
    github.github.auth.public_apps["jenkins"] = JENKINS
    async with github.host() as host:
        github.acme.report_status(head, "lint", "success", app=7)
        github.acme.report_status(head, "unit", "pending", app=7)
        assert await states_of(host, github, head) == {"lint": StatusState.SUCCESS, "unit": StatusState.PENDING}
        assert not any("/statuses" in call or "/apps/" in call for call in github.github.faults.calls)


@asynchronous
async def test_the_id_of_an_app_is_read_once_an_hour(tmp_path: Path):
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        head = github.open(1)
        github.acme.protections["main"] = TIED
        github.github.auth.public_apps["jenkins"] = JENKINS
        github.acme.report_status(head, "unit", "success", app=7)
        async with github.host() as host:
            for hours in range(3):
                for _ in range(2):
                    assert await states_of(host, github, head) == {"unit": StatusState.SUCCESS}
                assert sum("/apps/" in call for call in github.github.faults.calls) == 1 + hours
                clock.move_to(later(clock.now(), HOUR))


@pytest.mark.parametrize("status", [403, 404])
@asynchronous
async def test_a_status_of_an_app_that_github_does_not_show_does_not_count(github: GithubEnvironment, status: int):
    head = github.open(1)
    github.acme.protections["main"] = TIED
    github.github.auth.public_apps["jenkins"] = JENKINS
    github.acme.report_status(head, "unit", "success", app=7)
    github.github.faults.plan(RespondsWith(status), "/apps/")
    async with github.host() as host:
        assert await states_of(host, github, head) == {}


# Names


@asynchronous
async def test_names_are_compared_without_case_and_reported_also_as_the_rule_spells_them(github: GithubEnvironment):
    """The queue compares names exactly. It can require a check by the name that CI reports."""
    head = github.open(1)
    github.acme.protections["main"] = BranchProtection(contexts=["Unit", "Mergeyard"], apps={"Unit": 7})
    github.acme.rulesets["main"] = BranchProtection(contexts=["LINT", "unit"])
    github.acme.report_status(head, "lint", "success")
    github.acme.report_status(head, "UNIT", "success")
    github.acme.report_status(head, "MERGEYARD", "success")
    async with github.host() as host:
        assert await host.required_statuses(github.repo, "main") == ("LINT", "Unit")
        lint = {"LINT": StatusState.SUCCESS, "lint": StatusState.SUCCESS}
        assert await states_of(host, github, head) == lint
        github.acme.report_status(head, "UNIT", "success", app=7)
        assert await states_of(host, github, head) == lint | dict.fromkeys(["Unit", "UNIT"], StatusState.SUCCESS)
        github.acme.add_check_run(head, "uNIT", conclusion="failure")
        failed = dict.fromkeys(["Unit", "UNIT", "uNIT"], StatusState.FAILURE)
        assert await states_of(host, github, head) == lint | failed


@asynchronous
async def test_names_that_no_rule_requires_are_different_if_their_case_differs(github: GithubEnvironment):
    head = github.open(1)
    github.acme.report_status(head, "unit", "success")
    github.acme.add_check_run(head, "Unit", conclusion="failure")
    async with github.host() as host:
        assert await states_of(host, github, head) == {"unit": StatusState.SUCCESS, "Unit": StatusState.FAILURE}


# Workflows that cannot start


ACTIONS = 15368
BOUND = BranchProtection(contexts=["unit"], apps={"unit": ACTIONS})
UNBOUND = BranchProtection(contexts=["unit"])


@pytest.mark.parametrize(("protection", "minutes"), [(BOUND, 5), (UNBOUND, 30)], ids=["bound", "unbound"])
@pytest.mark.parametrize("conclusion", ["startup_failure", "failure"])
@asynchronous
async def test_a_required_check_fails_if_its_workflow_could_not_start(
    tmp_path: Path, protection: BranchProtection, minutes: int, conclusion: str
):
    """But not at once: another workflow can still report it, or another CI if the check is bound to no app."""
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        head = github.open(1)
        github.acme.protections["main"] = protection
        github.acme.add_check_run(head, "lint", conclusion="success")
        github.acme.report_status(head, "coverage", "success", app=ACTIONS)
        github.acme.report_status(head, "mergeyard", "pending")
        github.acme.fail_startup(head).conclusion = conclusion
        async with github.host() as host:
            clock.move_to(later(clock.now(), (minutes - 1) * MINUTE))
            others = {"coverage": StatusState.SUCCESS, "lint": StatusState.SUCCESS}
            assert await states_of(host, github, head) == others
            clock.move_to(later(clock.now(), MINUTE))
            failure = {status.context: status for status in await host.statuses(github.repo, head, "main")}["unit"]
            assert (failure.state, failure.suite) == (StatusState.FAILURE, "GitHub Actions")
            assert "could not start a workflow" in failure.description
            assert failure.url == f"{github.github.web_url}/acme/app/commit/{head}/checks"
            assert failure in await host.statuses(github.repo, head, "main")


OTHER_CAUSES: dict[str, Callable[[GithubEnvironment, Sha], object]] = {
    "the check is reported": lambda env, sha: env.acme.add_check_run(sha, "unit", conclusion="success"),
    "the app has another suite in progress": lambda env, sha: env.acme.add_check_run(sha, "build", "in_progress"),
    "the app has another suite without runs": lambda env, sha: env.acme.add_check_suite(sha, "queued"),
}


@pytest.mark.parametrize("happen", OTHER_CAUSES.values(), ids=OTHER_CAUSES)
@pytest.mark.parametrize("protection", [BOUND, UNBOUND], ids=["bound", "unbound"])
@asynchronous
async def test_a_workflow_that_could_not_start_is_no_failure_while_the_check_can_pass(
    tmp_path: Path, protection: BranchProtection, happen: Callable[[GithubEnvironment, Sha], object]
):
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        head = github.open(1)
        github.acme.protections["main"] = protection
        github.acme.fail_startup(head)
        happen(github, head)
        clock.move_to(later(clock.now(), HOUR))
        async with github.host() as host:
            assert StatusState.FAILURE not in (await states_of(host, github, head)).values()


@asynchronous
async def test_a_workflow_that_could_not_start_fails_only_checks_of_its_app(tmp_path: Path):
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        head = github.open(1)
        apps = {"unit": ACTIONS, "integration": 7}
        github.acme.protections["main"] = BranchProtection(contexts=["any", "integration", "unit"], apps=apps)
        github.acme.report_status(head, "other CI", "success")
        github.acme.fail_startup(head)
        clock.move_to(later(clock.now(), HOUR))
        async with github.host() as host:
            expected = {"other CI": StatusState.SUCCESS, "unit": StatusState.FAILURE}
            assert await states_of(host, github, head) == expected


OTHER_CIS: dict[str, Callable[[GithubEnvironment, Sha], object]] = {
    "a status of a user": lambda env, sha: env.acme.report_status(sha, "build", "success"),
    "a status of an app": lambda env, sha: env.acme.report_status(sha, "build", "failure", app=7),
    "a status that does not count": lambda env, sha: env.acme.report_status(sha, "integration", "success"),
    "a check of an app": lambda env, sha: env.acme.add_check_run(
        sha, "build", conclusion="success", app="Seven", app_id=7
    ),
    "an app without a report": lambda env, sha: env.acme.add_check_suite(sha, "queued", app="Seven", app_id=7),
    "an app that ended without a report": lambda env, sha: env.acme.add_check_suite(
        sha, "completed", "success", app="Seven", app_id=7
    ),
    "another app that could not start": lambda env, sha: env.acme.fail_startup(sha, app="Seven", app_id=7),
    "a pending status of the same app": lambda env, sha: env.acme.report_status(sha, "build", "pending", app=ACTIONS),
}


@pytest.mark.parametrize("show", OTHER_CIS.values(), ids=OTHER_CIS)
@asynchronous
async def test_a_check_bound_to_no_app_does_not_fail_while_another_ci_can_report_it(
    tmp_path: Path, show: Callable[[GithubEnvironment, Sha], object]
):
    """The workflow that could not start can be an optional one."""
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        head = github.open(1)
        github.acme.protections["main"] = BranchProtection(contexts=["any", "integration"], apps={"integration": 8})
        github.acme.fail_startup(head)
        clock.move_to(later(clock.now(), HOUR))
        async with github.host() as host:
            assert await states_of(host, github, head) == {"any": StatusState.FAILURE}
            show(github, head)
            assert "any" not in await states_of(host, github, head)


@asynchronous
async def test_a_check_bound_to_no_app_does_not_fail_because_of_another_app_than_actions(tmp_path: Path):
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        head = github.open(1)
        github.acme.protections["main"] = UNBOUND
        github.acme.fail_startup(head, app="Seven", app_id=7)
        clock.move_to(later(clock.now(), HOUR))
        async with github.host() as host:
            assert await states_of(host, github, head) == {}


@asynchronous
async def test_check_suites_are_read_only_while_a_required_check_has_no_report(github: GithubEnvironment):
    head = github.open(1)
    github.acme.protections["main"] = UNBOUND
    async with github.host() as host:
        await host.statuses(github.repo, head, "main")
        assert sum("/check-suites" in call for call in github.github.faults.calls) == 1
        github.acme.report_status(head, "unit", "pending")
        await host.statuses(github.repo, head, "main")
        assert sum("/check-suites" in call for call in github.github.faults.calls) == 1


@asynchronous
async def test_suites_that_do_not_fit_on_a_page_are_not_judged(tmp_path: Path):
    clock = ManualClock()
    with github_environment(tmp_path, clock) as github:
        head = github.open(1)
        github.acme.protections["main"] = UNBOUND
        for number in range(100):
            github.acme.fail_startup(head, app=f"App {number}")
        clock.move_to(later(clock.now(), HOUR))
        async with github.host() as host:
            assert await states_of(host, github, head) == {}


# Rules


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
        with pytest.raises(HostError):
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
