"""Makes a backup of the embedded database, and puts one back."""

from datetime import UTC, datetime
from pathlib import Path

from mergeyard.adapters.store_sqlite.archive_copy import copy, make_whole
from mergeyard.cli.db.aside import written_aside
from mergeyard.cli.db.refusing import Refused, told_of
from mergeyard.cli.db.solitude import no_server_in
from mergeyard.settings import Settings


def back_up(settings: Settings, path: Path) -> None:
    """While a server works or not."""
    database = _embedded(settings, "pg_dump")
    if not database.exists():
        raise Refused(f"There is no database {database}: name another one with --data-dir or --database-url.")
    with written_aside(path) as aside:
        copy(database, aside)


def put_back(settings: Settings, path: Path) -> Path | None:
    """Where the database is now that was there before."""
    database = _embedded(settings, "pg_restore")
    with told_of(path):
        path.open("rb").close()
    with no_server_in(settings.data_dir), told_of(database):
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with written_aside(database) as aside:
            copy(path, aside)
            return _keep_present(database) if database.exists() else None


def refuse_present(settings: Settings) -> None:
    if settings.database.exists():
        raise Refused(
            f"There is a database already, {settings.database}: with --force it is kept aside, and the backup takes "
            "its place."
        )


def _embedded(settings: Settings, tool: str) -> Path:
    if settings.database_server is not None:
        raise Refused(
            f"This is for the embedded database. Use {tool} for PostgreSQL, "
            "or `mergeyard db export` and `mergeyard db import`."
        )
    return settings.database


def _keep_present(database: Path) -> Path:
    """Under two names until the backup takes the first, so that a crash never leaves us without a database."""
    make_whole(database)
    kept = database.with_name(f"{database.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    kept.hardlink_to(database)
    return kept
