"""The settings, the database and the data directory of this machine, for commands that work without a server.

`mergeyard --help` imports the modules of all commands. So that it stays fast, they import the settings, the service and
the database drivers only inside the functions that need them.
"""

import asyncio
import fcntl
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from mergeyard.cli.connection_options import JsonOption, ServerOption, TokenFileOption, UrlOption, with_options_of
from mergeyard.cli.output import exit_with_message, exit_with_usage_error, print_message
from mergeyard.cli.session import ServerSession, with_session_of
from mergeyard.ports.archive import Archive
from mergeyard.ports.store import Store, StoreUnavailable
from mergeyard.service.errors import RequestRefused

if TYPE_CHECKING:
    from mergeyard.settings import Settings

LOCK_FILE = "server.lock"

DEFAULT_FILES = ("mergeyard.toml", "mergeyard-data")
"""The settings file and the data directory that a server has in its folder by default."""
LOCAL_VARIABLES = ("MERGEYARD_CONFIG", "MERGEYARD_DATA_DIR", "MERGEYARD_DATABASE_URL", "MERGEYARD_DATABASE_URL_FILE")

NO_DATABASE_HINT = (
    "Sign in to a server with `mergeyard login URL`. On the machine of the server, name its database with --config, "
    "--data-dir or --database-url; `mergeyard serve` creates it."
)

Service = TypeVar("Service")
Result = TypeVar("Result")

ConfigFileOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The settings file. Default: ./mergeyard.toml.")
]
DataDirOption = Annotated[str | None, typer.Option("--data-dir", metavar="DIR", help="The data directory.")]
DatabaseUrlOption = Annotated[
    str | None,
    typer.Option("--database-url", metavar="URL", help="The database, if it is not in the data directory."),
]

local_option: Callable[..., Any] = partial(typer.Option, rich_help_panel="Database of this machine")

LocalConfigOption = Annotated[
    Path | None,
    local_option("--config", metavar="FILE", help="The settings file that names it. Default: ./mergeyard.toml."),
]
LocalDataDirOption = Annotated[
    str | None, local_option("--data-dir", metavar="DIR", help="The data directory that contains it.")
]
LocalDatabaseUrlOption = Annotated[
    str | None, local_option("--database-url", metavar="URL", help="Its URL, if it is not in the data directory.")
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
        self,
        config: LocalConfigOption = None,
        data_dir: LocalDataDirOption = None,
        database_url: LocalDatabaseUrlOption = None,
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
                exit_with_usage_error(f"{archive.location} contains no Mergeyard database.", hint=NO_DATABASE_HINT)
            print_message(f"Using the database {archive.location.removeprefix('The database ')}.")
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


def find_local_sign() -> str | None:
    """The variable, or the file of the current folder, which shows that a server may run on this machine."""
    for variable in LOCAL_VARIABLES:
        if os.environ.get(variable):
            return f"the variable {variable}"
    for name in DEFAULT_FILES:
        if Path(name).exists():
            return f"{name} in this folder"
    return None


class AdminSession(ServerSession):
    """For a command that manages a server: over the API of the server that is configured, else in the database of this
    machine. An option chooses between the two. Without one the command stops when both are possible: a token that it
    creates at the wrong server would stay there unnoticed."""

    def __init__(
        self,
        server: ServerOption = None,
        url: UrlOption = None,
        token_file: TokenFileOption = None,
        config: LocalConfigOption = None,
        data_dir: LocalDataDirOption = None,
        database_url: LocalDatabaseUrlOption = None,
        as_json: JsonOption = False,
    ) -> None:
        super().__init__(server, url, token_file, as_json)
        self._local_options = (config, data_dir, database_url)
        self._is_local = any(option is not None for option in self._local_options)
        self._is_remote = bool(server or url)
        if self._is_local and self._is_remote:
            exit_with_usage_error(
                "--server and --url choose a server; --config, --data-dir and --database-url choose a database.",
                hint="Pass options of one kind.",
            )

    @cached_property
    def local_store(self) -> LocalStore | None:
        """None: the command calls the API. A message tells the user which of the two it is."""
        if self._is_local or not self.is_configured:
            return LocalStore(*self._local_options)
        if not self._is_remote:
            self._refuse_two_servers()
        print_message(f"Using the server {self.server.name} ({self.server.url}).")
        return None

    def _refuse_two_servers(self) -> None:
        sign = find_local_sign()
        if sign is None:
            return
        exit_with_usage_error(
            f"Two servers are possible: {self.server.name} ({self.server.url}), and the one of {sign}.",
            hint=f"For the first, pass --url {self.server.url}. For the second, pass --config, --data-dir or "
            "--database-url, such as --config mergeyard.toml.",
        )


def with_admin_session(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: adds the options that choose a server or a database, and passes the command that session."""
    return with_session_of(AdminSession, command)


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
