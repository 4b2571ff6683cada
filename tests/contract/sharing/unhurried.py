"""Lets others have a turn before every call to a store that itself never waits for anything."""

import asyncio
from typing import Any

from mergeyard.ports.sharing import SharedStore


class Unhurried:
    def __init__(self, store: SharedStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def after_others(*given: object) -> object:
            await asyncio.sleep(0)
            return await method(*given)

        return after_others
