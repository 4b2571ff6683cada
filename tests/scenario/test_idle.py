"""A queue in which nothing happens costs no git process, and wakes up by itself."""

import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copytree, which

import pytest

from mergeyard.adapters.host_plain.host import PlainHost
from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import DAY, HOUR
from mergeyard.ports.forge import Host
from mergeyard.ports.git import Remote
from mergeyard.service.metrics import REGISTRY
from tests.support.asynchronous import asynchronous
from tests.support.scenario import MINUTE, SECOND, Scenario, ScenarioSetup

HOUR_NS = 3600 * 10**9
GitLog = Callable[[], list[str]]


@pytest.fixture
def git_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitLog:
    """Returns the commands of all git processes that the service started."""
    log, folder, git = tmp_path / "git.log", tmp_path / "bin", which("git")
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {git} "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return lambda: log.read_text().splitlines() if log.exists() else []


class LaggingHost(PlainHost):
    """Shows git an older copy of the repository, if there is one."""

    copy: Path | None = None

    async def remote(self, repo: Repo) -> Remote:
        return await super().remote(repo) if self.copy is None else Remote(str(self.copy))


class IdleScenario(Scenario):
    """An hour after everything on the disk, so that the host trusts the time stamps of the repository at once."""

    host: LaggingHost

    def _new_host(self) -> Host:
        folder, checks = self.folder / "repos", self.setup.checks
        self.host = LaggingHost(self.host_name, folder, checks, now_ns=lambda: time.time_ns() + HOUR_NS)
        return self.host


@asynccontextmanager
async def an_idle_scenario(folder: Path, poll_interval_ms: int = SECOND) -> AsyncGenerator[IdleScenario]:
    scenario = IdleScenario(folder, ScenarioSetup(poll_interval_ms=poll_interval_ms))
    await scenario.service.start()
    await scenario.create_queue()
    await scenario.wait_until_idle()
    try:
        yield scenario
    finally:
        await scenario.service.stop()


@asynchronous
async def test_an_idle_queue_starts_no_git_process(tmp_path: Path, git_log: GitLog):
    async with an_idle_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.advance_time(3 * MINUTE)
        started = git_log()
        await scenario.advance_time(MINUTE)
        assert git_log() == started


@asynchronous
async def test_pull_requests_that_wait_start_no_git_process(tmp_path: Path, git_log: GitLog):
    async with an_idle_scenario(tmp_path) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        await scenario.advance_time(3 * MINUTE)
        started = git_log()
        await scenario.advance_time(MINUTE)
        assert git_log() == started
        scenario.push(1, {"more": "m"})
        await scenario.advance_time(SECOND)
        assert await scenario.state(1) == "cancelled: pr_pushed"


@asynchronous
async def test_heads_are_fetched_only_when_a_pull_request_is_submitted(tmp_path: Path, git_log: GitLog):
    async with an_idle_scenario(tmp_path) as scenario:
        scenario.open(1)
        scenario.open(2, base="feature1")
        await scenario.advance_time(2 * SECOND)
        assert not any("refs/pull" in command and "ls-remote" in command for command in git_log())
        await scenario.submit(2)
        assert (await scenario.submission(2)).pull_request.contained_heads == {1: scenario.origin.tip("feature1")}


@asynchronous
async def test_a_target_branch_that_git_did_not_show_yet_is_read_again(tmp_path: Path):
    async with an_idle_scenario(tmp_path) as scenario:
        scenario.host.copy = Path(copytree(scenario.origin.path, tmp_path / "copy.git"))
        before, after = scenario.origin.tip("main"), scenario.origin.commit("main", {"new": "n"})
        await scenario.advance_time(2 * SECOND)
        assert scenario.queue_actor.queue.target_branch.tip == before
        scenario.host.copy = None
        await scenario.advance_time(2 * SECOND)
        assert scenario.queue_actor.queue.target_branch.tip == after


@asynchronous
async def test_a_restart_reads_nothing_of_an_idle_target_branch(tmp_path: Path, git_log: GitLog):
    async with an_idle_scenario(tmp_path) as scenario:
        await scenario.service.stop()
        before = len(git_log())
        await scenario.start()
        await scenario.advance_time(SECOND)
        fetches = [command for command in git_log()[before:] if "refs/heads/main" in command]
        assert fetches == []


def count_audited() -> float:
    return REGISTRY.get_sample_value("mergeyard_audit_landings_verified_total") or 0


@pytest.mark.long
@asynchronous
async def test_an_unchanged_target_branch_is_audited_less_and_less_often(tmp_path: Path):
    async with an_idle_scenario(tmp_path, poll_interval_ms=HOUR) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        audited = count_audited()
        await scenario.advance_time(15 * MINUTE)
        assert count_audited() - audited == 2
        await scenario.advance_time(DAY)
        in_a_day = count_audited() - audited
        assert 4 <= in_a_day <= 6
        await scenario.advance_time(DAY)
        assert count_audited() - audited == in_a_day + 1


@asynchronous
async def test_an_idle_repository_is_cleaned_up_less_and_less_often(tmp_path: Path, git_log: GitLog):
    def count_cleanups() -> int:
        return sum("ls-remote" in command and "--heads" in command for command in git_log())

    async with an_idle_scenario(tmp_path, poll_interval_ms=HOUR) as scenario:
        await scenario.advance_time(6 * MINUTE)
        cleanups = count_cleanups()
        assert cleanups >= 1
        await scenario.advance_time(2 * HOUR)
        assert count_cleanups() <= cleanups + 3
