"""Receives hints of other replicas (LISTEN) on a connection of its own, and reconnects whenever it is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from mergeyard.adapters.store_postgres.connection import Connection, open_connection, translate_errors
from mergeyard.ports.store import HintHandler, StoreUnavailable

log = structlog.get_logger()

CHANNEL = "mergeyard"
KEEPALIVE_INTERVAL_S = 5.0
"""A connection can be lost without an error, so a statement is sent at this interval."""
RECONNECT_INTERVAL_S = 0.5
CLOSE_TIMEOUT_S = 2.0

OnDisconnect = Callable[[], Awaitable[None]]


class NotificationListener:
    def __init__(self, url: str, location: str, on_hint: HintHandler, on_disconnect: OnDisconnect) -> None:
        self._url = url
        self._location = location
        self._on_hint = on_hint
        self._on_disconnect = on_disconnect
        self._lost = asyncio.Event()
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._listen()
        self._task = asyncio.create_task(self._keep_listening())

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._disconnect()

    async def _keep_listening(self) -> None:
        while True:
            await self._wait_until_lost()
            await self._disconnect()
            while not await self._try_reconnect():
                await asyncio.sleep(RECONNECT_INTERVAL_S)

    async def _wait_until_lost(self) -> None:
        while not self._lost.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._lost.wait(), KEEPALIVE_INTERVAL_S)
                return
            try:
                await self._send_keepalive()
            except StoreUnavailable:
                return

    async def _try_reconnect(self) -> bool:
        """`on_disconnect` re-reads the store, because hints were missed. If it fails, this counts as not connected."""
        try:
            await self._listen()
            await self._on_disconnect()
        except Exception as error:  # Any error: if this loop ended, the replica would never get hints again.
            if not isinstance(error, StoreUnavailable):
                log.error("replica_listener_failed", error=str(error), exc_info=error)
            await self._disconnect()
            return False
        return True

    async def _listen(self) -> None:
        with translate_errors(self._location):
            self._connection = await open_connection(self._url)
            self._lost = asyncio.Event()
            self._connection.add_termination_listener(lambda _, lost=self._lost: lost.set())
            await self._connection.add_listener(CHANNEL, lambda _connection, _pid, _channel, hint: self._on_hint(hint))

    async def _send_keepalive(self) -> None:
        with translate_errors(self._location):
            assert self._connection
            await self._connection.execute("SELECT")

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(StoreUnavailable), translate_errors(self._location):
            await connection.close(timeout=CLOSE_TIMEOUT_S)
