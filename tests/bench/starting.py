"""Starts the real server with a long journal, in turn with one that has none."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import PrNumber, QueueId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import PrChanged
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.states import PrState
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.ports.writes import AppendEntries, CreateQueue, EntryRow
from mergeyard.service import shelving
from tests.support.server import Server

KEY = QueueKey(Repo("git.local", "acme", "app"), "main")
QUEUE = QueueId("bench")
AT = Instant(1_700_000_000_000)
TOGETHER = 10_000


def measure(folder: Path, entries: int, rounds: int) -> dict[str, float]:
    """Milliseconds of the best of several, from the command until it listens."""
    short, long = _server(folder / "short", 1), _server(folder / "long", entries)
    without, behind = list[float](), list[float]()
    for _ in range(rounds):
        without.append(_start(short))
        behind.append(_start(long))
    return {
        "start_ms": min(without),
        "start_ms_long_journal": min(behind),
        "start_long_journal_over_short": min(behind) / min(without),
    }


def _server(folder: Path, entries: int) -> Server:
    folder.mkdir(parents=True)
    server = Server(folder)
    asyncio.run(_write(folder / "data" / "mergeyard.db", entries))
    return server


def _start(server: Server) -> float:
    begun = perf_counter()
    server.start()
    waited = 1000 * (perf_counter() - begun)
    server.stop()
    return waited


async def _write(path: Path, entries: int) -> None:
    store = SqliteStore(path)
    await store.open()
    queue = Queue(id=QUEUE, target=TargetBranch(name=KEY.branch))
    await store.commit(CreateQueue(QUEUE, KEY, AT), shelving.changes(queue, queue, 1, (), (), AT))
    for first in range(0, entries, TOGETHER):
        await store.commit(AppendEntries(_entries(range(first, min(first + TOGETHER, entries)))))
    await store.close()


def _entries(tickets: Sequence[int]) -> tuple[EntryRow, ...]:
    return tuple(_entry(ticket) for ticket in tickets)


def _entry(ticket: int) -> EntryRow:
    change = PrChanged(
        at=AT,
        ticket=Ticket(ticket),
        number=PrNumber(ticket + 1),
        source=PrState.NOT_READY,
        to=PrState.CANCELLED,
        reason=Reason.CANCELLED_BY_USER,
    )
    return EntryRow(
        queue=QUEUE,
        at=AT,
        kind="PrChanged",
        actor="bench",
        token=None,
        ticket=change.ticket,
        number=change.number,
        source=change.source,
        to=change.to,
        reason=change.reason,
        body=shelving.encode(change),
    )
