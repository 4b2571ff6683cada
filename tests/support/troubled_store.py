"""A real store whose disk is full now and then."""

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.ports.store import StoreTrouble
from mergeyard.ports.writes import Write


class TroubledStore(SqliteStore):
    failures = 0
    """How many of the next commits fail."""

    async def commit(self, *writes: Write) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreTrouble("the disk is full")
        await super().commit(*writes)
