"""Brings a database to the present form, one numbered step after the other."""

from collections.abc import Iterator

from msgspec import Struct

from mergeyard.adapters.store_postgres.asking import row, rows, value
from mergeyard.adapters.store_postgres.handles import Connection
from mergeyard.adapters.store_postgres.sql import texts
from mergeyard.ports.store import StoreTrouble

OLDEST_SERVER = 14
"""Nothing older is cared for by its makers."""


class Migration(Struct, frozen=True):
    number: int
    name: str
    text: str


def _migrations() -> Iterator[Migration]:
    for stem, text in texts("migrations"):
        number, _, name = stem.partition("_")
        yield Migration(int(number), name, text)


MIGRATIONS = tuple(_migrations())


async def migrate(connection: Connection, place: str) -> None:
    """All steps together or none. Whoever starts at the same time waits, and then finds everything done."""
    version, encoding = await row(connection, "server") or (0, "")
    refuse_an_unfit_server(version, encoding, place)
    async with connection.transaction():
        await rows(connection, "wait_for_other_migrations")
        await rows(connection, "make_list_of_migrations")
        present = await form(connection)
        refuse_a_newer_form(present, place)
        for migration in MIGRATIONS[present:]:
            await apply(connection, migration)


async def form(connection: Connection) -> int:
    """The number of the migration that was applied last."""
    return await value(connection, "newest_migration")


async def apply(connection: Connection, migration: Migration) -> None:
    await connection.execute(migration.text)
    await rows(connection, "note_migration", number=migration.number, name=migration.name)


def refuse_an_unfit_server(version: int, encoding: str, place: str) -> None:
    if version < OLDEST_SERVER:
        raise StoreTrouble(f"{place} runs on PostgreSQL {version}. Use PostgreSQL {OLDEST_SERVER} or newer.")
    if encoding != "UTF8":
        raise StoreTrouble(
            f"{place} cannot hold all words: its encoding is {encoding}. "
            "Create a database with ENCODING 'UTF8' TEMPLATE template0."
        )


def refuse_a_newer_form(present: int, place: str) -> None:
    known = MIGRATIONS[-1].number
    if present > known:
        raise StoreTrouble(
            f"{place} was written by a newer version of Mergeyard (its form is {present}, this version knows {known}). "
            "Start that version again, or restore a backup from before it."
        )
