"""`mergeyard db`: migrates, checks, exports, imports, backs up and restores the database."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from mergeyard.cli.db.checks import (
    DatabaseCommandError,
    check_database,
    exclude_server,
    refuse_existing_file,
    show_counts,
    show_report,
)
from mergeyard.cli.db.transfer import (
    back_up_database,
    export_database,
    import_database,
    refuse_existing_database,
    restore_backup,
)
from mergeyard.cli.local_store import LocalStore, with_local_store
from mergeyard.cli.output import encode_json, exit_with_message
from mergeyard.ports.archive import SCHEMA_VERSION
from mergeyard.ports.store import StoreUnavailable

if TYPE_CHECKING:
    from mergeyard.settings import Settings

app = typer.Typer(name="db", no_args_is_help=True, help="Check, move and back up the database.")

OutputFileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")]
InputFileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The file to read.")]
OverwriteOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


def database_command(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: adds the options that choose a database to a command, and exits if the command cannot run."""

    @wraps(command)
    def run(store: LocalStore, **arguments: Any) -> None:
        try:
            command(store, **arguments)
        except (DatabaseCommandError, StoreUnavailable) as error:
            exit_with_message(str(error))

    return with_local_store(run)


@app.command()
@database_command
def migrate(store: LocalStore) -> None:
    """Migrate the database to the schema version of this release; create it if it does not exist.

    A server does the same at startup. With PostgreSQL, replicas can keep running meanwhile.
    """
    archive = store.open_archive()
    before = asyncio.run(archive.schema_version())
    if before == SCHEMA_VERSION:
        typer.echo(f"{archive.location} already has schema version {SCHEMA_VERSION}: nothing to do.")
        return
    with exclude_sqlite_server(store.settings):
        asyncio.run(archive.migrate())
    change = f"was migrated from schema version {before} to" if before else "was created with schema version"
    typer.echo(f"{archive.location} {change} {SCHEMA_VERSION}.")


@app.command()
@database_command
def check(store: LocalStore, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Check the integrity of the database, with row count and checksum of every table.

    Writes nothing, and can run while a server uses the database. The exit code is 1 when problems are found.
    """
    report = asyncio.run(check_database(store.open_archive()))
    if as_json:
        typer.echo(encode_json({"sound": not report.problems, **msgspec.to_builtins(report)}))
    else:
        show_report(report)
    raise typer.Exit(1 if report.problems else 0)


@app.command("export")
@database_command
def export_command(store: LocalStore, file: OutputFileArgument, force: OverwriteOption = False) -> None:
    """Export the whole database into one portable file, compressed if its name ends with .gz.

    The export is a consistent snapshot, and can be made while a server runs.

    Later writes are not in it: to move to another database, stop all servers first.
    """
    if not force:
        refuse_existing_file(file)
    counts = asyncio.run(export_database(file, store.open_archive()))
    show_counts(counts)
    typer.echo(f"Exported to {file}: protect it like the database. `mergeyard db import` reads it.")


@app.command("import")
@database_command
def import_command(store: LocalStore, file: InputFileArgument) -> None:
    """Import an exported file into an empty database, SQLite or PostgreSQL, regardless of its source.

    All rows are read back and compared before the import is committed; if anything differs, the database stays empty.
    """
    with exclude_sqlite_server(store.settings):
        archive = store.open_archive()
        counts = asyncio.run(import_database(file, archive))
    show_counts(counts)
    typer.echo(f"{archive.location} contains all exported rows, verified by reading them back. Servers can start now.")


@app.command()
@database_command
def backup(store: LocalStore, file: OutputFileArgument, force: OverwriteOption = False) -> None:
    """Copy the embedded database into one file, also while the server runs, and check the copy."""
    if not force:
        refuse_existing_file(file)
    back_up_database(store.settings, file)
    typer.echo(f"Backed up to {file}; the copy passed its checks. `mergeyard db restore` restores it.")


@app.command()
@database_command
def restore(
    store: LocalStore,
    file: InputFileArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Also if a database exists; it is kept under another name.")
    ] = False,
) -> None:
    """Restore a backup of the embedded database, while no server runs.

    The file is checked before anything is changed, and stays as it is.
    """
    if not force:
        refuse_existing_database(store.settings)
    previous = restore_backup(store.settings, file)
    if previous is not None:
        typer.echo(f"The previous database is kept as {previous}: delete it when you no longer need it.")
    typer.echo(f"Restored {store.settings.database_path} from {file}. The server can start now.")


def exclude_sqlite_server(settings: "Settings") -> AbstractContextManager[None]:
    """For PostgreSQL nothing is locked: the database knows its connections."""
    return exclude_server(settings.data_dir) if settings.database_server_url is None else nullcontext()
