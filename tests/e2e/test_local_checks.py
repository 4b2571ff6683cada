"""A service that runs the checks itself: killed in the middle of one, it begins again and leaves nothing running."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.patience import SECONDS, eventually
from tests.support.premises import Premises
from tests.support.sandbox import sandbox_problem
from tests.support.server import Server

CONFIG = """\
version = 1

[checks]
unit = "{command}"
"""
COMMAND = "echo $$ >> {folder}/begun; while [ ! -f {folder}/go ]; do sleep 0.02; done; test ! -f bad"


class Checks:
    """Commands that write down their process, and wait until they may go on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def begun(self) -> list[int]:
        path = self._folder / "begun"
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def let_go(self) -> None:
        (self._folder / "go").touch()

    def alive(self) -> list[int]:
        return [process for process in self.begun if is_running(process)]


def is_running(process: int) -> bool:
    try:
        return b"begun" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.fixture
def checks(tmp_path: Path) -> Checks:
    return Checks(tmp_path)


@pytest.fixture
def premises(tmp_path: Path) -> Iterator[Premises]:
    config = CONFIG.format(command=COMMAND.format(folder=tmp_path))
    premises = Premises.prepared(tmp_path, {".mergeyard.toml": config}, checks="run", runner_sandbox="none")
    premises.api.post("createQueue")
    premises.ci.working = False
    yield premises
    premises.close()
    assert premises.server.complaints() == []


def test_what_passes_merges_and_what_fails_does_not(premises: Premises, checks: Checks):
    checks.let_go()
    good, bad = premises.open_pr({"a.txt": "1"}), premises.open_pr({"bad": "1"})
    premises.line_up(good, bad)
    assert premises.wait_for_end(good, bad) == ["merged", "failed"]
    assert set(premises.origin.files("main")) == {".mergeyard.toml", "a.txt"}


def test_a_check_that_was_killed_with_its_server_begins_again_and_leaves_no_process(premises: Premises, checks: Checks):
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    (orphan,) = premises.eventually(lambda: checks.begun)
    assert is_running(orphan)
    premises.server.kill()
    eventually(lambda: not is_running(orphan))
    premises.server.start()
    premises.eventually(lambda: len(checks.begun) == 2)
    checks.let_go()
    premises.wait_for("merged", number)


def test_a_server_that_ends_politely_takes_its_checks_with_it_and_goes_on_later(premises: Premises, checks: Checks):
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    premises.eventually(lambda: checks.begun)
    premises.server.stop()
    eventually(lambda: not checks.alive())
    premises.server.start()
    checks.let_go()
    premises.wait_for("merged", number)


def test_a_cancelled_pr_has_its_check_ended(premises: Premises, checks: Checks):
    number = premises.open_pr({"a.txt": "1"})
    premises.submit(number)
    premises.eventually(checks.alive)
    premises.cancel(number)
    premises.eventually(lambda: not checks.alive())


REFUSED = "bwrap: No permissions to create new namespace"


@pytest.fixture
def forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine where bubblewrap is installed, but may not create namespaces."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "bwrap"
    program.write_text(f"#!/bin/sh\necho '{REFUSED}' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


@pytest.mark.usefixtures("forbidden")
def test_without_a_sandbox_checks_run_with_a_warning_unless_it_is_demanded(tmp_path: Path):
    server = Server(tmp_path, "run")
    server.start()
    server.stop()
    (warning,) = [entry for entry in server.told() if entry["event"] == "checks_run_without_sandbox"]
    assert (warning["level"], warning["problem"]) == ("warning", REFUSED)
    strict = Server(tmp_path, "run", runner_sandbox="bwrap")
    strict.launch()
    assert strict.process.wait(SECONDS) != 0
    assert f"Checks cannot be sandboxed: {REFUSED}. Install bubblewrap" in (tmp_path / "server.log").read_text()


@pytest.mark.usefixtures("forbidden")
def test_a_server_that_runs_no_checks_needs_no_sandbox(tmp_path: Path):
    server = Server(tmp_path, "api", runner_sandbox="bwrap")
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
    server = Server(tmp_path, "api", runner_sandbox="none")
    server.config.write_text(server.config.read_text() + FORGE)
    server.surroundings["MERGEYARD_HOST_GIT_EXAMPLE_COM_TOKEN"] = "secret"
    server.start()
    server.stop()
    (warning,) = [entry for entry in server.told() if entry["event"] == "untrusted_checks_allowed"]
    assert (warning["level"], warning["host"]) == ("warning", "git.example.com")


ATTACKS = """\
for path in /proc/{server}/environ {data}/mergeyard.db {data}/mirrors {repos}; do test ! -e $path || exit 1; done
touch {data}/planted 2>/dev/null
setsid env -i sleep 1000 &
echo looked around
"""


@pytest.mark.skipif(sandbox_problem() is not None, reason=f"no sandbox here: {sandbox_problem()}")
def test_a_sandboxed_check_reaches_neither_the_server_nor_its_data(tmp_path: Path):
    config = CONFIG.format(command="sh test.sh")
    files = {".mergeyard.toml": config, "test.sh": "true"}
    premises = Premises.prepared(tmp_path, files, checks="run", runner_sandbox="bwrap")
    premises.api.post("createQueue")
    premises.ci.working = False
    data, repos = tmp_path / "data", tmp_path / "repos"
    attack = ATTACKS.format(server=premises.server.process.pid, data=data, repos=repos)
    number = premises.open_pr({"test.sh": attack})
    premises.submit(number)
    assert premises.wait_for_end(number) == ["merged"]
    (output,) = data.glob("checks/*/unit.log")
    assert output.read_text() == "looked around\n"
    assert not (data / "planted").exists()
    premises.close()
    assert premises.server.complaints() == []
