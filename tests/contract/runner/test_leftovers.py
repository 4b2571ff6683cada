"""The commands of a service that was killed end with it, and the next service removes its checkouts, and no others."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from mergeyard.adapters.runner_local.workshop import open_all_doors
from mergeyard.domain.ids import RunId
from tests.contract.runner.stage import Stage, ends
from tests.contract.runner.test_runner import PASSED, is_alive
from tests.support.asynchronous import asynchronous

SERVICE = """
import asyncio, sys
from pathlib import Path
from tests.contract.runner.stage import Stage, ends

async def main():
    stage = Stage(Path(sys.argv[1]))
    runner = stage.opened()
    await runner.start(stage.job(unit="sleep 1000 & setsid env -i sleep 1000 & echo $$ $!; wait", done="echo done"))
    await ends(runner)
    while len((await runner.output("run-1", "unit") or b"").split()) < 2:
        await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@contextmanager
def another_service(folder: Path) -> Generator[subprocess.Popen[str]]:
    """A process of its own that runs a command which never ends."""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", SERVICE, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as service:
        try:
            assert service.stdout
            assert service.stdout.readline() == "ready\n"
            yield service
        finally:
            service.kill()


def commands_of(stage: Stage) -> list[int]:
    return [int(number) for number in (stage.runs / "run-1" / "unit.log").read_text().split()]


@asynchronous
async def test_commands_end_with_a_killed_service_and_its_runs_can_begin_again(tmp_path: Path):
    with another_service(tmp_path / "old") as service:
        stage = Stage(tmp_path / "new")
        stage.runs = tmp_path / "old" / "runs"
        commands = commands_of(stage)
        assert [is_alive(number) for number in commands] == [True, True]
        os.kill(service.pid, signal.SIGKILL)
        service.wait()
    async with stage.runner() as runner:
        assert [is_alive(number) for number in commands] == [False, False]
        assert stage.work_places() == []
        assert await runner.output(RunId("run-1"), "done") == b"done\n"
        await runner.start(stage.job(unit="true"))
        assert await ends(runner) == {"unit": PASSED}


@asynchronous
async def test_what_a_living_service_does_is_left_alone(tmp_path: Path):
    with another_service(tmp_path / "old") as service:
        stage = Stage(tmp_path / "new")
        stage.runs = tmp_path / "old" / "runs"
        at_work = commands_of(stage)
        async with stage.runner():
            assert [is_alive(number) for number in at_work] == [True, True]
            assert stage.work_places()
        service.kill()
        service.wait()
        async with stage.runner():
            assert [is_alive(number) for number in at_work] == [False, False]


def test_protected_folders_are_opened_for_removal_and_links_are_not_followed(tmp_path: Path):
    outside, inside = tmp_path / "outside", tmp_path / "work" / "a" / "b"
    outside.mkdir()
    outside.chmod(0o755)
    inside.mkdir(parents=True)
    (inside / "link").symlink_to(outside)
    inside.chmod(0o000)
    open_all_doors(tmp_path / "work")
    assert [oct(folder.stat().st_mode & 0o777) for folder in (inside, outside)] == ["0o700", "0o755"]
