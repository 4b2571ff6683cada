"""Hears what replicas call out, on a connection of its own that is made again whenever it is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from mergeyard.adapters.store_postgres.connecting import connect_one
from mergeyard.adapters.store_postgres.handles import Connection
from mergeyard.adapters.store_postgres.trouble import told_in_words
from mergeyard.ports.sharing import Hear
from mergeyard.ports.store import StoreTrouble

log = structlog.get_logger()

CHANNEL = "mergeyard"
SECONDS_BETWEEN_PROOFS = 5.0
"""A line can be dead without a sign, so now and then something is said on it."""
SECONDS_BETWEEN_ATTEMPTS = 0.5
SECONDS_TO_SAY_GOODBYE = 2.0

OnDeafEars = Callable[[], Awaitable[None]]


class Ears:
    def __init__(self, url: str, place: str, hear: Hear, on_deaf_ears: OnDeafEars) -> None:
        self._url = url
        self._place = place
        self._hear = hear
        self._on_deaf_ears = on_deaf_ears
        self._lost = asyncio.Event()
        self._line: Connection | None = None
        self._listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._prick_up()
        self._listening = asyncio.create_task(self._listen_on())

    async def close(self) -> None:
        if self._listening:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        await self._hang_up()

    async def _listen_on(self) -> None:
        while True:
            await self._until_lost()
            await self._hang_up()
            while not await self._listens_again():
                await asyncio.sleep(SECONDS_BETWEEN_ATTEMPTS)

    async def _until_lost(self) -> None:
        while not self._lost.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._lost.wait(), SECONDS_BETWEEN_PROOFS)
                return
            try:
                await self._prove()
            except StoreTrouble:
                return

    async def _listens_again(self) -> bool:
        """Whoever was told of deaf ears looks at the database; if it cannot, words are missed still."""
        try:
            await self._prick_up()
            await self._on_deaf_ears()
        except Exception as error:  # whatever it is: nobody would notice ears that gave up
            if not isinstance(error, StoreTrouble):
                log.error("nobody listens to the other replicas", exc_info=error)
            await self._hang_up()
            return False
        return True

    async def _prick_up(self) -> None:
        with told_in_words(self._place):
            self._line = await connect_one(self._url)
            self._lost = asyncio.Event()
            self._line.add_termination_listener(lambda _, lost=self._lost: lost.set())
            await self._line.add_listener(CHANNEL, lambda _line, _process, _channel, word: self._hear(word))

    async def _prove(self) -> None:
        with told_in_words(self._place):
            assert self._line
            await self._line.execute("SELECT")

    async def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line is None:
            return
        with suppress(StoreTrouble), told_in_words(self._place):
            await line.close(timeout=SECONDS_TO_SAY_GOODBYE)
