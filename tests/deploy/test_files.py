"""Deployment files and the pages about operating name only existing settings and commands, and no secret."""

import re
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_group

from mergeyard.cli import app
from mergeyard.settings.parsing import ENVIRONMENT_KEYS, to_environment_variable
from tests.deploy.files import DEPLOYMENT_FILES, PLAIN_YAML, ROOT, read_yaml

VARIABLES = set(map(to_environment_variable, ENVIRONMENT_KEYS))

each_file = pytest.mark.parametrize("path", DEPLOYMENT_FILES, ids=lambda path: str(path.relative_to(ROOT)))


@pytest.mark.parametrize("path", PLAIN_YAML, ids=lambda path: path.name)
def test_yaml_file_is_valid(path: Path):
    assert read_yaml(path)


@each_file
def test_every_environment_variable_is_a_setting(path: Path):
    assert set(re.findall(r"MERGEYARD_\w+", path.read_text())) - VARIABLES == set()


@each_file
def test_every_command_exists(path: Path):
    for group, name in re.findall(r"\bmergeyard (serve|token|pr|db)\b(?: ([a-z]+)\b)?", path.read_text()):
        command = get_group(app).commands[group]
        assert not isinstance(command, TyperGroup) or not name or name in command.commands, f"{group} {name}"


@each_file
def test_file_contains_no_secret_and_no_latest_tag(path: Path):
    assert re.findall(r":latest\b|PASSWORD[:=] *[\"']?\w", path.read_text()) == []
