"""Commands around the database: bring it up to date, check it, move it, back it up and put it back."""

import asyncio
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mergeyard.cli.db.aside import refuse_existing
from mergeyard.cli.db.checking import findings
from mergeyard.cli.db.copying import back_up, put_back, refuse_present
from mergeyard.cli.db.exporting import export_to
from mergeyard.cli.db.importing import import_from
from mergeyard.cli.db.refusing import Refused
from mergeyard.cli.db.showing import show_counts, show_findings
from mergeyard.cli.db.solitude import no_server_in
from mergeyard.cli.exits import stop_with
from mergeyard.cli.opening import store_settings
from mergeyard.cli.options import ConfigFile, DatabaseUrl, DataDir
from mergeyard.cli.plainly import in_json
from mergeyard.ports.archive import FORM
from mergeyard.ports.store import StoreTrouble
from mergeyard.settings import Settings
from mergeyard.wiring import open_archive

app = typer.Typer(name="db", no_args_is_help=True, help="The database: check it, move it, back it up.")

NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="The file to read.")]
Overwrite = Annotated[bool, typer.Option("--force", help="Write over a file that is there already.")]


@app.command()
def migrate(config: ConfigFile = None, data_dir: DataDir = None, database_url: DatabaseUrl = None) -> None:
    """Bring the database to the form of this version; make it if it is not there.

    A server does the same when it starts. With PostgreSQL, replicas may go on working meanwhile.
    """
    settings = store_settings(config, data_dir, database_url)
    with refusals_told():
        archive = open_archive(settings)
        before = asyncio.run(archive.form())
        if before == FORM:
            typer.echo(f"{archive.place} has form {FORM} already: nothing to do.")
            return
        with no_server_on(settings):
            asyncio.run(archive.migrate())
    came = f"was brought from form {before} to form" if before else "was made, in form"
    typer.echo(f"{archive.place} {came} {FORM}.")


@app.command()
def check(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Look whether the database is sound, with the rows and the checksum of every table.

    Writes nothing, and may run beside a server. The exit status is 1 when something is wrong.
    """
    settings = store_settings(config, data_dir, database_url)
    with refusals_told():
        found = asyncio.run(findings(open_archive(settings)))
    if as_json:
        typer.echo(in_json({"sound": not found.faults, **msgspec.to_builtins(found)}))
    else:
        show_findings(found)
    raise typer.Exit(1 if found.faults else 0)


@app.command("export")
def export_all(
    file: NewFile,
    force: Overwrite = False,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Write everything into one portable file, packed if its name ends with .gz.

    It holds one moment of the database, and may be made beside a server.

    What is written after that moment is not in it: to move to another database, stop all servers first.
    """
    settings = store_settings(config, data_dir, database_url)
    with refusals_told():
        if not force:
            refuse_existing(file)
        counts = asyncio.run(export_to(file, open_archive(settings)))
    show_counts(counts)
    typer.echo(f"Exported to {file}: keep it as safe as the database. `mergeyard db import` reads it.")


@app.command("import")
def import_all(
    file: File, config: ConfigFile = None, data_dir: DataDir = None, database_url: DatabaseUrl = None
) -> None:
    """Fill an empty database from an exported file, SQLite or PostgreSQL, whichever it came from.

    Everything is read back and compared before it is kept; if anything differs, the database stays empty.
    """
    settings = store_settings(config, data_dir, database_url)
    with refusals_told(), no_server_on(settings):
        archive = open_archive(settings)
        counts = asyncio.run(import_from(file, archive))
    show_counts(counts)
    typer.echo(f"{archive.place} holds all that was exported, as read back from it. Servers may start now.")


@app.command()
def backup(
    file: NewFile,
    force: Overwrite = False,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Copy the embedded database into one file, also while the server works, and check the copy."""
    settings = store_settings(config, data_dir, database_url)
    with refusals_told():
        if not force:
            refuse_existing(file)
        back_up(settings, file)
    typer.echo(f"Backed up to {file}, and found sound. `mergeyard db restore` puts it back.")


@app.command()
def restore(
    file: File,
    force: Annotated[bool, typer.Option("--force", help="Also when there is a database; it is kept aside.")] = False,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Put a backup of the embedded database back, while no server works.

    The file is checked before anything is changed, and stays as it is.
    """
    settings = store_settings(config, data_dir, database_url)
    with refusals_told():
        if not force:
            refuse_present(settings)
        kept = put_back(settings, file)
    if kept is not None:
        typer.echo(f"What was there before is kept as {kept}: remove it when you need it no more.")
    typer.echo(f"Restored {settings.database} from {file}. The server may start now.")


def no_server_on(settings: Settings) -> AbstractContextManager[None]:
    """PostgreSQL itself knows who works on it."""
    return no_server_in(settings.data_dir) if settings.database_server is None else nullcontext()


@contextmanager
def refusals_told() -> Generator[None]:
    try:
        yield
    except (Refused, StoreTrouble) as reason:
        stop_with(str(reason))
