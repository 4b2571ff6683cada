"""Runs the command line with environment variables that point to a server."""

import fcntl
import json
import os
import pty
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

from typer.core import TyperGroup
from typer.main import get_group
from typer.testing import CliRunner, Result

from mergeyard.cli import app
from tests.support.environment import ServerEnvironment
from tests.support.polling import eventually

COMMAND = ("env", "--default-signal=INT", sys.executable, "-m", "mergeyard")
"""Can be interrupted also where this process ignores the signal."""
CONNECTION_VARIABLES = ("SERVER", "URL", "TOKEN", "TOKEN_FILE", "REPO", "BRANCH", "QUEUE")
ISOLATED: dict[str, str | None] = {f"MERGEYARD_{name}": None for name in CONNECTION_VARIABLES} | {
    "NO_PROXY": "127.0.0.1", "XDG_CONFIG_HOME": "/dev/null", "GIT_DIR": "/dev/null",
}  # fmt: skip
"""Without the variables, the stored servers and the checkout of the user who runs the tests."""


@contextmanager
def a_running_environment(folder: Path, **settings: Any) -> Generator[ServerEnvironment]:
    """The promises are not checked: the command line sends requests too, so the recorded requests are incomplete."""
    environment = ServerEnvironment.start(folder)
    try:
        environment.create_queue(**settings)
        yield environment
    finally:
        environment.close()
    assert environment.server.logged_errors() == []


SHELL_OPERATORS = {"|", "||", "&&", ">", ">>", "<", ";", "#"}


def parse_command(line: str) -> None:
    """Parses a documented command as the command line does, up to the first operator of the shell, and runs nothing."""
    words = list(takewhile(lambda word: word not in SHELL_OPERATORS, shlex.split(line)))
    command, context = get_group(app), None
    while True:
        context = command.make_context(words[0], words[1:], parent=context)
        if not isinstance(command, TyperGroup):
            return
        arguments = [*vars(context)["_protected_args"], *context.args]
        name, command, rest = command.resolve_command(context, arguments)
        assert command is not None
        words = [name or "", *rest]


class CommandLine:
    def __init__(self, url: str, token: str) -> None:
        self.environment = ISOLATED | {"MERGEYARD_URL": url, "MERGEYARD_TOKEN": token}

    def run(self, *arguments: str) -> Result:
        return CliRunner(env=self.environment).invoke(app, arguments)

    def run_ok(self, *arguments: str) -> str:
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def run_json(self, *arguments: str) -> Any:
        return json.loads(self.run_ok(*arguments, "--json"))

    def run_failing(self, code: int, *arguments: str) -> str:
        """The error output of a command that exits with this code."""
        result = self.run(*arguments)
        assert (result.exit_code, result.stdout) == (code, ""), result.output
        return result.stderr

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Runs it in another process."""
        environment = {name: value for name, value in (os.environ | self.environment).items() if value is not None}
        return subprocess.Popen([*COMMAND, *arguments], env=environment, stdout=subprocess.PIPE, text=True, **options)


class Screen:
    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        self.resize(100, 30)
        self.initial_settings = termios.tcgetattr(slave)
        self._slave = slave
        self.output = ""
        """All output so far, including control sequences."""
        self._process = subprocess.Popen(
            command, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, key: str) -> None:
        os.write(self._master, key.encode())

    def interrupt(self) -> None:
        """As Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def wait_for_text(self, text: str) -> None:
        """Waits until the program writes this text, counted from now."""
        start = len(self.output)
        eventually(lambda: self._read() and text in self.output[start:], describe=lambda: self.output[start:])

    def wait_for_exit(self) -> int:
        """Waits until the program ends and returns its exit code."""
        eventually(lambda: self._read() and self._process.poll() is not None, describe=lambda: self.output)
        return self._process.returncode

    @property
    def settings(self) -> Any:
        return termios.tcgetattr(self._slave)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._master)
        os.close(self._slave)

    def _read(self) -> bool:
        while select.select([self._master], [], [], 0)[0]:
            self.output += os.read(self._master, 65536).decode(errors="replace")
        return True


@contextmanager
def a_screen(command: Sequence[str], environment: Mapping[str, str]) -> Generator[Screen]:
    screen = Screen(command, environment)
    try:
        yield screen
    finally:
        screen.close()
