"""A real store whose disk is full now and then, or slow, so that something can happen meanwhile."""

from collections.abc import Awaitable, Callable

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import PrNumber, QueueId, Sha
from mergeyard.ports.store import StoreTrouble
from mergeyard.ports.writes import Write


class TroubledStore(SqliteStore):
    failures = 0
    """How many of the next commits fail,"""
    successes = 0
    """and how many succeed before them."""
    answers: int | None = None
    """How many commits are answered before the answer of one is lost."""
    meanwhile: Callable[[], Awaitable[None]] | None = None
    """What happens before targets are read for the next time,"""
    afterwards: Callable[[], Awaitable[None]] | None = None
    """and what happens when they were, before anybody hears of it."""

    async def commit(self, *writes: Write) -> None:
        if self.failures and self.successes:
            self.successes -= 1
        elif self.failures:
            self.failures -= 1
            raise StoreTrouble("the disk is full")
        await super().commit(*writes)
        if self.answers is not None:
            self.answers -= 1
            if self.answers < 0:
                self.answers = None
                raise StoreTrouble("the answer got lost")

    async def targets(self, queue: QueueId, number: PrNumber, head: Sha) -> bytes | None:
        if self.meanwhile is not None:
            happen, self.meanwhile = self.meanwhile, None
            await happen()
        found = await super().targets(queue, number, head)
        if self.afterwards is not None:
            happen, self.afterwards = self.afterwards, None
            await happen()
        return found
