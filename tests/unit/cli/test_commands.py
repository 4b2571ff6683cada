"""The commands: each has help, and only a command that needs the server imports it."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_group
from typer.testing import CliRunner

from mergeyard import __version__
from mergeyard.cli import app
from tests.support.terminal import CommandLine, parse_command

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


def all_commands() -> Iterator[tuple[str, Any]]:
    """Every command and group, with its words."""
    yield "mergeyard", get_group(app)
    for name, command in COMMANDS.items():
        yield f"mergeyard {name}", command
        for subname, subcommand in command.commands.items() if isinstance(command, TyperGroup) else ():
            yield f"mergeyard {name} {subname}", subcommand


def list_examples(command: Any) -> list[str]:
    title, *examples = (command.epilog or "").splitlines()
    assert title == "Examples:"
    return [example.strip() for example in examples]


ALL_COMMANDS = dict(all_commands())


@pytest.mark.parametrize("words", ALL_COMMANDS)
def test_every_help_has_examples_that_parse(words: str):
    examples = list_examples(ALL_COMMANDS[words])
    assert examples
    for example in examples:
        assert len(example) < 79, "the help would break the line"
        assert example.startswith(words.replace("mergeyard runs list", "mergeyard runs"))
        parse_command(example)


def test_paragraphs_of_help_do_not_break_in_mid_sentence():
    for words, command in ALL_COMMANDS.items():
        paragraphs = (command.help or "").split("\n\n")
        assert all("\n" not in paragraph and paragraph.endswith(".") for paragraph in paragraphs), words


def test_help_of_runs_is_about_the_group_and_not_about_its_default_command():
    assert "Usage: mergeyard runs [OPTIONS] COMMAND" in CliRunner().invoke(app, ["runs", "-h"]).stdout


@pytest.mark.parametrize("command", [["queue", "update"], ["runs", "list"], ["token", "list"]], ids=" ".join)
def test_subcommands_have_the_short_help_option_too(command: list[str]):
    result = CliRunner().invoke(app, [*command, "-h"])
    assert (result.exit_code, f"Usage: mergeyard {' '.join(command)} " in result.stdout) == (0, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["version"],
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
    [
        ("sub", {"submit"}),
        ("queue pa", {"pause"}),
        ("submit --pri", {"--priority"}),
        ("submit --priority ", {"urgent", "low"}),
        ("list --state m", {"merged"}),
        ("runs sh", {"show"}),
    ],
)
def test_a_shell_completes_commands_and_options(typed: str, completions: set[str]):
    environment = {"_MERGEYARD_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": f"mergeyard {typed}"}
    printed = CliRunner(env=environment).invoke(app, [], prog_name="mergeyard").stdout
    assert {name for name in completions if f'"{name}"' in printed} == completions


@pytest.mark.parametrize(
    ("shell", "line"), [("bash", "complete -o"), ("zsh", "#compdef mergeyard"), ("fish", "complete ")]
)
def test_completion_scripts_are_printed(shell: str, line: str):
    result = CliRunner().invoke(app, ["completion", shell])
    assert (result.exit_code, line in result.stdout, "_MERGEYARD_COMPLETE" in result.stdout) == (0, True, True)


def test_version_is_printed_with_the_name_of_the_program():
    for command in ("version", "--version"):
        assert CommandLine("", "").run_ok(command) == f"mergeyard {__version__}\n"
    assert CommandLine("", "").run_json("version") == {"version": __version__, "server": None}


@pytest.mark.parametrize("token", ["my_token", ""])
def test_version_needs_no_server_that_responds_and_no_token(token: str):
    assert CommandLine("http://127.0.0.1:9", token).run_ok("version") == f"mergeyard {__version__}\n"
