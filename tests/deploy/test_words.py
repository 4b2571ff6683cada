"""Deployment files and the page about operations use only words that the program knows."""

import re
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_group

from mergeyard.cli import app
from mergeyard.settings.sources import KEYS_OF_VARIABLES, variable
from tests.deploy.files import EVERYTHING, PLAIN_YAML, ROOT, read_yaml

VARIABLES = set(map(variable, KEYS_OF_VARIABLES))

every_file = pytest.mark.parametrize("path", EVERYTHING, ids=lambda path: str(path.relative_to(ROOT)))


@pytest.mark.parametrize("path", PLAIN_YAML, ids=lambda path: path.name)
def test_a_file_that_is_called_yaml_is_yaml(path: Path):
    assert read_yaml(path)


@every_file
def test_every_variable_is_a_setting(path: Path):
    assert set(re.findall(r"MERGEYARD_\w+", path.read_text())) - VARIABLES == set()


@every_file
def test_every_command_is_there(path: Path):
    for group, below in re.findall(r"\bmergeyard (serve|token|pr|db)\b(?: ([a-z]+)\b)?", path.read_text()):
        command = get_group(app).commands[group]
        assert not isinstance(command, TyperGroup) or not below or below in command.commands, f"{group} {below}"


@every_file
def test_no_secret_and_no_newest_of_anything_is_named(path: Path):
    assert re.findall(r":latest\b|PASSWORD[:=] *[\"']?\w", path.read_text()) == []
