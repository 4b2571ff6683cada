"""Performs each kind of write, and commits them with the lease and version checks of several replicas."""

import asyncio
from collections.abc import Iterable, Sequence

from asyncpg import exceptions as e  # pyright: ignore[reportMissingTypeStubs]
from msgspec import Struct
from msgspec.structs import asdict

from mergeyard.adapters.store_postgres.connection import Connection, ConnectionPool, Value, fetch_rows
from mergeyard.adapters.store_sql.statements import EXPIRING, to_statements, version_conflict
from mergeyard.domain.ids import QueueId
from mergeyard.ports import store
from mergeyard.ports import writes as w

MAX_REMEMBERED_DECISIONS = 1000
"""For how many decisions the ids of deleted queue parts are kept. A replica further behind loads the whole queue."""


def combine_writes(writes: Sequence[w.Write]) -> list[tuple[w.Write, tuple[w.EntryRow, ...]]]:
    """Combines each decision with the journal entries of the same queue that follow it: one statement writes both."""
    combined = list[tuple[w.Write, tuple[w.EntryRow, ...]]]()
    for write in writes:
        last, its_entries = combined[-1] if combined else (None, ())
        if (
            isinstance(last, w.SaveDecision)
            and not its_entries
            and isinstance(write, w.AppendEntries)
            and all(entry.queue == last.queue for entry in write.entries)
        ):
            combined[-1] = last, write.entries
        else:
            combined.append((write, ()))
    return combined


async def perform_write(connection: Connection, write: w.Write, entries: tuple[w.EntryRow, ...] = ()) -> None:
    """Writes the entries together with the decision that they follow."""
    match write:
        case w.SaveDecision():
            await _save_decision(connection, write, entries)
        case w.AppendEntries():
            await fetch_rows(connection, "append_entries", **_to_columns("entry", w.EntryRow, write.entries))
        case w.AssertLease(repo=repo, replica=replica, fence=fence):
            if not await fetch_rows(connection, "assert_lease", **asdict(repo), replica=replica, fence=fence):
                raise store.LeaseLost(f"Replica {replica} does not hold the lease of {repo} with fence {fence}.")
        case w.DeleteExpired(kind=kind, keys=keys, before=before):
            records, names = EXPIRING[kind]
            columns = {name: [key[position] for key in keys] for position, name in enumerate(names)}
            await fetch_rows(connection, f"delete_{records}", **columns, before=before)
        case _:
            for statement in to_statements(write):
                found = await fetch_rows(connection, statement.query, **statement.values)
                if statement.refusal and not found:
                    raise statement.refusal


async def _save_decision(connection: Connection, decision: w.SaveDecision, entries: Iterable[w.EntryRow]) -> None:
    """Of several rows with the same key the last one counts, because one statement cannot write a row twice."""
    parts = {(part.kind, part.key): part for part in decision.parts}.values()
    submissions = {row.submission_id: row for row in decision.submissions}.values()
    runs = {row.id: row for row in decision.runs}.values()
    is_saved = await fetch_rows(
        connection,
        "save_decision",
        queue=decision.queue,
        version=decision.version,
        oldest_version=decision.version - MAX_REMEMBERED_DECISIONS,
        **_to_columns("part", w.QueuePart, [part for part in parts if part.body is not None]),
        **_to_columns("deleted", w.QueuePart, [part for part in parts if part.body is None]),
        **_to_columns("submission", w.SubmissionRow, submissions),
        **_to_columns("run", w.RunRow, runs),
        **_to_columns("entry", w.EntryRow, entries),
    )
    if not is_saved:
        raise version_conflict(decision)


def _to_columns(prefix: str, kind: type[Struct], rows: Iterable[Struct]) -> dict[str, Value]:
    """One array per field, such as `run_tip`, because one statement writes many rows."""
    given = list(rows)
    return {f"{prefix}_{field}": [getattr(row, field) for row in given] for field in kind.__struct_fields__}


MAX_ATTEMPTS = 5
RETRYABLE_ERRORS = (e.TransactionRollbackError, e.InvalidCachedStatementError)
"""A conflict with another transaction, or another replica migrated the schema. Nothing was written."""


class Committer:
    def __init__(self, pool: ConnectionPool) -> None:
        self.pool = pool
        self._running = set[asyncio.Task[None]]()

    async def commit(self, writes: Sequence[w.Write]) -> None:
        """Completes even if the caller is cancelled.

        If the connection is lost during the commit, the outcome is unknown. That raises `StoreUnavailable` too; the
        next decision of the queue learns the outcome from the version.
        """
        task = asyncio.create_task(self._write_with_retries(writes))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await asyncio.shield(task)

    async def close(self) -> None:
        """Waits for the running commits."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _write_with_retries(self, writes: Sequence[w.Write]) -> None:
        last_error = None
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._write(writes)
            except RETRYABLE_ERRORS as error:
                last_error = error
        raise store.StoreUnavailable(
            f"{self.pool.location} is too busy: {MAX_ATTEMPTS} attempts to commit "
            f"conflicted with other transactions. "
            "Look for long transactions on its server."
        ) from last_error

    async def _write(self, writes: Sequence[w.Write]) -> None:
        """A single statement is a transaction by itself and saves two round trips."""
        combined, locked = combine_writes(writes), _queues_to_lock(writes)
        if len(combined) == 1 and not locked:
            async with self.pool.acquire() as connection:
                await perform_write(connection, *combined[0])
            return
        async with self.pool.acquire() as connection, connection.transaction():
            if locked:
                await fetch_rows(connection, "lock_queues", queues=locked)
            for write, entries in combined:
                await perform_write(connection, write, entries)


def _queues_to_lock(writes: Sequence[w.Write]) -> tuple[QueueId, ...]:
    """The queues whose rows must be locked before anything is written, in the order of locking.

    None when there is only one queue and its first write locks the row by itself.
    """
    touched = [queue for write in writes for queue in _queues_of(write)]
    first = next((write for write in writes if any(_queues_of(write))), None)
    if len(set(touched)) == 1 and not isinstance(first, w.AppendEntries):
        return ()
    return tuple(sorted(set(touched)))


def _queues_of(write: w.Write) -> Iterable[QueueId]:
    """The queues whose rows must be locked while this is written."""
    match write:
        case w.SaveDecision():
            return (write.queue,)
        case w.CreateQueue() | w.DeleteQueue():
            return (write.id,)
        case w.AppendEntries():
            return (entry.queue for entry in write.entries if entry.queue is not None)
        case w.DeleteExpired(kind=w.RecordKind.SUBMISSIONS | w.RecordKind.RUNS):
            return (QueueId(str(queue)) for queue, _ in write.keys)
        case _:
            return ()
