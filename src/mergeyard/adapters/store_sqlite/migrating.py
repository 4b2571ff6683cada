"""Brings a database to the present form, one numbered step after the other."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from mergeyard.adapters.store_sqlite.handles import Connection
from mergeyard.adapters.store_sqlite.sql import SQL, texts
from mergeyard.ports.store import StoreTrouble


class Migration(Struct, frozen=True):
    number: int
    name: str
    text: str


def _migrations() -> Iterator[Migration]:
    for stem, text in texts("migrations"):
        number, _, name = stem.partition("_")
        yield Migration(int(number), name, text)


MIGRATIONS = tuple(_migrations())


def migrate(connection: Connection, path: Path) -> None:
    connection.execute(SQL["make_list_of_migrations"])
    _refuse_a_newer_form(connection, path)
    for migration in MIGRATIONS[form(connection) :]:
        apply(connection, migration)


def form(connection: Connection) -> int:
    """The number of the migration that was applied last."""
    ((number,),) = connection.execute(SQL["newest_migration"]).fetchall()
    return number


def _refuse_a_newer_form(connection: Connection, path: Path) -> None:
    present, known = form(connection), MIGRATIONS[-1].number
    if present > known:
        raise StoreTrouble(
            f"{path} was written by a newer version of Mergeyard (its form is {present}, this version knows {known}). "
            "Start that version again, or restore a backup from before it."
        )


def apply(connection: Connection, migration: Migration) -> None:
    connection.execute(SQL["begin_writing"])
    try:
        # Another process may have been faster while this one waited for its right to write.
        if form(connection) < migration.number:
            connection.execute(migration.text)
            connection.execute(SQL["note_migration"], {"number": migration.number, "name": migration.name})
        connection.execute(SQL["commit"])
    finally:
        if connection.in_transaction:
            connection.execute(SQL["rollback"])
