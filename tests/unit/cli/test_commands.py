"""The commands: each has help, and only a command that needs the server imports it."""

import subprocess
import sys

import pytest
from typer.core import TyperGroup
from typer.main import get_group
from typer.testing import CliRunner

from mergeyard.cli import app

COMMANDS = get_group(app).commands

SERVER_MODULES = {
    "apsw", "asyncpg", "cryptography", "httptools", "jinja2", "prometheus_client", "starlette", "structlog", "uvicorn",
    "uvloop", "mergeyard.adapters", "mergeyard.api", "mergeyard.cli.server", "mergeyard.engine", "mergeyard.settings",
    "mergeyard.web", "mergeyard.wiring",
}  # fmt: skip


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, option: str):
    result = CliRunner().invoke(app, [name, option])
    assert result.exit_code == 0
    assert f"Usage: mergeyard {name} " in result.stdout
    assert "--install-completion" not in result.stdout
    command = COMMANDS[name]
    subcommands = command.commands.values() if isinstance(command, TyperGroup) else ()
    assert all(each.help for each in (command, *subcommands))


def test_help_of_runs_is_about_the_group_and_not_about_its_default_command():
    assert "Usage: mergeyard runs [OPTIONS] COMMAND" in CliRunner().invoke(app, ["runs", "-h"]).stdout


@pytest.mark.parametrize("command", [["queue", "update"], ["runs", "list"], ["token", "list"]], ids=" ".join)
def test_subcommands_have_the_short_help_option_too(command: list[str]):
    result = CliRunner().invoke(app, [*command, "-h"])
    assert (result.exit_code, f"Usage: mergeyard {' '.join(command)} " in result.stdout) == (0, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["serve", "--help"],
        pytest.param(["status", "--help"], marks=pytest.mark.long),
        pytest.param(["queue", "create", "--help"], marks=pytest.mark.long),
        pytest.param(["db", "--help"], marks=pytest.mark.long),
    ],
    ids=" ".join,
)
def test_help_does_not_import_the_server(arguments: list[str]):
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
