"""Local checks: after a kill the server runs them again, and no process is left running."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.environment import ServerEnvironment
from tests.support.forked_server import ForkedServer
from tests.support.polling import TIMEOUT_S, eventually
from tests.support.sandbox import sandbox_problem

CONFIG = """\
version = 1

[checks]
unit = "{command}"
"""
COMMAND = "echo $$ >> {folder}/started; while [ ! -f {folder}/go ]; do sleep 0.02; done; test ! -f bad"


class Checks:
    """Commands that record their process id and wait until they are released."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def started(self) -> list[int]:
        path = self._folder / "started"
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def release(self) -> None:
        (self._folder / "go").touch()

    def alive(self) -> list[int]:
        return [process for process in self.started if is_running(process)]


def is_running(process: int) -> bool:
    try:
        return b"started" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.fixture
def checks(tmp_path: Path) -> Checks:
    return Checks(tmp_path)


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ServerEnvironment]:
    config = CONFIG.format(command=COMMAND.format(folder=tmp_path))
    env = ServerEnvironment.start(tmp_path, {".mergeyard.toml": config}, checks="run", runner_sandbox="none")
    env.api.post("createQueue")
    env.ci.enabled = False
    yield env
    env.close()
    assert env.server.logged_errors() == []


def test_passing_pr_merges_and_failing_pr_does_not(env: ServerEnvironment, checks: Checks):
    checks.release()
    good, bad = env.open_pr({"a.txt": "1"}), env.open_pr({"bad": "1"})
    env.submit_in_order(good, bad)
    assert env.wait_for_end(good, bad) == ["merged", "failed"]
    assert set(env.origin.files("main")) == {".mergeyard.toml", "a.txt"}


@pytest.mark.long
def test_check_of_a_killed_server_is_run_again_and_leaves_no_process(env: ServerEnvironment, checks: Checks):
    number = env.open_pr({"a.txt": "1"})
    env.submit(number)
    (process,) = env.eventually(lambda: checks.started)
    assert is_running(process)
    env.server.kill()
    eventually(lambda: not is_running(process))
    env.server.start()
    env.eventually(lambda: len(checks.started) == 2)
    checks.release()
    env.wait_for("merged", number)


@pytest.mark.long
def test_server_shutdown_stops_checks_and_they_are_run_again_later(env: ServerEnvironment, checks: Checks):
    number = env.open_pr({"a.txt": "1"})
    env.submit(number)
    env.eventually(lambda: checks.started)
    env.server.stop()
    eventually(lambda: not checks.alive())
    env.server.start()
    checks.release()
    env.wait_for("merged", number)


@pytest.mark.long
def test_cancelling_a_pr_stops_its_check(env: ServerEnvironment, checks: Checks):
    number = env.open_pr({"a.txt": "1"})
    env.submit(number)
    env.eventually(checks.alive)
    env.cancel(number)
    env.eventually(lambda: not checks.alive())


REFUSED = "bwrap: No permissions to create new namespace"


@pytest.fixture
def forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine where bubblewrap is installed, but cannot create namespaces."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "bwrap"
    program.write_text(f"#!/bin/sh\necho '{REFUSED}' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


@pytest.mark.usefixtures("forbidden")
def test_without_a_sandbox_checks_run_with_a_warning_unless_it_is_required(tmp_path: Path):
    server = ForkedServer(tmp_path, "run")
    server.start()
    server.stop()
    (warning,) = [entry for entry in server.log_entries() if entry["event"] == "checks_run_without_sandbox"]
    assert (warning["level"], warning["error"]) == ("warning", REFUSED)
    strict = ForkedServer(tmp_path, "run", runner_sandbox="bwrap")
    strict.launch()
    assert strict.process.wait(TIMEOUT_S) != 0
    assert f"Checks cannot be sandboxed: {REFUSED}. Install bubblewrap" in (tmp_path / "server.log").read_text()


@pytest.mark.usefixtures("forbidden")
def test_a_server_that_runs_no_checks_needs_no_sandbox(tmp_path: Path):
    server = ForkedServer(tmp_path, "api", runner_sandbox="bwrap")
    server.start()
    server.stop()


FORGE = """
[hosts."git.example.com"]
provider = "gitea"
url = "http://127.0.0.1:9"
checks = "run"
allow_untrusted_checks = true
"""


def test_a_server_that_runs_checks_of_a_forge_warns_at_start(tmp_path: Path):
    server = ForkedServer(tmp_path, "api", runner_sandbox="none")
    server.config.write_text(server.config.read_text() + FORGE)
    server.environment["MERGEYARD_HOST_GIT_EXAMPLE_COM_TOKEN"] = "secret"
    server.start()
    server.stop()
    (warning,) = [entry for entry in server.log_entries() if entry["event"] == "untrusted_checks_allowed"]
    assert (warning["level"], warning["host"]) == ("warning", "git.example.com")


ATTACKS = """\
for path in /proc/{server}/environ {data}/mergeyard.db {data}/mirrors {repos}; do test ! -e $path || exit 1; done
touch {data}/planted 2>/dev/null
setsid env -i sleep 1000 &
echo finished
"""


@pytest.mark.skipif(sandbox_problem() is not None, reason=f"no sandbox here: {sandbox_problem()}")
def test_a_sandboxed_check_reaches_neither_the_server_nor_its_data(tmp_path: Path):
    config = CONFIG.format(command="sh test.sh")
    files = {".mergeyard.toml": config, "test.sh": "true"}
    env = ServerEnvironment.start(tmp_path, files, checks="run", runner_sandbox="bwrap")
    env.api.post("createQueue")
    env.ci.enabled = False
    data, repos = tmp_path / "data", tmp_path / "repos"
    attack = ATTACKS.format(server=env.server.process.pid, data=data, repos=repos)
    number = env.open_pr({"test.sh": attack})
    env.submit(number)
    assert env.wait_for_end(number) == ["merged"]
    (output,) = data.glob("checks/*/unit.log")
    assert output.read_text() == "finished\n"
    assert not (data / "planted").exists()
    env.close()
    assert env.server.logged_errors() == []
