"""The command line, run as a process of its own."""

import subprocess
import sys

from mergeyard import __version__


def mergeyard(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mergeyard", *arguments], capture_output=True, text=True, check=False)


def test_it_tells_its_version():
    assert mergeyard("--version").stdout == f"{__version__}\n"


def test_what_nobody_foresaw_is_shown_and_looks_like_no_pull_request_that_failed():
    script = "import sys; sys.argv = ['mergeyard', 'stumble']\n"
    script += "from mergeyard.__main__ import app, main\napp.command('stumble')(lambda: 1 // 0)\nmain()"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (70, "")
    assert "ZeroDivisionError" in answer.stderr


def test_it_does_not_start_with_settings_that_are_wrong():
    answer = mergeyard("serve", "--port", "99999")
    assert answer.returncode == 1
    assert "--port: expected a whole number from 0 to 65535" in answer.stderr
