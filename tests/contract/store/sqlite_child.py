"""A separate process that writes to a SQLite file: `python -m … ACTION FILE [COUNT]`.

It prints a line after each commit that returned, so the tests know which commits were confirmed.
"""

import asyncio
import os
import resource
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.store import AlreadyExists
from mergeyard.ports.writes import AppendEntries, SaveImpactedTargets, SaveToken
from tests.contract.store.builders import (
    HEAD,
    QUEUE,
    REPO,
    a_decision,
    a_queue,
    a_submission,
    a_token,
    an_entry,
    opened,
)


def print_line(value: object) -> None:
    """Writes the line in one call, so that a kill never leaves half of it."""
    os.write(sys.stdout.fileno(), f"{value}\n".encode())


async def commit_numbers(store: SqliteStore) -> None:
    """Several writers at once, each with a queue of its own, until the process is killed."""

    async def write(queue: QueueId) -> None:
        with suppress(AlreadyExists):
            await store.commit(a_queue(queue, key=QueueKey(REPO, queue)))
        for version in count((await store.load(queue)).version + 1):
            entries = AppendEntries((an_entry(f"{queue} {version}", queue=queue, submission_id=version),))
            await store.commit(a_decision(version, a_submission(version), queue=queue), entries)
            print_line(f"{queue} {version}")

    await asyncio.gather(*(write(QueueId(f"q{writer}")) for writer in range(8)))


async def make_tokens(store: SqliteStore, count: int) -> None:
    for number in range(count):
        await store.commit(SaveToken(a_token(f"{os.getpid()}-{number}")))
        print_line(f"{os.getpid()}-{number}")


async def fill_the_disk(store: SqliteStore) -> None:
    """A limit on file sizes simulates a full disk without special permissions."""
    await store.commit(a_queue())
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * 1024, most))
    large = [
        SaveImpactedTargets(QUEUE, PullRequestNumber(number), HEAD, bytes(800_000), Instant(1)) for number in range(4)
    ]
    outcomes = await asyncio.gather(*map(store.commit, large), return_exceptions=True)
    for outcome in outcomes:
        print_line(type(outcome).__name__)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    print_line([number for number in range(4) if await store.impacted_targets(QUEUE, PullRequestNumber(number), HEAD)])
    await store.commit(*large)
    print_line([number for number in range(4) if await store.impacted_targets(QUEUE, PullRequestNumber(number), HEAD)])


async def main(action: str, file: str, *count: str) -> None:
    actions = {"commit-numbers": commit_numbers, "make-tokens": make_tokens, "fill-the-disk": fill_the_disk}
    async with opened(SqliteStore(Path(file))) as store:
        await actions[action](store, *map(int, count))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
