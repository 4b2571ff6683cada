"""Keeps one reader per repository, for the repositories that were asked for last."""

import asyncio
import os
from pathlib import Path

from msgspec import Struct

from mergeyard.adapters.host_plain.objects import ObjectReader
from mergeyard.ports.host import HostTrouble


class Kept(Struct, frozen=True):
    reader: ObjectReader
    identity: tuple[int, int]
    """Which repository it reads, whatever stands at that path later."""


class Readers:
    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._kept: dict[Path, Kept] = {}
        """The one asked for last stands last."""
        self._starting = asyncio.Lock()

    async def of(self, folder: Path) -> ObjectReader:
        identity = identity_of(folder)
        return self._present(folder, identity) or await self._started(folder, identity)

    async def close(self) -> None:
        async with self._starting:
            while self._kept:
                await self._drop(next(iter(self._kept)))

    def _present(self, folder: Path, identity: tuple[int, int]) -> ObjectReader | None:
        kept = self._kept.get(folder)
        if not kept or kept.identity != identity or not kept.reader.is_open:
            return None
        self._kept[folder] = self._kept.pop(folder)
        return kept.reader

    async def _started(self, folder: Path, identity: tuple[int, int]) -> ObjectReader:
        async with self._starting:
            if present := self._present(folder, identity):
                return present
            if folder in self._kept:
                await self._drop(folder)
            while len(self._kept) >= self._most:
                await self._drop(next(iter(self._kept)))
            reader = await ObjectReader.of(folder)
            self._kept[folder] = Kept(reader, identity)
            return reader

    async def _drop(self, folder: Path) -> None:
        await self._kept.pop(folder).reader.close()


def identity_of(folder: Path) -> tuple[int, int]:
    """Of the file that every repository has; the folder's own number may be given again to the next one there."""
    try:
        found = os.stat(f"{folder}/HEAD")
    except OSError:
        raise HostTrouble(f"there is no repository at {folder}") from None
    return found.st_ino, found.st_mtime_ns
