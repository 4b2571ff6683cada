"""Waits until a condition is true, with a timeout."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

TIMEOUT_S = 240.0
"""Long enough for a machine on which several test processes share two slow processors."""
POLL_INTERVAL_S = 0.05

Found = TypeVar("Found")


def eventually(
    probe: Callable[[], Found | None], timeout_s: float = TIMEOUT_S, describe: Callable[[], object] = lambda: ""
) -> Found:
    """Returns the first true result of the probe; after the timeout the error contains `describe()`."""
    deadline = time.monotonic() + timeout_s
    while not (found := probe()):
        assert time.monotonic() < deadline, f"not true within {timeout_s:g} seconds: {describe()}"
        time.sleep(POLL_INTERVAL_S)
    return found


ASYNC_TIMEOUT_S = 30
ASYNC_POLL_INTERVAL_S = 0.01


async def wait_until(look: Callable[[], object]) -> None:
    async with asyncio.timeout(ASYNC_TIMEOUT_S):
        while not look():
            await asyncio.sleep(ASYNC_POLL_INTERVAL_S)
