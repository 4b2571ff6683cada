"""The commands of the page about plain Git print what the page shows."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import json

from tests.support.polling import TIMEOUT_S, eventually

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "start" / "plain-git.md"
PRINTED_ADDRESS = "http://127.0.0.1:8080"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


SERVER, *USER = blocks(PAGE, "sh")


class Terminals:
    """A checkout of Mergeyard as after `make setup`, on a machine where the default port may be in use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "MERGEYARD_PORT": "0",
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.org",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org",
        }
        subprocess.run(["git", "init", "--quiet", folder], check=True)
        subprocess.run(["git", "-C", folder, "remote", "add", "origin", "https://git.example.com/a/b"], check=True)
        command = folder / ".venv" / "bin" / "mergeyard"
        command.parent.mkdir(parents=True)
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mergeyard "$@"\n')
        command.chmod(0o755)

    @contextmanager
    def run_server(self, commands: str) -> Generator[str]:
        """The first terminal: runs the server and yields its address."""
        log = self.folder / "server.log"
        with log.open("wb") as errors:
            shell = subprocess.Popen(
                ["bash", "-euc", commands],
                cwd=self.folder,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        try:
            yield eventually(lambda: find_address(log), describe=log.read_text)
        finally:
            os.killpg(shell.pid, signal.SIGTERM)
            shell.wait()

    def run_user(self, commands: str) -> str:
        """The second terminal: runs the commands of the user and returns the output."""
        result = subprocess.run(
            ["bash", "-euc", commands],
            cwd=self.folder / "yard",
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        )
        output = result.stdout.decode()
        assert result.returncode == 0, output
        return output


def find_address(log: Path) -> str:
    lines = [line for line in log.read_bytes().splitlines() if b'"listening"' in line]
    return json.decode(lines[0])["url"] if lines else ""


@pytest.fixture
def terminals(tmp_path: Path) -> Terminals:
    return Terminals(tmp_path)


@pytest.mark.long
def test_quick_start_prints_what_the_page_shows(terminals: Terminals):
    with terminals.run_server(SERVER) as address:
        output = terminals.run_user("".join(USER).replace(PRINTED_ADDRESS, address))
    for block in blocks(PAGE, "text"):
        lines = [re.escape(line) for line in block.splitlines()]
        assert re.search("^.*" + "[^\0]*\n.*".join(lines), output, re.MULTILINE), output
    assert "It failed." in output
    commits = [line for line in output.splitlines() if re.match(r"[0-9a-f]{7,} ", line)]
    assert len(commits) == 3 + 4
