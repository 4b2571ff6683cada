"""Deletes records that are older than the operator wants them kept.

Every batch is a small transaction of its own, so that no other write waits long. The store names only records that
nothing needs any more: see `Store.expired`. Every replica that works does this; deleting twice changes nothing.
"""

import structlog
from msgspec import Struct

from mergeyard.domain.instants import DAY, HOUR, SECOND, Instant
from mergeyard.ports.clock import Clock
from mergeyard.ports.runner import Runner
from mergeyard.ports.store import Store
from mergeyard.ports.writes import DeleteExpired, RecordKind

log = structlog.get_logger()

DELETE_EVERY = HOUR
RECORDS_AT_ONCE = 200
BETWEEN_BATCHES = SECOND // 10


class Retention(Struct, frozen=True, kw_only=True):
    """For how many days records are kept after they ended; 0 is forever."""

    runs_days: int = 0
    """Runs and submissions that left their queue, with the statuses of those runs."""
    journal_days: int = 0
    statuses_days: int = 0
    """Statuses of commits that no run tests."""
    targets_days: int = 0
    outputs_days: int = 0
    """What checks wrote that this service ran."""


KEEP_FOREVER = Retention()


class RetentionJob:
    def __init__(self, store: Store, runner: Runner, clock: Clock, retention: Retention) -> None:
        self._store = store
        self._runner = runner
        self._clock = clock
        self._retention = retention

    async def delete_expired(self) -> None:
        """Submissions go before runs: the merge audit takes a submission without its run for a mismatch."""
        now, kept = self._clock.now(), self._retention
        for kind, days in (
            (RecordKind.SUBMISSIONS, kept.runs_days),
            (RecordKind.RUNS, kept.runs_days),
            (RecordKind.JOURNAL, kept.journal_days),
            (RecordKind.TARGETS, kept.targets_days),
            (RecordKind.STATUSES, kept.statuses_days),
        ):
            if days:
                await self._delete(kind, Instant(now - days * DAY))
        if kept.outputs_days:
            await self._runner.delete_outputs(Instant(now - kept.outputs_days * DAY))

    async def _delete(self, kind: RecordKind, before: Instant) -> None:
        deleted = 0
        while keys := tuple(await self._store.expired(kind, before, RECORDS_AT_ONCE)):
            await self._store.commit(DeleteExpired(kind, keys, before))
            deleted += len(keys)
            await self._clock.sleep(BETWEEN_BATCHES)
        if deleted:
            log.info("expired_records_deleted", kind=kind.value, count=deleted)
