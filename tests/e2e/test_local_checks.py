"""A service that runs the checks itself: killed in the middle of one, it begins again and leaves nothing running."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.patience import eventually
from tests.support.premises import Premises

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
    premises = Premises.prepared(tmp_path, {".mergeyard.toml": config}, checks="run")
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
    premises.server.kill()
    assert is_running(orphan)
    premises.server.start()
    premises.eventually(lambda: len(checks.begun) == 2)
    assert not is_running(orphan)
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
