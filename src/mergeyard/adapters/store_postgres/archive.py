"""Opens a PostgreSQL database as an archive: to look at one moment of it, or to fill it in one transaction."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from mergeyard.adapters.store_postgres import migrating
from mergeyard.adapters.store_postgres.archive_tables import PostgresTables
from mergeyard.adapters.store_postgres.connecting import connect_patiently
from mergeyard.adapters.store_postgres.handles import Connection
from mergeyard.adapters.store_postgres.place import place_of
from mergeyard.adapters.store_postgres.trouble import told_in_words
from mergeyard.ports.archive import TABLES

TAKE_THE_TIME = "SET LOCAL idle_in_transaction_session_timeout = 0"
"""The file on the other side may be slow."""
KEEP_OTHERS_FROM_WRITING = f"LOCK TABLE {', '.join(table.name for table in TABLES)} IN SHARE ROW EXCLUSIVE MODE"
HAS_OUR_TABLES = "SELECT to_regclass('migrations') IS NOT NULL"


class PostgresArchive:
    def __init__(self, url: str) -> None:
        self.place = place_of(url)
        self._url = url

    async def form(self) -> int:
        async with self._connected() as connection:
            ((ours,),) = await connection.fetch(HAS_OUR_TABLES)
            return await migrating.form(connection) if ours else 0

    async def migrate(self) -> None:
        async with self._connected() as connection:
            await migrating.migrate(connection, self.place)

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[PostgresTables]:
        async with (
            self._connected() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            await connection.execute(TAKE_THE_TIME)
            yield PostgresTables(connection)

    @asynccontextmanager
    async def filling(self) -> AsyncGenerator[PostgresTables]:
        async with self._connected() as connection, connection.transaction():
            await connection.execute(TAKE_THE_TIME)
            await connection.execute(KEEP_OTHERS_FROM_WRITING)
            yield PostgresTables(connection)

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Connection]:
        with told_in_words(self.place):
            connection = await connect_patiently(self._url)
            try:
                yield connection
            finally:
                await connection.close()
