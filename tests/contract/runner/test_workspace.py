"""The commands of a killed service end with it, and the next service removes its checkouts and no others."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mergeyard.adapters.runner_local.process import make_writable
from mergeyard.domain.ids import RunId
from tests.contract.runner.environment import RunnerEnvironment, final_results
from tests.contract.runner.test_runner import PASSED, is_alive
from tests.support.asynchronous import asynchronous


async def run_service() -> None:
    """The other process: it runs a command that never ends, and prints a line once the command has started."""
    env = RunnerEnvironment(Path(sys.argv[1]))
    runner = env.open_runner()
    await runner.start(env.job(unit="sleep 1000 & setsid env -i sleep 1000 & echo $$ $!; wait", done="echo done"))
    await final_results(runner)
    while len((await runner.output(RunId("run-1"), "unit") or b"").split()) < 2:
        await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.Event().wait()


@contextmanager
def another_service(folder: Path) -> Generator[subprocess.Popen[str]]:
    """Starts another process that runs a command which never ends."""
    root = Path(__file__).parents[3]
    script = f"import asyncio; from {__name__} import run_service; asyncio.run(run_service())"
    command = [sys.executable, "-c", script, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as service:
        try:
            assert service.stdout
            assert service.stdout.readline() == "ready\n"
            yield service
        finally:
            service.kill()


def commands_of(env: RunnerEnvironment) -> list[int]:
    return [int(number) for number in (env.runs / "run-1" / "unit.log").read_text().split()]


@asynchronous
async def test_commands_end_with_a_killed_service_and_its_runs_can_begin_again(tmp_path: Path):
    with another_service(tmp_path / "old") as service:
        env = RunnerEnvironment(tmp_path / "new")
        env.runs = tmp_path / "old" / "runs"
        commands = commands_of(env)
        assert [is_alive(number) for number in commands] == [True, True]
        os.kill(service.pid, signal.SIGKILL)
        service.wait()
    async with env.runner() as runner:
        assert [is_alive(number) for number in commands] == [False, False]
        assert env.checkouts() == []
        assert await runner.output(RunId("run-1"), "done") == b"done\n"
        await runner.start(env.job(unit="true"))
        assert await final_results(runner) == {"unit": PASSED}


@asynchronous
async def test_commands_of_a_running_service_are_left_alone(tmp_path: Path):
    with another_service(tmp_path / "old") as service:
        env = RunnerEnvironment(tmp_path / "new")
        env.runs = tmp_path / "old" / "runs"
        at_work = commands_of(env)
        async with env.runner():
            assert [is_alive(number) for number in at_work] == [True, True]
            assert env.checkouts()
        service.kill()
        service.wait()
        async with env.runner():
            assert [is_alive(number) for number in at_work] == [False, False]


def test_protected_folders_are_opened_for_removal_and_links_are_not_followed(tmp_path: Path):
    outside, inside = tmp_path / "outside", tmp_path / "work" / "a" / "b"
    outside.mkdir()
    outside.chmod(0o755)
    inside.mkdir(parents=True)
    (inside / "link").symlink_to(outside)
    inside.chmod(0o000)
    make_writable(tmp_path / "work")
    assert [oct(folder.stat().st_mode & 0o777) for folder in (inside, outside)] == ["0o700", "0o755"]
