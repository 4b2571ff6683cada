"""tools/setup.sh fills .venv: with less for `make demo` than for `make test`, and each only once."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDING_INSTALLER = '#!/bin/sh\necho "$@" >>installed\n'
SYSTEM_PATH = "/usr/bin:/bin"


class Checkout:
    """A copy of what the script reads, in a folder with a space, and an installer that installs nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a checkout"
        for name in ("tools/setup.sh", "requirements/run.txt", "requirements/test.txt"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.folder / name)
        self.programs = folder / "programs"
        self.programs.mkdir()

    def add_installer(self) -> None:
        uv = self.programs / "uv"
        uv.write_text(RECORDING_INSTALLER)
        uv.chmod(0o755)

    def set_up(self, lock: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "tools/setup.sh", lock],
            cwd=self.folder,
            env={"PYTHON": python, "PATH": f"{self.programs}:{SYSTEM_PATH}"},
            capture_output=True,
            text=True,
            check=False,
        )

    def install(self, lock: str) -> list[str]:
        """The lock files that were installed."""
        result = self.set_up(lock)
        assert result.returncode == 0, result.stderr
        calls = self.folder / "installed"
        lines = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        assert all("--require-hashes" in line for line in lines)
        return [line.rpartition("/")[2] for line in lines]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    checkout = Checkout(tmp_path)
    checkout.add_installer()
    return checkout


def test_demo_needs_only_the_lock_of_the_product_and_tests_add_the_rest(checkout: Checkout):
    assert checkout.install("run") == ["run.txt"]
    assert checkout.install("run") == []
    created = (checkout.folder / ".venv").stat().st_ino
    assert checkout.install("test") == ["test.txt"]
    assert (checkout.folder / ".venv").stat().st_ino == created
    assert checkout.install("test") == []
    assert checkout.install("run") == []


def test_environment_of_another_lock_is_replaced(checkout: Checkout):
    assert checkout.install("test") == ["test.txt"]
    assert checkout.install("run") == []
    (checkout.folder / ".venv" / "old").touch()
    for name in ("run", "test"):
        (checkout.folder / "requirements" / f"{name}.txt").write_text("# newer\n")
    assert checkout.install("run") == ["run.txt"]
    assert not (checkout.folder / ".venv" / "old").exists()


def test_command_runs_the_sources_of_the_checkout(checkout: Checkout):
    package = checkout.folder / "src" / "mergeyard"
    package.mkdir(parents=True)
    (package / "__main__.py").write_text("import sys\n\n\ndef main():\n    print(sys.argv[1:])\n")
    checkout.install("run")
    command = [checkout.folder / ".venv" / "bin" / "mergeyard", "status", "a b"]
    assert subprocess.check_output(command, cwd="/", text=True) == "['status', 'a b']\n"


def test_missing_python_is_explained(checkout: Checkout):
    result = checkout.set_up("run", "python-that-is-missing /bin/false")
    assert result.returncode != 0
    assert "needs Python 3.11 or newer, and found none among: python-that-is-missing /bin/false." in result.stderr
    assert "PYTHON=/path/to/python3" in result.stderr


def test_missing_pip_is_explained(tmp_path: Path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    result = Checkout(tmp_path).set_up("run", python)
    assert result.returncode != 0
    assert f"{python} has no pip. Install pip (on Debian and Ubuntu: sudo apt-get install python3-pip)" in result.stderr
