"""The command line, run as a process of its own."""

import subprocess
import sys

from mergeyard import __version__


def mergeyard(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mergeyard", *arguments], capture_output=True, text=True, check=False)


def test_it_tells_its_version():
    assert mergeyard("--version").stdout == f"{__version__}\n"


def test_it_says_plainly_that_there_is_no_server_yet():
    answer = mergeyard("serve")
    assert answer.returncode == 1
    assert "no server yet" in answer.stderr


def test_the_demo_comes_out_as_it_should():
    answer = mergeyard("demo")
    assert answer.returncode == 0, answer.stdout
    assert "The main branch is green." in answer.stdout
