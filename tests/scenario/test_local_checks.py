"""Local checks: the service runs the commands of the target branch's configuration on the test branch."""

from pathlib import Path

import pytest

from mergeyard.domain.ids import QueueKey
from mergeyard.ports.forge import ChecksFrom
from mergeyard.service.submissions import SubmitOptions
from tests.support.asynchronous import asynchronous
from tests.support.polling import wait_until
from tests.support.scenario import REPO, SECOND, ScenarioSetup, a_scenario

STABLE = QueueKey(REPO, "stable")


def checked_by(**commands: str) -> ScenarioSetup:
    lines = [f"{name} = '''{command}'''" for name, command in commands.items()]
    return ScenarioSetup(repository_config="\n".join(["version = 1", "[checks]", *lines]), checks=ChecksFrom.RUN)


@asynchronous
async def test_a_command_that_succeeds_lets_a_pull_request_merge(tmp_path: Path):
    async with a_scenario(tmp_path, setup=checked_by(unit="test -e file1")) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_failing_command_fails_the_pr_after_the_base_is_tested(tmp_path: Path):
    async with a_scenario(tmp_path, setup=checked_by(unit="test ! -e file1")) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        assert await scenario.state(1) == "failed: test_run_failed"
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert "file1" not in scenario.origin.files("main")


@asynchronous
async def test_every_command_must_succeed(tmp_path: Path):
    async with a_scenario(tmp_path, setup=checked_by(unit="true", lint="test ! -e file1")) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: test_run_failed"


@asynchronous
async def test_a_pull_request_does_not_choose_how_it_is_checked(tmp_path: Path):
    async with a_scenario(tmp_path, setup=checked_by(unit="test ! -e bad")) as scenario:
        scenario.open(1, files={".mergeyard.toml": checked_by(unit="true").repository_config, "bad": "b"})
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: test_run_failed"


@asynchronous
async def test_a_check_that_a_pr_ahead_adds_is_run_for_those_behind_with_its_command(tmp_path: Path):
    async with a_scenario(
        tmp_path, setup=checked_by(unit=f"test -e file2 || {{ {until_opened(tmp_path)}; }}")
    ) as scenario:
        adds_lint = checked_by(unit="true", lint="test ! -e bad").repository_config
        scenario.open(1, files={".mergeyard.toml": adds_lint})
        scenario.open(2, files={"file2": "2", "bad": "b"})
        await scenario.submit_without_waiting(1)
        await scenario.submit_without_waiting(2)
        await scenario.queue_actor.wait_until(lambda queue: any(run.status == "failed" for run in queue.runs.values()))
        (tmp_path / "opened").touch()
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert await scenario.state(2) == "failed: test_run_failed"
        assert "bad" not in scenario.origin.files("main")


@asynchronous
async def test_required_check_without_a_command_is_an_error_with_an_explanation(tmp_path: Path):
    rules = 'version = 1\nrequired_statuses = ["unit", "lint"]\n[checks]\nunit = "true"\n'
    async with a_scenario(tmp_path, setup=ScenarioSetup(repository_config=rules, checks=ChecksFrom.RUN)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tip = scenario.origin.tip("main")
        assert scenario.origin.subjects("main") == ["A change"]
        run = (await scenario.submission(1)).run
        assert run
        seen = await scenario.service.runs.view_run(scenario.queue_actor.key, run)
        (lint,) = [status for status in seen.statuses if status.context == "lint"]
        assert lint.state == "error"
        assert lint.description == "[checks] in .mergeyard.toml on the target branch has no command for this check"
        assert lint.url == f"http://yard.example/runs/{run}/checks/lint"
        assert scenario.origin.tip("main") == tip


@asynchronous
async def test_the_output_of_a_command_is_kept(tmp_path: Path):
    async with a_scenario(tmp_path, setup=checked_by(unit="cat file1; echo done")) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        run = (await scenario.submission(1)).verified_by
        assert run
        assert await scenario.service.runner.output(run, "unit") == b"1\ndone\n"


@asynchronous
async def test_commands_of_a_discarded_run_are_stopped(tmp_path: Path):
    async with a_scenario(tmp_path, setup=checked_by(unit=until_opened(tmp_path))) as scenario:
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await wait_until((tmp_path / "begun").exists)
        await scenario.service.submissions.cancel(scenario.build_command(1))
        await scenario.wait_until_idle()
        assert scenario.service.runner.active_run_ids() == frozenset()
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_commands_are_started_again_after_a_restart(tmp_path: Path):
    async with a_scenario(tmp_path, setup=checked_by(unit=until_opened(tmp_path))) as scenario:
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await wait_until((tmp_path / "begun").exists)
        await scenario.service.stop()
        (tmp_path / "opened").touch()
        await scenario.start()
        assert await scenario.state(1) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_check_removed_on_the_target_branch_during_a_run_fails_no_pr(tmp_path: Path):
    gated = f"test ! -e file2 || {{ {until_opened(tmp_path)}; }}"
    async with a_scenario(tmp_path, setup=checked_by(unit=gated, lint="true")) as scenario:
        scenario.open(1, files={".mergeyard.toml": checked_by(unit=gated).repository_config, "file1": "1"})
        scenario.open(2)
        before = scenario.origin.tip("main")
        await scenario.submit_without_waiting(1)
        await scenario.queue_actor.wait_until(lambda queue: bool(queue.runs))
        await scenario.submit_without_waiting(2)
        await scenario.queue_actor.wait_until(lambda queue: queue.target_branch.tip != before)
        await wait_until((tmp_path / "begun").exists)
        await scenario.service.stop()
        (tmp_path / "opened").touch()
        await scenario.start()
        assert await scenario.state(2) == "merged: merged_by_queue"


@pytest.mark.long
@asynchronous
async def test_result_that_could_not_be_stored_is_reported_again(tmp_path: Path):
    async with a_scenario(tmp_path, setup=checked_by(unit=until_opened(tmp_path))) as scenario:
        scenario.open(1, 2)
        await scenario.submit_without_waiting(1)
        await wait_until((tmp_path / "begun").exists)
        await scenario.queue_actor.wait_until(lambda queue: any(run.checks for run in queue.runs.values()))
        scenario.store.failing_commits = 1
        (tmp_path / "opened").touch()
        await wait_until(lambda: not scenario.store.failing_commits)
        await scenario.advance_time(3 * SECOND)
        assert await scenario.state(1) == "merged: merged_by_queue"
        await scenario.submit(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_another_queue_of_the_same_repository_does_not_stop_commands(tmp_path: Path):
    async with a_scenario(tmp_path, setup=checked_by(unit=until_opened(tmp_path))) as scenario:
        scenario.origin.branch("stable", base="main")
        await scenario.create_queue(key=STABLE)
        scenario.open(1)
        await scenario.submit_without_waiting(1)
        await wait_until((tmp_path / "begun").exists)
        working = scenario.service.runner.active_run_ids()
        scenario.open(2)
        scenario.set_pull_request(2, base="stable")
        await scenario.service.submissions.submit(scenario.build_command(2, STABLE), SubmitOptions())
        await wait_until(lambda: len(scenario.service.runner.active_run_ids()) > 1)
        assert working < scenario.service.runner.active_run_ids()
        (tmp_path / "opened").touch()
        await scenario.wait_until_idle()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert (tmp_path / "begun").read_text() == "begun\n" * 2


def until_opened(folder: Path) -> str:
    return f"echo begun >> {folder}/begun; while [ ! -e {folder}/opened ]; do sleep 0.02; done"
