"""Writes on a thread of its own, everything that waits as one group: one transaction, one write to the disk.

When a job is refused, all begin again, each in its own savepoint: that one is taken back alone, and only its caller
hears of it. When the group cannot be made durable, nothing of it was written, and all hear of it.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

import apsw

from mergeyard.adapters.store_sqlite.handles import Connection
from mergeyard.adapters.store_sqlite.sql import SQL
from mergeyard.adapters.store_sqlite.together import perform_together
from mergeyard.adapters.store_sqlite.trouble import TROUBLES, Condition, moved, not_open, unreachable
from mergeyard.adapters.store_sqlite.writes import Beat, perform
from mergeyard.ports.writes import Write

Writes = Sequence[Write | Beat]
Job = tuple[Writes, asyncio.Future[None]]
Outcome = Exception | None


class Writer:
    def __init__(self, connection: Connection, path: Path, condition: Condition) -> None:
        self.groups = 0
        """How often it wrote to the disk."""
        self._path = path
        self._condition = condition
        self._file = path.stat().st_ino
        self._connection = connection
        self._cursor = connection.cursor()
        self._gathered = list[Job]()
        """Those of the present round of the loop: handed over together they wake the thread once."""
        self._jobs = SimpleQueue[list[Job] | None]()
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._thread = Thread(target=self._work, name="store-writer", daemon=True)
        self._thread.start()

    def write(self, writes: Writes) -> asyncio.Future[None]:
        if self._closed:
            raise not_open(self._path)
        durable: asyncio.Future[None] = self._loop.create_future()
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append((writes, durable))
        return durable

    def _hand_over(self) -> None:
        if self._gathered:
            self._jobs.put(self._gathered)
            self._gathered = []

    async def close(self) -> None:
        """Finishes what waits. The last one to close empties the log into the database."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        while (first := self._jobs.get()) is not None:
            group = [*first, *self._waiting()]
            outcomes = self._write(group)
            # The loop may be gone, and with it everybody who waited.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_settle, group, outcomes)
        with suppress(*TROUBLES):
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._connection.close()

    def _waiting(self) -> Iterator[Job]:
        with suppress(Empty):
            while (jobs := self._jobs.get_nowait()) is not None:
                yield from jobs
            self._jobs.put(None)

    def _write(self, group: Sequence[Job]) -> Sequence[Outcome]:
        try:
            self._refuse_a_damaged_file()
            self._refuse_a_moved_file()
            self._cursor.execute(SQL["begin_writing"])
            outcomes = self._perform_all(group)
            self._cursor.execute(SQL["commit"])
        except TROUBLES as error:
            self._abandon()
            trouble = self._condition.told(error)
            return [trouble for _ in group]
        except Exception as error:
            self._abandon()
            return [error for _ in group]
        self.groups += 1
        return outcomes

    def _perform_all(self, group: Sequence[Job]) -> Sequence[Outcome]:
        """First all together, in few statements and without savepoints: hardly ever is one of them refused."""
        if self._none_is_refused(group):
            return [None for _ in group]
        self._cursor.execute(SQL["rollback"])
        self._cursor.execute(SQL["begin_writing"])
        return [self._perform(writes) for writes, _ in group]

    def _none_is_refused(self, group: Sequence[Job]) -> bool:
        try:
            perform_together(self._cursor, [write for writes, _ in group for write in writes])
        except TROUBLES:
            raise
        except Exception:
            return False
        return True

    def _perform(self, writes: Writes) -> Outcome:
        self._cursor.execute(SQL["begin_job"])
        outcome = None
        try:
            for write in writes:
                perform(self._cursor, write)
        except TROUBLES:
            raise
        except Exception as refused:
            self._cursor.execute(SQL["undo_job"])
            outcome = refused
        self._cursor.execute(SQL["end_job"])
        return outcome

    def _abandon(self) -> None:
        """SQLite itself may have rolled back already, as it does when the disk is full."""
        if self._connection.in_transaction:
            self._cursor.execute(SQL["rollback"])

    def _refuse_a_damaged_file(self) -> None:
        if self._condition.damage is not None:
            raise self._condition.damage

    def _refuse_a_moved_file(self) -> None:
        """A file that was unlinked can still be written to, and all of it would be lost."""
        try:
            present = self._path.stat().st_ino
        except FileNotFoundError:
            present = None
        except OSError as trouble:
            raise unreachable(self._path, trouble) from trouble
        if present != self._file:
            raise moved(self._path)


def _settle(group: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
    for (_, durable), outcome in zip(group, outcomes, strict=True):
        if durable.done():
            continue
        if outcome is None:
            durable.set_result(None)
        else:
            durable.set_exception(outcome)
