"""Whoever follows the quick start, word for word, sees what it says; and the README begins in the same way."""

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

from tests.support.patience import SECONDS, eventually

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "quick-start.md"
PRINTED_ADDRESS = "http://127.0.0.1:8080"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def promised(page: Path) -> list[str]:
    """What the reader is told to see."""
    return [line for block in blocks(page, "text") for line in block.splitlines()]


SERVER, *PERSON = blocks(PAGE, "sh")


class Terminals:
    """A folder as somebody has it after `make setup`, on a machine where the usual port may be taken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._surroundings = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "MERGEYARD_PORT": "0",
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.org",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org",
        }
        command = folder / ".venv" / "bin" / "mergeyard"
        command.parent.mkdir(parents=True)
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mergeyard "$@"\n')
        command.chmod(0o755)

    @contextmanager
    def first(self, commands: str) -> Generator[str]:
        """The one in which the server runs; gives the address that it listens at."""
        log = self.folder / "server.log"
        with log.open("wb") as errors:
            shell = subprocess.Popen(
                ["bash", "-euc", commands],
                cwd=self.folder,
                env=self._surroundings,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        try:
            yield eventually(lambda: listens_at(log), but=log.read_text)
        finally:
            os.killpg(shell.pid, signal.SIGTERM)
            shell.wait()

    def second(self, commands: str) -> str:
        """The one in which a person works; gives what they see."""
        told = subprocess.run(
            ["bash", "-euc", commands],
            cwd=self.folder / "yard",
            env=self._surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
        seen = told.stdout.decode()
        assert told.returncode == 0, seen
        return seen


def listens_at(log: Path) -> str:
    lines = [line for line in log.read_bytes().splitlines() if b'"listening"' in line]
    return json.decode(lines[0])["url"] if lines else ""


@pytest.fixture
def terminals(tmp_path: Path) -> Terminals:
    return Terminals(tmp_path)


def test_the_readme_begins_as_the_quick_start_does():
    begun = [block for block in blocks(README, "sh") if "make " not in block]
    assert begun == [SERVER, *PERSON[:2]]
    assert set(promised(README)) <= set(promised(PAGE))


def test_whoever_follows_the_quick_start_sees_what_it_says(terminals: Terminals):
    with terminals.first(SERVER) as address:
        seen = terminals.second("".join(PERSON).replace(PRINTED_ADDRESS, address))
    assert [line for line in promised(PAGE) if line not in seen] == []
    assert "It failed." in seen
    assert '"enqueuedPullRequests":[]' in seen
    commits = [line for line in seen.splitlines() if re.match(r"[0-9a-f]{7,} ", line)]
    assert len(commits) == 3 + 4
