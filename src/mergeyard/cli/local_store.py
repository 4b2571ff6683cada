"""The store of this machine, for commands that work without a server.

`mergeyard --help` imports the modules of all commands. So that it stays fast, they import the settings, the service and
the database drivers only inside the functions that need them.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from mergeyard.cli.output import ExitCode, exit_with_message
from mergeyard.ports.archive import Archive
from mergeyard.ports.store import Store, StoreUnavailable
from mergeyard.service.errors import RequestRefused

if TYPE_CHECKING:
    from mergeyard.settings import Settings

NO_DATABASE = (
    "{place} contains no Mergeyard database. Start `mergeyard serve` once, which creates it, or name another one "
    "with --config, --data-dir or --database-url."
)


Service = TypeVar("Service")


Result = TypeVar("Result")


def load_store_settings(config: Path | None, data_dir: str | None, database_url: str | None) -> "Settings":
    return load_settings(config, {"data_dir": data_dir, "database_url": database_url})


def open_archive(settings: "Settings") -> Archive:
    from mergeyard import wiring

    return wiring.open_archive(settings)


def run_with_store(
    open_service: "Callable[[Settings], tuple[Store, Service]]",
    settings: "Settings",
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


def load_settings(config: Path | None, options: Mapping[str, object]) -> "Settings":
    from mergeyard.settings import SettingsError, load

    try:
        return load(config, os.environ, options)
    except SettingsError as error:
        exit_with_message(str(error))
