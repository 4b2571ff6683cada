"""`mergeyard db`: migrates, checks, exports, imports, backs up and restores the database."""

import asyncio
from collections.abc import Callable, Mapping
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

app = typer.Typer(name="db", no_args_is_help=True, help="Back up, restore, check, migrate and move the database.")

OutputFileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
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
def migrate(store: LocalStore, as_json: JsonOption = False) -> None:
    """Migrate the database to the schema of this version, or create it.

    A server does the same when it starts. With PostgreSQL, replicas can keep running meanwhile.

    Examples:
        mergeyard db migrate
        mergeyard db migrate --data-dir /var/lib/mergeyard
    """
    archive = store.open_archive()
    before = asyncio.run(archive.schema_version())
    if before != SCHEMA_VERSION:
        with exclude_sqlite_server(store.settings):
            asyncio.run(archive.migrate())
    if before == SCHEMA_VERSION:
        message = f"already has schema version {SCHEMA_VERSION}: nothing to do."
    elif before:
        message = f"was migrated from schema version {before} to {SCHEMA_VERSION}."
    else:
        message = f"was created with schema version {SCHEMA_VERSION}."
    result = {"database": archive.location, "previousSchemaVersion": before or None, "schemaVersion": SCHEMA_VERSION}
    show(as_json, result, f"{archive.location} {message}")


@app.command()
@database_command
def check(store: LocalStore, as_json: JsonOption = False) -> None:
    """Check the database, and print row count and checksum of every table.

    The command writes nothing, and can run while a server uses the database. It exits with 1 if it finds problems.

    Examples:
        mergeyard db check
        mergeyard db check --json
    """
    report = asyncio.run(check_database(store.open_archive()))
    if as_json:
        typer.echo(encode_json({"ok": not report.problems, **msgspec.to_builtins(report)}))
    else:
        show_report(report)
    raise typer.Exit(1 if report.problems else 0)


@app.command("export")
@database_command
def export_command(
    store: LocalStore, file: OutputFileArgument, force: OverwriteOption = False, as_json: JsonOption = False
) -> None:
    """Export the whole database into one portable file, compressed if its name ends with .gz.

    The export is a consistent snapshot, and can be made while a server runs. It does not contain later writes: to move
    to another database, stop all servers first.

    Examples:
        mergeyard db export mergeyard.jsonl.gz
    """
    if not force:
        refuse_existing_file(file)
    counts = asyncio.run(export_database(file, store.open_archive()))
    message = f"Exported to {file}: protect it like the database. `mergeyard db import` reads it."
    show(as_json, {"file": str(file), "tables": counts}, message)


@app.command("import")
@database_command
def import_command(store: LocalStore, file: InputFileArgument, as_json: JsonOption = False) -> None:
    """Import an exported file into an empty database, SQLite or PostgreSQL.

    The command reads all rows back and compares them before it commits. If one differs, the database stays empty.

    Examples:
        mergeyard db import mergeyard.jsonl.gz --database-url postgresql://db/yard
    """
    with exclude_sqlite_server(store.settings):
        archive = store.open_archive()
        counts = asyncio.run(import_database(file, archive))
    message = f"{archive.location} contains all exported rows, verified by reading them back. Servers can start now."
    show(as_json, {"database": archive.location, "tables": counts}, message)


@app.command()
@database_command
def backup(
    store: LocalStore, file: OutputFileArgument, force: OverwriteOption = False, as_json: JsonOption = False
) -> None:
    """Copy the SQLite database into one file, and check the copy. A server can keep running.

    Examples:
        mergeyard db backup /var/backups/mergeyard.db
        mergeyard db backup /var/backups/mergeyard.db --force
    """
    if not force:
        refuse_existing_file(file)
    back_up_database(store.settings, file)
    message = f"Backed up to {file}; the copy passed its checks. `mergeyard db restore` restores it."
    show(as_json, {"file": str(file)}, message)


@app.command()
@database_command
def restore(
    store: LocalStore,
    file: InputFileArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing database; the old one is kept under another name.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Restore a backup of the SQLite database. Stop the server first.

    The command checks the file before it changes anything. The file stays as it is.

    Examples:
        mergeyard db restore /var/backups/mergeyard.db
        mergeyard db restore /var/backups/mergeyard.db --force
    """
    if not force:
        refuse_existing_database(store.settings)
    previous, database = restore_backup(store.settings, file), store.settings.database_path
    kept = f"The previous database is kept as {previous}: delete it when you no longer need it.\n" if previous else ""
    result = {"database": str(database), "previousDatabase": None if previous is None else str(previous)}
    show(as_json, result, f"{kept}Restored {database} from {file}. The server can start now.")


def show(as_json: bool, result: Mapping[str, Any], message: str) -> None:
    """Prints the result as one JSON object, or for users its tables and a message."""
    if as_json:
        typer.echo(encode_json(result))
        return
    if "tables" in result:
        show_counts(result["tables"])
    typer.echo(message)


def exclude_sqlite_server(settings: "Settings") -> AbstractContextManager[None]:
    """For PostgreSQL nothing is locked: the database knows its connections."""
    return exclude_server(settings.data_dir) if settings.database_server_url is None else nullcontext()
