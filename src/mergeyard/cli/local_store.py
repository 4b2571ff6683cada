"""The store of this machine, for commands that work without a server, and the lock of the data directory."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from mergeyard.cli.output import ExitCode, exit_with_message
from mergeyard.ports.store import Store, StoreUnavailable
from mergeyard.service.errors import RequestRefused
from mergeyard.settings import Settings, SettingsError, load
from mergeyard.wiring import open_archive

NO_DATABASE = (
    "{place} contains no Mergeyard database. Start `mergeyard serve` once, which creates it, or name another one "
    "with --config, --data-dir or --database-url."
)


Service = TypeVar("Service")


Result = TypeVar("Result")


def load_store_settings(config: Path | None, data_dir: str | None, database_url: str | None) -> Settings:
    return load_settings(config, {"data_dir": data_dir, "database_url": database_url})


def run_with_store(
    open_service: Callable[[Settings], tuple[Store, Service]],
    settings: Settings,
    use: Callable[[Service], Awaitable[Result]],
) -> Result:
    """Opens the store and returns the result of `use`.

    Never creates a database: a token in a new database at the wrong place would be useless.
    """

    async def run() -> Result:
        archive = open_archive(settings)
        if not await archive.schema_version():
            exit_with_message(NO_DATABASE.format(place=archive.location), ExitCode.USAGE_ERROR)
        store, service = open_service(settings)
        await store.open()
        try:
            return await use(service)
        finally:
            await store.close()

    try:
        return asyncio.run(run())
    except (StoreUnavailable, RequestRefused) as error:
        exit_with_message(str(error))


ConfigFileOption = Annotated[Path | None, typer.Option("--config", help="The settings file, else ./mergeyard.toml.")]


DataDirOption = Annotated[str | None, typer.Option("--data-dir", help="The data directory.")]


DatabaseUrlOption = Annotated[
    str | None, typer.Option("--database-url", help="The database, if it is not in the data directory.")
]


def load_settings(config: Path | None, options: Mapping[str, object]) -> Settings:
    try:
        return load(config, os.environ, options)
    except SettingsError as error:
        exit_with_message(str(error))
