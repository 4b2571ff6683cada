"""Group commit: a writer thread performs all waiting jobs in one transaction, with one flush to disk.

When one job is refused, the group is rolled back and performed again with a savepoint per job: only the refused job is
undone, and only its caller gets the exception. When the commit fails, nothing was written, and every caller of the
group gets the exception.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

import apsw
from msgspec import Struct, json
from msgspec.structs import asdict, astuple

from mergeyard.adapters.store_sql import statements
from mergeyard.adapters.store_sqlite import connection as db
from mergeyard.ports import writes as w

MAX_JSON_PART_BYTES = 64 * 1024
"""A queue part longer than this is written by a statement of its own, because copying it into JSON costs more."""
STEPS = {
    "save_impacted_targets": ("save_impacted_targets", "delete_targets_of_older_heads"),
    "delete_queue": ("delete_queue", "delete_parts_of_queue", "delete_impacted_targets_of_queue"),
    "start_consumer": ("start_at_end", "start_consumer"),
    "delete_consumer": ("delete_consumer", "delete_cursors"),
    "save_delivery": ("save_delivery", "delete_old_deliveries"),
    "delete_submissions": ("delete_submission",),
    "delete_runs": ("record_deleted_run", "delete_statuses_of_run", "delete_run"),
    "delete_entries": ("delete_entry",),
    "delete_impacted_targets": ("delete_impacted_targets",),
    "delete_statuses": ("claim_status", "delete_status"),
}
"""The queries that perform a statement, if it is not one query of the same name. Those that delete expired records are
performed once per record."""

JsonRow = tuple[object, ...]
encode_json = json.Encoder().encode


class WriteProbe(Struct, frozen=True):
    """Changes nothing that is read. Verifies that the database accepts writes."""


def perform_group(cursor: db.Cursor, writes: Iterable[w.Write | WriteProbe]) -> None:
    """Performs all writes, or raises; then the caller must roll back. Decisions go last, all at once."""
    decisions, entries = list[w.SaveDecision](), list[w.EntryRow]()
    for write in writes:
        match write:
            case w.SaveDecision():
                decisions.append(write)
            case w.AppendEntries():
                entries += write.entries
            case w.AssertLease():
                pass  # The only server of this file holds the leases of all its repositories, and cannot lose them.
            case w.DeleteExpired():
                _delete_expired(cursor, write)
            case WriteProbe():
                cursor.execute(db.SQL["probe_write"])
            case _:
                _perform_statements(cursor, write)
    _save_decisions(cursor, decisions)
    _execute(cursor, "append_entries", map(_to_json_row, entries))


def _perform_statements(cursor: db.Cursor, write: w.Write) -> None:
    for statement in statements.to_statements(write):
        for query in STEPS.get(statement.query, (statement.query,)):
            cursor.execute(db.SQL[query], statement.values).fetchall()
            if query == statement.query and statement.refusal and not cursor.connection.changes():
                raise statement.refusal


def _delete_expired(cursor: db.Cursor, expired: w.DeleteExpired) -> None:
    records, columns = statements.EXPIRING[expired.kind]
    keys = [{**dict(zip(columns, key, strict=True)), "before": expired.before} for key in expired.keys]
    for query in STEPS[f"delete_{records}"]:
        cursor.executemany(db.SQL[query], keys)


def _save_decisions(cursor: db.Cursor, decisions: list[w.SaveDecision]) -> None:
    versions = [(decision.queue, decision.version) for decision in decisions]
    if _execute(cursor, "advance_versions", versions) != len(versions):
        raise statements.version_conflict(decisions[0])
    saved, deleted = list[JsonRow](), list[JsonRow]()
    for queue, part in ((decision.queue, part) for decision in decisions for part in decision.parts):
        if part.body is None:
            deleted.append((queue, part.kind, part.key))
        elif len(part.body) > MAX_JSON_PART_BYTES:
            cursor.execute(db.SQL["save_queue_part"], {"queue": queue, **asdict(part)})
        else:
            saved.append((queue, part.kind, part.key, part.body.hex()))
    _execute(cursor, "save_queue_parts", saved)
    _execute(cursor, "delete_queue_parts", deleted)
    submissions = [(decision.queue, *_to_json_row(row)) for decision in decisions for row in decision.submissions]
    if _execute(cursor, "save_submissions", submissions) != len(submissions):
        _execute(cursor, "move_submissions", submissions)
    runs = [(decision.queue, *_to_json_row(row)) for decision in decisions for row in decision.runs]
    _execute(cursor, "save_runs", runs)


def _to_json_row(row: w.SubmissionRow | w.RunRow | w.EntryRow) -> JsonRow:
    """The fields in the order of the struct. The statements in `group_commit.sql` rely on this order."""
    *columns, _ = astuple(row)
    return (*columns, row.body.hex())


def _execute(cursor: db.Cursor, query: str, rows: Iterable[JsonRow]) -> int:
    """Returns how many rows were changed."""
    given = list(rows)
    if not given:
        return 0
    cursor.execute(db.SQL[query], {"rows": encode_json(given).decode()})
    return cursor.connection.changes()


Writes = Sequence[w.Write | WriteProbe]
Job = tuple[Writes, asyncio.Future[None]]
Outcome = Exception | None


class Writer:
    def __init__(self, connection: db.Connection, path: Path, condition: db.CorruptionState) -> None:
        self.group_count = 0
        """How many groups were committed."""
        self._path = path
        self._condition = condition
        self._inode = path.stat().st_ino
        self._connection = connection
        self._cursor = connection.cursor()
        self._gathered = list[Job]()
        """Jobs of the current iteration of the event loop. They are handed over together, to wake the thread once."""
        self._jobs = SimpleQueue[list[Job] | None]()
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._thread = Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def write(self, writes: Writes) -> asyncio.Future[None]:
        if self._closed:
            raise statements.not_open_error(self._path)
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
        """Performs all waiting jobs first. Then the writer thread moves the WAL into the database file."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while (first := self._jobs.get()) is not None:
            group = [*first, *self._drain_jobs()]
            outcomes = self._write(group)
            # The event loop can be closed already; then no caller waits.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_set_outcomes, group, outcomes)
        with suppress(*db.DATABASE_ERRORS):
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._connection.close()

    def _drain_jobs(self) -> Iterator[Job]:
        with suppress(Empty):
            while (jobs := self._jobs.get_nowait()) is not None:
                yield from jobs
            self._jobs.put(None)

    def _write(self, group: Sequence[Job]) -> Sequence[Outcome]:
        try:
            self._refuse_damaged_file()
            self._refuse_replaced_file()
            self._cursor.execute(db.SQL["begin_writing"])
            outcomes = self._perform_all(group)
            self._cursor.execute(db.SQL["commit"])
        except db.DATABASE_ERRORS as error:
            self._roll_back()
            translated = self._condition.translate_error(error)
            return [translated for _ in group]
        except Exception as error:
            self._roll_back()
            return [error for _ in group]
        self.group_count += 1
        return outcomes

    def _perform_all(self, group: Sequence[Job]) -> Sequence[Outcome]:
        """Tries the whole group first, with few statements and without savepoints: jobs are rarely refused."""
        if self._try_together(group):
            return [None for _ in group]
        self._cursor.execute(db.SQL["rollback"])
        self._cursor.execute(db.SQL["begin_writing"])
        return [self._perform(writes) for writes, _ in group]

    def _try_together(self, group: Sequence[Job]) -> bool:
        try:
            perform_group(self._cursor, [write for writes, _ in group for write in writes])
        except db.DATABASE_ERRORS:
            raise
        except Exception:
            return False
        return True

    def _perform(self, writes: Writes) -> Outcome:
        self._cursor.execute(db.SQL["begin_job"])
        outcome = None
        try:
            for write in writes:
                perform_group(self._cursor, [write])
        except db.DATABASE_ERRORS:
            raise
        except Exception as refused:
            self._cursor.execute(db.SQL["undo_job"])
            outcome = refused
        self._cursor.execute(db.SQL["end_job"])
        return outcome

    def _roll_back(self) -> None:
        """SQLite may have rolled back already, for example when the disk is full."""
        if self._connection.in_transaction:
            self._cursor.execute(db.SQL["rollback"])

    def _refuse_damaged_file(self) -> None:
        if self._condition.error is not None:
            raise self._condition.error

    def _refuse_replaced_file(self) -> None:
        """SQLite would still write to an unlinked file, and all of those writes would be lost."""
        try:
            inode = self._path.stat().st_ino
        except FileNotFoundError:
            inode = None
        except OSError as error:
            raise db.unreadable_file_error(self._path, error) from error
        if inode != self._inode:
            raise db.replaced_file_error(self._path)


def _set_outcomes(group: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
    for (_, durable), outcome in zip(group, outcomes, strict=True):
        if durable.done():
            continue
        if outcome is None:
            durable.set_result(None)
        else:
            durable.set_exception(outcome)
