"""Lists all pull requests of a repository, also those that cannot be read."""

import asyncio
from pathlib import Path

from msgspec import Struct

from mergeyard.adapters.host_plain.objects import ObjectReader
from mergeyard.adapters.host_plain.pulls import StoredPull, stored_pull
from mergeyard.adapters.host_plain.refs import number_of, refs_below
from mergeyard.domain.ids import PrNumber
from mergeyard.ports.host import HostTrouble


class Unreadable(Struct, frozen=True):
    number: PrNumber
    words: str


async def all_pulls(folder: Path) -> list[StoredPull | Unreadable]:
    numbers = {number for ref in await refs_below(folder, "refs/pull") if (number := number_of(ref))}
    reader = await ObjectReader.of(folder)
    try:
        return await asyncio.gather(*(pull_or_words(reader, number) for number in sorted(numbers)))
    finally:
        await reader.close()


async def pull_or_words(reader: ObjectReader, number: PrNumber) -> StoredPull | Unreadable:
    try:
        pull = await stored_pull(reader, number)
    except HostTrouble as trouble:
        return Unreadable(number, str(trouble))
    return pull or Unreadable(number, "its head or its data is missing")
