"""The list of commands: each is loaded from where it says, is what it says, and only when it is called."""

import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from mergeyard.cli import Mergeyard, app
from mergeyard.cli.lazily import Later

every_command = pytest.mark.parametrize("place", Mergeyard.places, ids=lambda place: place[0])

OF_THE_SERVER = {
    "apsw", "asyncpg", "cryptography", "httptools", "prometheus_client", "structlog", "uvicorn", "uvloop",
    "mergeyard.adapters", "mergeyard.engine", "mergeyard.settings", "mergeyard.web", "mergeyard.wiring",
}  # fmt: skip


@every_command
def test_the_list_says_of_a_command_what_it_says_of_itself(place: tuple[str, str, str, str]):
    command: Any = Later(*place).loaded()
    assert (command.help or "").splitlines()[0] == place[2]


@every_command
def test_a_command_can_be_asked_for_help(place: tuple[str, str, str, str]):
    answer = CliRunner().invoke(app, [place[0], "--help"])
    assert answer.exit_code == 0
    assert f"Usage: mergeyard {place[0]} " in answer.stdout
    assert "--install-completion" not in answer.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["status", "--help"], ["queue", "create", "--help"]], ids=" ".join)
def test_who_only_asks_does_not_load_the_server(arguments: list[str]):
    script = "import sys; sys.argv = ['mergeyard', *sys.argv[1:]]\nfrom mergeyard.cli import app\n"
    script += "try: app()\nexcept SystemExit: print('loaded', *sys.modules)"
    command = [sys.executable, "-c", script, *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    loaded = set(printed.splitlines()[-1].split())
    assert "mergeyard.cli" in loaded
    assert loaded & OF_THE_SERVER == set()


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant():
    answer = CliRunner().invoke(app, ["evnts"])
    assert answer.exit_code == 64
    assert "Did you mean 'events'?" in answer.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("sub", {"submit"}), ("queue pa", {"pause"}), ("submit --pri", {"--priority"}), ("runs sh", {"show"})],
)
def test_a_shell_completes_commands_and_options(typed: str, offered: set[str]):
    environment = {"_MERGEYARD_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": f"mergeyard {typed}"}
    printed = CliRunner(env=environment).invoke(app, [], prog_name="mergeyard").stdout
    assert {name for name in offered if f'"{name}"' in printed} == offered
