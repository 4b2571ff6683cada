"""Lets the event loop go on until something becomes true, but not for ever."""

import asyncio
from collections.abc import Callable

PATIENCE_IN_SECONDS = 30
PAUSE = 0.01


async def come_true(look: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_IN_SECONDS):
        while not look():
            await asyncio.sleep(PAUSE)
