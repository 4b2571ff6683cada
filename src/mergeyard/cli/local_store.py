"""The settings, the database and the data directory of this machine, for commands that work without a server.

`mergeyard --help` imports the modules of all commands. So that it stays fast, they import the settings, the service and
the database drivers only inside the functions that need them.
"""

import asyncio
import fcntl
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from mergeyard.cli.connection_options import with_options_of
from mergeyard.cli.output import exit_with_message, exit_with_usage_error
from mergeyard.ports.archive import Archive
from mergeyard.ports.store import Store, StoreUnavailable
from mergeyard.service.errors import RequestRefused

if TYPE_CHECKING:
    from mergeyard.settings import Settings

LOCK_FILE = "server.lock"

Service = TypeVar("Service")
Result = TypeVar("Result")

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


class LocalStore:
    """The database that the options of a command choose."""

    def __init__(
        self, config: ConfigFileOption = None, data_dir: DataDirOption = None, database_url: DatabaseUrlOption = None
    ) -> None:
        self.settings = load_settings(config, {"data_dir": data_dir, "database_url": database_url})

    def open_archive(self) -> Archive:
        from mergeyard import wiring

        return wiring.open_archive(self.settings)

    def run(
        self, open_service: "Callable[[Settings], tuple[Store, Service]]", use: Callable[[Service], Awaitable[Result]]
    ) -> Result:
        """Opens the store and returns the result of `use`.

        Never creates a database: a token in a new database at the wrong place would be useless.
        """

        async def run() -> Result:
            archive = self.open_archive()
            if not await archive.schema_version():
                exit_with_usage_error(
                    f"{archive.location} contains no Mergeyard database. Start `mergeyard serve` once, which creates "
                    "it, or name another one with --config, --data-dir or --database-url."
                )
            store, service = open_service(self.settings)
            await store.open()
            try:
                return await use(service)
            finally:
                await store.close()

        try:
            return asyncio.run(run())
        except (StoreUnavailable, RequestRefused) as error:
            exit_with_message(str(error))


def with_local_store(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: adds the options that choose a database to a command, and passes it that database."""
    return with_options_of(LocalStore, command)


class DataDirLocked(Exception):
    """Another process holds the lock."""


@contextmanager
def lock_data_dir(folder: Path) -> Generator[None]:
    """Only one server works in a data directory at a time."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / LOCK_FILE).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataDirLocked(str(folder)) from None
        yield
