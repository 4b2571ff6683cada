"""A terminal with our command line in it, and variables that lead to a server."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from mergeyard.cli import app
from tests.support.premises import Premises

NOTHING_SET = {f"MERGEYARD_{name}": None for name in ("URL", "TOKEN", "REPO", "BRANCH")}


@contextmanager
def a_queue_at_work(folder: Path, **settings: Any) -> Generator[Premises]:
    """Others than the test ask, too, so whoever counts what was asked counts too little: promises are not looked at."""
    premises = Premises.prepared(folder)
    try:
        premises.create_queue(**settings)
        yield premises
    finally:
        premises.close()
    assert premises.server.complaints() == []


class Terminal:
    def __init__(self, url: str, token: str) -> None:
        self.environment: dict[str, str | None] = NOTHING_SET | {
            "MERGEYARD_URL": url, "MERGEYARD_TOKEN": token, "NO_PROXY": "127.0.0.1",
        }  # fmt: skip

    def run(self, *arguments: str) -> Result:
        return CliRunner(env=self.environment).invoke(app, arguments)

    def done(self, *arguments: str) -> str:
        answer = self.run(*arguments)
        assert answer.exit_code == 0, answer.output
        return answer.stdout

    def answered(self, *arguments: str) -> Any:
        return json.loads(self.done(*arguments, "--json"))

    def refused(self, code: int, *arguments: str) -> str:
        """What it says when it ends with this code."""
        answer = self.run(*arguments)
        assert (answer.exit_code, answer.stdout) == (code, ""), answer.output
        return answer.stderr

    def begin(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """In a process of its own."""
        given = {name: value for name, value in (os.environ | self.environment).items() if value is not None}
        command = [sys.executable, "-m", "mergeyard", *arguments]
        return subprocess.Popen(command, env=given, stdout=subprocess.PIPE, text=True, **options)
