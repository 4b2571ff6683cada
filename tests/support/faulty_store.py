"""A real store whose commits fail or lose their response on demand, and that runs callbacks at commits and reads."""

from collections.abc import Awaitable, Callable, Sequence

from mergeyard.adapters.store_sqlite.store import SqliteStore
from mergeyard.domain.ids import PullRequestNumber, QueueId, Sha
from mergeyard.ports.store import StoreUnavailable
from mergeyard.ports.writes import Write


class FaultyStore(SqliteStore):
    failing_commits = 0
    """How many of the next commits fail."""
    commits_before_failure = 0
    """How many commits succeed before these failures."""
    commits_before_lost_response: int | None = None
    """How many commits return before the response of one is lost."""
    error_after_commit: Exception | None = None
    """Raised once, by the next commit after it was stored."""
    before_commit: Callable[[Sequence[Write]], None] | None = None
    """Called before each commit: an error that it raises takes the place of the commit."""
    before_targets_read: Callable[[], Awaitable[None]] | None = None
    """Called before the next read of impacted targets."""
    after_targets_read: Callable[[], Awaitable[None]] | None = None
    """Called after the next read of impacted targets, before it returns."""

    async def commit(self, *writes: Write) -> None:
        if self.before_commit is not None:
            self.before_commit(writes)
        if self.failing_commits and self.commits_before_failure:
            self.commits_before_failure -= 1
        elif self.failing_commits:
            self.failing_commits -= 1
            raise StoreUnavailable("the disk is full")
        await super().commit(*writes)
        if self.error_after_commit is not None:
            error, self.error_after_commit = self.error_after_commit, None
            raise error
        if self.commits_before_lost_response is not None:
            self.commits_before_lost_response -= 1
            if self.commits_before_lost_response < 0:
                self.commits_before_lost_response = None
                raise StoreUnavailable("the response was lost")

    async def impacted_targets(self, queue: QueueId, number: PullRequestNumber, head: Sha) -> bytes | None:
        if self.before_targets_read is not None:
            callback, self.before_targets_read = self.before_targets_read, None
            await callback()
        found = await super().impacted_targets(queue, number, head)
        if self.after_targets_read is not None:
            callback, self.after_targets_read = self.after_targets_read, None
            await callback()
        return found
