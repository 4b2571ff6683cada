"""Retention: deletes records that are older than the operator wants to keep them.

Every batch is a small transaction of its own, so that no other write waits long. The store names only records that
nothing refers to any longer: see `Store.expired_keys`. Every worker does this; deleting a record twice is harmless.
"""

import structlog
from msgspec import Struct

from mergeyard.domain.timestamps import DAY, HOUR, SECOND, Instant
from mergeyard.ports.external import CheckRunner, Clock
from mergeyard.ports.store import Store
from mergeyard.ports.writes import DeleteExpired, RecordKind

log = structlog.get_logger()

DELETE_INTERVAL_MS = HOUR
BATCH_SIZE = 200
PAUSE_BETWEEN_BATCHES_MS = SECOND // 10


class Retention(Struct, frozen=True, kw_only=True):
    """How many days records are kept after they ended; 0: without limit."""

    runs_days: int = 0
    """Runs and submissions that left their queue, with the statuses of those runs."""
    journal_days: int = 0
    statuses_days: int = 0
    """Statuses of commits that no run tests."""
    targets_days: int = 0
    outputs_days: int = 0
    """Output of the checks that Mergeyard ran itself."""

    @property
    def history_days(self) -> int:
        """For how many days the past is complete; 0: without limit."""
        return min((days for days in (self.runs_days, self.journal_days) if days), default=0)


KEEP_FOREVER = Retention()


class RetentionJob:
    def __init__(self, store: Store, runner: CheckRunner, clock: Clock, retention: Retention) -> None:
        self._store = store
        self._runner = runner
        self._clock = clock
        self._retention = retention

    async def delete_expired(self) -> None:
        """Deletes submissions before runs: the merge audit takes a submission without its run for a mismatch."""
        now, retention = self._clock.now(), self._retention
        for kind, days in (
            (RecordKind.SUBMISSIONS, retention.runs_days),
            (RecordKind.RUNS, retention.runs_days),
            (RecordKind.JOURNAL, retention.journal_days),
            (RecordKind.IMPACTED_TARGETS, retention.targets_days),
            (RecordKind.STATUSES, retention.statuses_days),
        ):
            if days:
                await self._delete(kind, Instant(now - days * DAY))
        if retention.outputs_days:
            await self._runner.delete_outputs(Instant(now - retention.outputs_days * DAY))

    async def _delete(self, kind: RecordKind, before: Instant) -> None:
        deleted = 0
        while keys := tuple(await self._store.expired_keys(kind, before, BATCH_SIZE)):
            await self._store.commit(DeleteExpired(kind, keys, before))
            deleted += len(keys)
            await self._clock.sleep(PAUSE_BETWEEN_BATCHES_MS)
        if deleted:
            log.info("expired_records_deleted", kind=kind.value, count=deleted)
