"""Lends connections, and says in words what is wrong when there is none or one is lost."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from mergeyard.adapters.store_postgres.connecting import SECONDS_TO_ANSWER
from mergeyard.adapters.store_postgres.handles import Connection, Pool
from mergeyard.adapters.store_postgres.trouble import told_in_words
from mergeyard.ports.store import StoreTrouble


class Lines:
    def __init__(self, pool: Pool, place: str) -> None:
        self.place = place
        self._pool = pool

    @asynccontextmanager
    async def borrowed(self) -> AsyncGenerator[Connection]:
        with told_in_words(self.place):
            async with self._pool.acquire(timeout=SECONDS_TO_ANSWER) as connection:
                yield connection

    @asynccontextmanager
    async def at_one_moment(self) -> AsyncGenerator[Connection]:
        """All that is read sees the same moment."""
        async with (
            self.borrowed() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            yield connection

    async def close(self) -> None:
        """Politely, unless the server does not answer any more."""
        with suppress(StoreTrouble), told_in_words(self.place):
            async with asyncio.timeout(SECONDS_TO_ANSWER):
                await self._pool.close()
