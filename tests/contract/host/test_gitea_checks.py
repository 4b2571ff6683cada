"""Statuses that CI reports to Gitea, and which of them a branch requires."""

import pytest
from msgspec.structs import replace

from mergeyard.adapters.forges.rate_limits import WritePace
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.forge import HostUnavailable
from tests.contract.host.gitea_environment import GiteaEnvironment
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_the_latest_status_of_each_context_counts_on_any_page(gitea: GiteaEnvironment):
    head = gitea.open(1)
    for number in range(51):
        gitea.project.report(head, "unit", "pending", description=str(number))
    gitea.project.report(head, "unit", "failure", target_url="https://ci.example.org/1", description="2 failed")
    gitea.project.report(head, "lint", "success")
    gitea.project.report(head, "mergeyard", "pending")
    async with gitea.host() as host:
        found = {status.context: status for status in await host.statuses(gitea.repo, head, "main")}
        assert found.keys() == {"unit", "lint"}
        unit = found["unit"]
        fields = (unit.state, unit.url, unit.description, unit.suite)
        assert fields == (StatusState.FAILURE, "https://ci.example.org/1", "2 failed", "")


@asynchronous
async def test_every_status_state_is_mapped(gitea: GiteaEnvironment):
    meant = {
        "pending": "pending",
        "success": "success",
        "skipped": "skipped",
        "failure": "failure",
        "error": "error",
        "warning": "failure",
    }
    tip = gitea.project.origin.tip("main")
    for status in meant:
        gitea.project.report(tip, status, status)
    async with gitea.host() as host:
        assert {each.context: each.state for each in await host.statuses(gitea.repo, tip, "main")} == meant


@asynchronous
async def test_an_unknown_commit_has_no_statuses(gitea: GiteaEnvironment):
    async with gitea.host() as host:
        assert await host.statuses(gitea.repo, Sha("1" * 40), "main") == []


@asynchronous
async def test_our_own_status_of_a_commit_is_shown(gitea: GiteaEnvironment):
    head = gitea.open(1)
    async with gitea.host() as host:
        status = Status(context="mergeyard", state=StatusState.PENDING, at=Instant(0), url="https://q.example.org/1")
        await host.set_status(gitea.repo, head, status)
        await host.set_status(gitea.repo, head, replace(status, state=StatusState.SUCCESS))
    assert gitea.project.statuses(head) == {"mergeyard": "success"}


@asynchronous
async def test_only_an_urgent_status_does_not_wait_for_other_writes(gitea: GiteaEnvironment):
    head = gitea.open(1)
    success = Status(context="mergeyard", state=StatusState.SUCCESS, at=Instant(0))
    async with gitea.host(write_pace=WritePace(interval_ms=0, per_minute=1, per_hour=1)) as host:
        await host.set_status(gitea.repo, head, success)
        await host.set_status(gitea.repo, head, replace(success, state=StatusState.PENDING), urgent=True)
        with pytest.raises(HostUnavailable, match="limits how much we write"):
            await host.set_status(gitea.repo, head, success)
    assert gitea.project.statuses(head) == {"mergeyard": "pending"}


@asynchronous
async def test_required_statuses_are_those_of_the_rule_that_fits_the_branch_but_never_our_own(gitea: GiteaEnvironment):
    gitea.project.commit("release/1", {"r.txt": "1"}, base="main")
    async with gitea.host() as host:
        assert await host.required_statuses(gitea.repo, "main") == ()
        gitea.project.protect("release/*", ["unit", "mergeyard", "lint"])
        assert await host.required_statuses(gitea.repo, "release/1") == ("unit", "lint")
        assert await host.required_statuses(gitea.repo, "main") == ()
        assert await host.required_statuses(gitea.repo, "gone") == ()
