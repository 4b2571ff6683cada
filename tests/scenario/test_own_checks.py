"""Where the service is its own CI: commands of the target's head, run on the test branch."""

from pathlib import Path

from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.host import ChecksFrom
from mergeyard.service.submissions import Wish
from tests.support.asynchronous import asynchronous
from tests.support.scenario import REPO, SECOND, Stage, a_scenario
from tests.support.waiting import come_true

STABLE = QueueKey(REPO, "stable")


def checked_by(**commands: str) -> Stage:
    lines = [f"{name} = '''{command}'''" for name, command in commands.items()]
    return Stage(rules="\n".join(["version = 1", "[checks]", *lines]), checks=ChecksFrom.RUN)


@asynchronous
async def test_a_command_that_succeeds_lets_a_pull_request_merge(tmp_path: Path):
    async with a_scenario(tmp_path, stage=checked_by(unit="test -e file1")) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_command_that_fails_stops_a_pull_request_and_the_target_is_checked_too(tmp_path: Path):
    async with a_scenario(tmp_path, stage=checked_by(unit="test ! -e file1")) as scenario:
        scenario.open(1, 2)
        await scenario.submit(1, 2)
        assert await scenario.state(1) == "failed: test_run_failed"
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert "file1" not in scenario.origin.files("main")


@asynchronous
async def test_every_command_must_succeed(tmp_path: Path):
    async with a_scenario(tmp_path, stage=checked_by(unit="true", lint="test ! -e file1")) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: test_run_failed"


@asynchronous
async def test_a_pull_request_does_not_choose_how_it_is_checked(tmp_path: Path):
    async with a_scenario(tmp_path, stage=checked_by(unit="test ! -e bad")) as scenario:
        scenario.open(1, files={".mergeyard.toml": checked_by(unit="true").rules, "bad": "b"})
        await scenario.submit(1)
        assert await scenario.state(1) == "failed: test_run_failed"


@asynchronous
async def test_a_status_without_a_command_is_an_error_with_words(tmp_path: Path):
    rules = 'version = 1\nrequired_statuses = ["unit", "lint"]\n[checks]\nunit = "true"\n'
    async with a_scenario(tmp_path, stage=Stage(rules=rules, checks=ChecksFrom.RUN)) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        tip = scenario.origin.tip("main")
        assert scenario.origin.subjects("main") == ["A change"]
        run = (await scenario.stay(1)).run
        assert run
        seen = await scenario.service.runs.show(scenario.keeper.key, run)
        (lint,) = [status for status in seen.statuses if status.context == "lint"]
        assert lint.state == "error"
        assert lint.description == "[checks] of .mergeyard.toml on the target branch has no command for it"
        assert lint.url == f"http://yard.example/runs/{run}/checks/lint"
        assert scenario.origin.tip("main") == tip


@asynchronous
async def test_the_output_of_a_command_is_kept(tmp_path: Path):
    async with a_scenario(tmp_path, stage=checked_by(unit="cat file1; echo done")) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        run = (await scenario.stay(1)).verified_by
        assert run
        assert await scenario.service.runner.output(run, "unit") == b"1\ndone\n"


@asynchronous
async def test_the_commands_of_a_run_that_was_given_up_are_stopped(tmp_path: Path):
    async with a_scenario(tmp_path, stage=checked_by(unit=until_opened(tmp_path))) as scenario:
        scenario.open(1)
        await scenario.hand_in(1)
        await come_true((tmp_path / "begun").exists)
        await scenario.service.submissions.cancel(scenario.errand(1))
        await scenario.rest()
        assert scenario.service.runner.running() == frozenset()
        assert await scenario.state(1) == "cancelled: cancelled_by_user"


@asynchronous
async def test_commands_are_started_again_by_the_next_process(tmp_path: Path):
    async with a_scenario(tmp_path, stage=checked_by(unit=until_opened(tmp_path))) as scenario:
        scenario.open(1)
        await scenario.hand_in(1)
        await come_true((tmp_path / "begun").exists)
        await scenario.service.stop()
        (tmp_path / "opened").touch()
        await scenario.starts()
        assert await scenario.state(1) == "merged: merged_by_queue"


@asynchronous
async def test_a_check_that_was_dropped_on_the_target_meanwhile_fails_nobody(tmp_path: Path):
    gated = f"test ! -e file2 || {{ {until_opened(tmp_path)}; }}"
    async with a_scenario(tmp_path, stage=checked_by(unit=gated, lint="true")) as scenario:
        scenario.open(1, files={".mergeyard.toml": checked_by(unit=gated).rules, "file1": "1"})
        scenario.open(2)
        before = scenario.origin.tip("main")
        await scenario.hand_in(1)
        await scenario.keeper.until(lambda queue: bool(queue.runs))
        await scenario.hand_in(2)
        await scenario.keeper.until(lambda queue: queue.target.tip != before)
        await come_true((tmp_path / "begun").exists)
        await scenario.service.stop()
        (tmp_path / "opened").touch()
        await scenario.starts()
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_a_result_that_cannot_be_stored_is_told_again(tmp_path: Path):
    async with a_scenario(tmp_path, stage=checked_by(unit=until_opened(tmp_path))) as scenario:
        scenario.open(1, 2)
        await scenario.hand_in(1)
        await come_true((tmp_path / "begun").exists)
        await scenario.keeper.until(lambda queue: any(run.checks for run in queue.runs.values()))
        scenario.store.failures = 1
        (tmp_path / "opened").touch()
        await come_true(lambda: not scenario.store.failures)
        await scenario.time_passes(3 * SECOND)
        assert await scenario.state(1) == "merged: merged_by_queue"
        await scenario.submit(2)
        assert await scenario.state(2) == "merged: merged_by_queue"


@asynchronous
async def test_another_queue_of_the_same_repository_stops_nobodys_commands(tmp_path: Path):
    async with a_scenario(tmp_path, stage=checked_by(unit=until_opened(tmp_path))) as scenario:
        scenario.origin.branch("stable", upon="main")
        await scenario.create_queue(key=STABLE)
        scenario.open(1)
        await scenario.hand_in(1)
        await come_true((tmp_path / "begun").exists)
        working = scenario.service.runner.running()
        scenario.open(2)
        scenario.set_pull(2, base="stable")
        await scenario.service.submissions.submit(scenario.errand(2, STABLE), Wish())
        await come_true(lambda: len(scenario.service.runner.running()) > 1)
        assert working < scenario.service.runner.running()
        (tmp_path / "opened").touch()
        await scenario.rest()
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert (tmp_path / "begun").read_text() == "begun\n" * 2


def until_opened(folder: Path) -> str:
    return f"echo begun >> {folder}/begun; while [ ! -e {folder}/opened ]; do sleep 0.02; done"
