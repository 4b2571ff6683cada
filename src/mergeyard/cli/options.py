"""Options of the commands that read the settings, and how they become these or a clear end."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from mergeyard.cli.exits import Ends, stop_with
from mergeyard.domain.repositories import Repo
from mergeyard.settings import Settings, SettingsError, load

ConfigFile = Annotated[Path | None, typer.Option("--config", help="The settings file, else ./mergeyard.toml.")]
DataDir = Annotated[str | None, typer.Option("--data-dir", help="The folder that holds everything.")]
DatabaseUrl = Annotated[str | None, typer.Option("--database-url", help="The database, if not in the data directory.")]


def load_settings(config: Path | None, options: Mapping[str, object]) -> Settings:
    try:
        return load(config, os.environ, options)
    except SettingsError as error:
        stop_with(str(error))


def repo_named(text: str) -> Repo:
    repo = Repo.parse(text)
    if repo is None:
        stop_with(f"{text} names no repository: write --repo host/owner/name.", Ends.WRONG_USE)
    return repo
