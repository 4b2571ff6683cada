"""A process of its own beside the tests, which keeps things in a SQLite file: `python -m … DEED FILE [HOW MANY]`.

It prints a line after each commit that returned, so that the tests know what it was promised.
"""

import asyncio
import os
import resource
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import PrNumber, QueueId
from mergeyard.domain.instants import Instant
from mergeyard.domain.repositories import QueueKey
from mergeyard.ports.store import Taken
from mergeyard.ports.writes import AppendEntries, KeepTargets, SaveToken
from tests.contract.store.given import HEAD, QUEUE, REPO, a_queue, a_stay, a_token, a_turn, an_entry, opened


def say(words: object) -> None:
    """In one piece, so that a kill never leaves half a line."""
    os.write(sys.stdout.fileno(), f"{words}\n".encode())


async def commit_numbers(store: SqliteStore) -> None:
    """Several writers at once, each with a queue of its own, until somebody kills the process."""

    async def write(queue: QueueId) -> None:
        with suppress(Taken):
            await store.commit(a_queue(queue, key=QueueKey(REPO, queue)))
        for version in count((await store.load(queue)).version + 1):
            told = AppendEntries((an_entry(f"{queue} {version}", queue=queue, ticket=version),))
            await store.commit(a_turn(version, a_stay(version), queue=queue), told)
            say(f"{queue} {version}")

    await asyncio.gather(*(write(QueueId(f"q{writer}")) for writer in range(8)))


async def make_tokens(store: SqliteStore, how_many: int) -> None:
    for number in range(how_many):
        await store.commit(SaveToken(a_token(f"{os.getpid()}-{number}")))
        say(f"{os.getpid()}-{number}")


async def fill_the_disk(store: SqliteStore) -> None:
    """A limit on the size of files is the nearest to a full disk that needs no rights."""
    await store.commit(a_queue())
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * 1024, most))
    large = [KeepTargets(QUEUE, PrNumber(number), HEAD, bytes(800_000), Instant(1)) for number in range(4)]
    outcomes = await asyncio.gather(*map(store.commit, large), return_exceptions=True)
    for outcome in outcomes:
        say(type(outcome).__name__)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    say([number for number in range(4) if await store.targets(QUEUE, PrNumber(number), HEAD)])
    await store.commit(*large)
    say([number for number in range(4) if await store.targets(QUEUE, PrNumber(number), HEAD)])


async def main(deed: str, file: str, *how_many: str) -> None:
    deeds = {"commit-numbers": commit_numbers, "make-tokens": make_tokens, "fill-the-disk": fill_the_disk}
    async with opened(SqliteStore(Path(file))) as store:
        await deeds[deed](store, *map(int, how_many))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
