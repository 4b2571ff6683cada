"""The real stores, whose every write may be the last."""

from collections.abc import Collection, Sequence

from mergeyard.adapters.store_postgres import migrating as migrating_postgres
from mergeyard.adapters.store_postgres.handles import Connection as PostgresConnection
from mergeyard.adapters.store_postgres.store import PostgresStore
from mergeyard.adapters.store_sqlite import migrating as migrating_sqlite
from mergeyard.adapters.store_sqlite.handles import Connection as SqliteConnection
from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.repositories import Repo
from mergeyard.ports.sharing import Duty, Roster
from mergeyard.ports.writes import Write
from tests.kills.naming import commit_names
from tests.kills.reaper import REAPER


class MortalSqliteStore(SqliteStore):
    async def open(self) -> None:
        with REAPER.passing("store.open"):
            await super().open()

    async def close(self) -> None:
        with REAPER.passing("store.close"):
            await super().close()

    async def commit(self, *writes: Write) -> None:
        with REAPER.passing(*commit_names(writes)):
            await super().commit(*writes)


class MortalPostgresStore(PostgresStore):
    async def open(self) -> None:
        with REAPER.passing("store.open"):
            await super().open()

    async def close(self) -> None:
        with REAPER.passing("store.close"):
            await super().close()

    async def commit(self, *writes: Write) -> None:
        with REAPER.passing(*commit_names(writes)):
            await super().commit(*writes)

    async def enlist(self, replica: str, lasting: int) -> None:
        with REAPER.passing("store.enlist"):
            await super().enlist(replica, lasting)

    async def report(self, replica: str, lasting: int) -> Roster:
        with REAPER.passing("store.report"):
            return await super().report(replica, lasting)

    async def claim(self, replica: str, most: int, at_hand: Collection[Repo], patience: int) -> Sequence[Duty]:
        with REAPER.passing("store.claim"):
            return await super().claim(replica, most, at_hand, patience)

    async def resign(self, replica: str) -> None:
        with REAPER.passing("store.resign"):
            await super().resign(replica)

    async def call_out(self, *words: str) -> None:
        with REAPER.passing("store.call_out"):
            await super().call_out(*words)


def apply_to_sqlite(connection: SqliteConnection, migration: migrating_sqlite.Migration) -> None:
    with REAPER.passing("store.migrate"):
        migrate_sqlite(connection, migration)


async def apply_to_postgres(connection: PostgresConnection, migration: migrating_postgres.Migration) -> None:
    with REAPER.passing("store.migrate"):
        await migrate_postgres(connection, migration)


migrate_sqlite, migrate_postgres = migrating_sqlite.apply, migrating_postgres.apply
