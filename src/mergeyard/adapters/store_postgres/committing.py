"""Commits: all that one caller wants written, in one transaction.

READ COMMITTED is enough. What was decided on is proved while it is written: a turn by the version of its queue, whose
row stays locked until the end; everything else stands alone, or under a key that can be taken once.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import assert_never

from asyncpg import exceptions as e  # pyright: ignore[reportMissingTypeStubs]

from mergeyard.adapters.store_postgres.asking import rows
from mergeyard.adapters.store_postgres.lines import Lines
from mergeyard.adapters.store_postgres.writes import joined, perform
from mergeyard.domain.ids import QueueId
from mergeyard.ports.store import StoreTrouble
from mergeyard.ports.writes import (
    AppendEntries,
    BeginTelling,
    CreateQueue,
    DeleteExpired,
    DeleteQueue,
    DropSession,
    DropVouchedFor,
    DropWebhook,
    ForgetAnswers,
    ForgetSessions,
    ForgetTeller,
    KeepAnswer,
    KeepConversation,
    KeepDelivery,
    KeepStatus,
    KeepTargets,
    MoveCursor,
    NoteStuck,
    ProveDuty,
    RecordKind,
    RecordTokenUse,
    SaveSession,
    SaveToken,
    SaveTurn,
    SaveWebhook,
    TakeHeart,
    Write,
)

ATTEMPTS = 5
CROSSED = (e.TransactionRollbackError, e.InvalidCachedStatementError)
"""Another transaction came in between, or another replica changed the form of a table. Nothing was written."""


class Committer:
    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._under_way = set[asyncio.Task[None]]()

    async def commit(self, writes: Sequence[Write]) -> None:
        """Goes on to its end even when its caller gives up waiting.

        When the connection is lost while it commits, nobody knows what became of it: that is `StoreTrouble` too, and
        the next turn finds out by its version.
        """
        task = asyncio.create_task(self._try_until_written(writes))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.shield(task)

    async def close(self) -> None:
        """Finishes what is under way."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _try_until_written(self, writes: Sequence[Write]) -> None:
        crossed = None
        for _ in range(ATTEMPTS):
            try:
                return await self._write(writes)
            except CROSSED as error:
                crossed = error
        raise StoreTrouble(f"{self._lines.place} is too busy: others came in between, again and again.") from crossed

    async def _write(self, writes: Sequence[Write]) -> None:
        """One statement is a transaction by itself, and saves two ways to the server and back."""
        whole, held = joined(writes), to_hold(writes)
        if len(whole) == 1 and not held:
            async with self._lines.borrowed() as connection:
                await perform(connection, whole[0])
            return
        async with self._lines.borrowed() as connection, connection.transaction():
            if held:
                await rows(connection, "hold_queues", queues=held)
            for write in whole:
                await perform(connection, write)


def to_hold(writes: Sequence[Write]) -> tuple[QueueId, ...]:
    """The queues to lock before anything is written.

    Where there is only one, a turn of it locks it early enough.
    """
    touched = [queue for write in writes for queue in queues_of(write)]
    first = next((write for write in writes if any(queues_of(write))), None)
    if len(set(touched)) == 1 and not isinstance(first, AppendEntries):
        return ()
    return tuple(sorted(set(touched)))


def queues_of(write: Write) -> Iterable[QueueId]:
    """Those whose rows must be locked for it."""
    match write:
        case SaveTurn():
            return (write.queue,)
        case CreateQueue() | DeleteQueue():
            return (write.id,)
        case AppendEntries():
            return (entry.queue for entry in write.entries if entry.queue is not None)
        case DeleteExpired(kind=RecordKind.SUBMISSIONS | RecordKind.RUNS):
            return (QueueId(str(queue)) for queue, _ in write.keys)
        case DeleteExpired():
            return ()
        case KeepTargets() | KeepStatus() | KeepAnswer() | ForgetAnswers() | ProveDuty() | SaveToken():
            return ()
        case RecordTokenUse() | SaveSession() | DropSession() | DropVouchedFor() | ForgetSessions():
            return ()
        case BeginTelling() | MoveCursor() | NoteStuck() | TakeHeart() | ForgetTeller() | KeepConversation():
            return ()
        case SaveWebhook() | DropWebhook() | KeepDelivery():
            return ()
        case _:
            assert_never(write)
