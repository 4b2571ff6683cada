"""The list of commands: each is imported only when it is called, and its help matches the list."""

import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from mergeyard.cli import Later, MergeyardCommands, app

every_command = pytest.mark.parametrize("place", MergeyardCommands.places, ids=lambda place: place[0])

SERVER_MODULES = {
    "apsw", "asyncpg", "cryptography", "httptools", "prometheus_client", "structlog", "uvicorn", "uvloop",
    "mergeyard.adapters", "mergeyard.engine", "mergeyard.settings", "mergeyard.web", "mergeyard.wiring",
}  # fmt: skip


@every_command
def test_the_list_has_the_first_line_of_each_commands_help(place: tuple[str, str, str, str]):
    command: Any = Later(*place).loaded()
    assert (command.help or "").splitlines()[0] == place[2]


@every_command
def test_every_command_has_help(place: tuple[str, str, str, str]):
    result = CliRunner().invoke(app, [place[0], "--help"])
    assert result.exit_code == 0
    assert f"Usage: mergeyard {place[0]} " in result.stdout
    assert "--install-completion" not in result.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["status", "--help"], ["queue", "create", "--help"]], ids=" ".join)
def test_help_of_client_commands_does_not_import_the_server(arguments: list[str]):
    script = "import sys; sys.argv = ['mergeyard', *sys.argv[1:]]\nfrom mergeyard.cli import app\n"
    script += "try: app()\nexcept SystemExit: print('loaded', *sys.modules)"
    command = [sys.executable, "-c", script, *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    loaded = set(printed.splitlines()[-1].split())
    assert "mergeyard.cli" in loaded
    assert loaded & SERVER_MODULES == set()


def test_a_mistyped_command_suggests_the_right_one():
    result = CliRunner().invoke(app, ["evnts"])
    assert result.exit_code == 64
    assert "Did you mean 'events'?" in result.stderr


@pytest.mark.parametrize(
    ("typed", "completions"),
    [("sub", {"submit"}), ("queue pa", {"pause"}), ("submit --pri", {"--priority"}), ("runs sh", {"show"})],
)
def test_a_shell_completes_commands_and_options(typed: str, completions: set[str]):
    environment = {"_MERGEYARD_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": f"mergeyard {typed}"}
    printed = CliRunner(env=environment).invoke(app, [], prog_name="mergeyard").stdout
    assert {name for name in completions if f'"{name}"' in printed} == completions
