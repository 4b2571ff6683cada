"""Measures the start of the real server with a long journal, alternately with a short one."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Repo, SubmissionId
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.queue import Queue, TargetBranch
from mergeyard.domain.states import PullRequestState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.writes import AppendEntries, CreateQueue, EntryRow
from mergeyard.service import persistence
from tests.support.server import Server

KEY = QueueKey(Repo("git.local", "acme", "app"), "main")
QUEUE = QueueId("bench")
AT = Instant(1_700_000_000_000)
ENTRIES_PER_COMMIT = 10_000


def measure(folder: Path, entries: int, rounds: int) -> dict[str, float]:
    """Milliseconds from the command until the server listens, best of several."""
    short, long = _prepare_server(folder / "short", 1), _prepare_server(folder / "long", entries)
    with_short, with_long = list[float](), list[float]()
    for _ in range(rounds):
        with_short.append(_measure_start(short))
        with_long.append(_measure_start(long))
    return {
        "start_ms": min(with_short),
        "start_ms_long_journal": min(with_long),
        "start_long_journal_over_short": min(with_long) / min(with_short),
    }


def _prepare_server(folder: Path, entries: int) -> Server:
    folder.mkdir(parents=True)
    server = Server(folder)
    asyncio.run(_write(folder / "data" / "mergeyard.db", entries))
    return server


def _measure_start(server: Server) -> float:
    started = perf_counter()
    server.start()
    milliseconds = 1000 * (perf_counter() - started)
    server.stop()
    return milliseconds


async def _write(path: Path, entries: int) -> None:
    store = SqliteStore(path)
    await store.open()
    queue = Queue(id=QUEUE, target_branch=TargetBranch(name=KEY.branch))
    await store.commit(CreateQueue(QUEUE, KEY, AT), persistence.encode_changes(queue, queue, 1, (), (), AT))
    for first in range(0, entries, ENTRIES_PER_COMMIT):
        await store.commit(AppendEntries(_entries(range(first, min(first + ENTRIES_PER_COMMIT, entries)))))
    await store.close()


def _entries(numbers: Sequence[int]) -> tuple[EntryRow, ...]:
    return tuple(_entry(number) for number in numbers)


def _entry(number: int) -> EntryRow:
    change = PullRequestChanged(
        at=AT,
        submission_id=SubmissionId(number),
        number=PullRequestNumber(number + 1),
        source=PullRequestState.NOT_READY,
        to=PullRequestState.CANCELLED,
        reason=Reason.CANCELLED_BY_USER,
    )
    return EntryRow(
        queue=QUEUE,
        at=AT,
        kind="PullRequestChanged",
        actor="bench",
        token=None,
        submission_id=change.submission_id,
        number=change.number,
        source=change.source,
        to=change.to,
        reason=change.reason,
        body=persistence.encode(change),
    )
