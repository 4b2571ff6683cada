"""The pages about the command line and the client name every command, every call and every code, and no other."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.core import TyperGroup
from typer.testing import CliRunner

from mergeyard.api.routes import TABLE
from mergeyard.cli import Mergeyard, app
from mergeyard.cli.exits import Ends
from mergeyard.cli.lazily import Later
from mergeyard.client.calls import Calls

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "command-line.md").read_text()
CLIENT = (DOCS / "client.md").read_text()
INTERRUPTED = 130


def commands() -> Iterator[str]:
    """Every command that does something, as it is typed."""
    for place in Mergeyard.places:
        command: Any = Later(*place).loaded()
        if isinstance(command, TyperGroup):
            yield from (f"mergeyard {place[0]} {name}" for name in command.commands)
        else:
            yield f"mergeyard {place[0]}"


def examples() -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("if ").partition(";")[0] for block in blocks for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("mergeyard ")]


def test_every_command_stands_on_its_page_and_no_other():
    headings = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)
    in_tables = re.findall(r"`(mergeyard [^`]+)`(?=[,| ])", PAGE.partition("## Running the service")[2])
    assert sorted([*headings, *in_tables]) == sorted(commands())


def test_every_example_has_only_options_that_are_there():
    assert len(examples()) > 25
    for words in examples():
        if "--install-completion" not in words:
            answer = CliRunner().invoke(app, [*words, "--help"])
            assert answer.exit_code == 0, (words, answer.output)


def test_every_command_that_is_explained_has_an_example():
    for command in re.findall(r"^### `mergeyard (.+)`$", PAGE, re.MULTILINE):
        assert any(words[: len(command.split())] == command.split() for words in examples()), command


def test_every_code_stands_on_the_page():
    rows = re.findall(r"^\| (\d+) \| .+\. \|$", PAGE, re.MULTILINE)
    assert list(map(int, rows)) == [*Ends, INTERRUPTED]


def test_every_call_of_the_client_stands_beside_its_endpoint():
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| `(\w+)`", CLIENT, re.MULTILINE)
    assert {endpoint for _, endpoint in rows} == TABLE.keys()
    told = {name for names, _ in rows for name in re.findall(r"`(\w+)`", names)}
    assert told | {"wait", "events"} == {name for name in vars(Calls) if not name.startswith("_")}
