"""Opens the store for one command: which settings lead to it, and what is told when it cannot be used."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from mergeyard.cli.exits import Ends, stop_with
from mergeyard.cli.options import load_settings
from mergeyard.ports.store import Store, StoreTrouble
from mergeyard.service.errors import Refused
from mergeyard.settings import Settings
from mergeyard.wiring import open_archive

NO_DATABASE = (
    "No database of Mergeyard here: {place}. Start `mergeyard serve` once, which makes it, or say where it is with "
    "--config, --data-dir or --database-url."
)

Room = TypeVar("Room")
Outcome = TypeVar("Outcome")


def store_settings(config: Path | None, data_dir: str | None, database_url: str | None) -> Settings:
    return load_settings(config, {"data_dir": data_dir, "database_url": database_url})


def with_store(
    make: Callable[[Settings], tuple[Store, Room]], settings: Settings, use: Callable[[Room], Awaitable[Outcome]]
) -> Outcome:
    """Opens the store, and returns what the given function makes of it.

    It never makes a database: a token in a new one at the wrong place would open nothing.
    """

    async def run() -> Outcome:
        archive = open_archive(settings)
        if not await archive.form():
            stop_with(NO_DATABASE.format(place=archive.place), Ends.WRONG_USE)
        store, room = make(settings)
        await store.open()
        try:
            return await use(room)
        finally:
            await store.close()

    try:
        return asyncio.run(run())
    except (StoreTrouble, Refused) as trouble:
        stop_with(str(trouble))
