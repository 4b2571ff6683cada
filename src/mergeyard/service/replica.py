"""Listens to hints of other replicas, and polls for changes whose hint was lost."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import structlog
from msgspec import MsgspecError

from mergeyard.domain.events import PullRequestDirty
from mergeyard.domain.ids import Repo
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import Mergeability
from mergeyard.ports.forge import CommitNotice, ForgeNotice, PullRequestNotice
from mergeyard.ports.store import LeaseLost, SharedStore, StoredQueue, StoreUnavailable
from mergeyard.service.background import Background
from mergeyard.service.errors import RequestRefused
from mergeyard.service.leases import Leases
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.replica_bus import (
    CommitNoticeReceived,
    LeaseReleased,
    PullRequestNoticeReceived,
    QueueSaved,
    ReplicaBus,
    StatusSaved,
    decode_hint,
)
from mergeyard.service.statuses import Statuses

log = structlog.get_logger()


QUEUE_POLL_INTERVAL_MS = 2000


@dataclass(eq=False)
class ReplicaListener:
    shared: SharedStore
    registry: QueueRegistry
    leases: Leases
    replica_bus: ReplicaBus
    statuses: Statuses
    dispatch_notices: Callable[[Sequence[ForgeNotice]], None]
    background: Background
    _claim_leases: Callable[[], Awaitable[None]] | None = field(default=None, init=False)
    _claiming: asyncio.Task[None] | None = field(default=None, init=False)

    async def start(self, claim_leases: Callable[[], Awaitable[None]] | None) -> None:
        """`claim_leases` is called when a lease becomes free; None on a replica that only answers requests."""
        self._claim_leases = claim_leases
        await self.shared.listen(self._handle_hint, self._poll_queues)
        self.background.run_periodically("replica_listener", self._poll_queues, QUEUE_POLL_INTERVAL_MS)

    def _handle_hint(self, text: str) -> None:
        try:
            hint = decode_hint(text)
        except MsgspecError:
            return  # From a newer version, during a rolling update. Polling finds what it reports.
        match hint:
            case QueueSaved():
                self.replica_bus.record_announced(hint)
                self.background.start(self._on_queue_saved(hint))
            case StatusSaved():
                self.statuses.on_status_saved(hint.repo, hint.sha)
            case PullRequestNoticeReceived():
                if self.leases.has_lease(hint.repo):
                    self.dispatch_notices([PullRequestNotice(hint.repo, hint.number)])
            case CommitNoticeReceived():
                if self.leases.has_lease(hint.repo):
                    self.dispatch_notices([CommitNotice(hint.repo, hint.sha, hint.check)])
            case LeaseReleased():
                self._start_claiming()
            case _:
                assert_never(hint)

    def _start_claiming(self) -> None:
        if self._claim_leases is not None and (self._claiming is None or self._claiming.done()):
            self._claiming = self.background.start(_claim_or_log(self._claim_leases))

    async def _on_queue_saved(self, saved: QueueSaved) -> None:
        known = self.registry.cached_by_id(saved.queue)
        if not self._is_followed(saved.repo, known):
            return
        if known is not None:
            await self._update_queue(StoredQueue(known.id, known.key, saved.version))
            return
        for stored in await self.shared.changed_queues([(saved.queue, 0)]):
            await self._update_queue(stored)

    async def _poll_queues(self) -> None:
        """Updates the queues whose lease this replica holds, and those that a client waits for here."""
        replica = self.leases.replica_name
        known = [queue_actor for queue_actor in self.registry if self.leases.has_lease(queue_actor.key.repo)]
        stored = await self.shared.leased_queues(replica)
        if self.leases.replica_name != replica:
            return
        # A lease may have been lost while the store was read: then a missing queue is not a deleted one.
        still_held = (queue_actor for queue_actor in known if self.leases.has_lease(queue_actor.key.repo))
        self.registry.evict_deleted(still_held, stored)
        awaited = [(queue_actor.id, queue_actor.version) for queue_actor in self.registry if queue_actor.has_waiters]
        for queue in (*stored, *(await self.shared.changed_queues(awaited) if awaited else ())):
            if self._needs_update(queue):
                self.background.start(self._update_queue(queue))
        self.statuses.recheck_all()

    def _is_followed(self, repo: Repo, known: QueueActor | None) -> bool:
        """Other queues are brought up to date when a request asks for them."""
        return self.leases.has_lease(repo) or (known is not None and known.has_waiters)

    def _needs_update(self, stored: StoredQueue) -> bool:
        known = self.registry.cached_by_id(stored.id)
        if not self._is_followed(stored.key.repo, known):
            return False
        return known is None or known.version < stored.version or self._needs_decision(known)

    def _needs_decision(self, queue_actor: QueueActor) -> bool:
        """A request can have loaded a newer version without running the engine on it."""
        return queue_actor.decided_version < queue_actor.version or any(_find_unread(queue_actor.queue))

    async def _update_queue(self, stored: StoredQueue) -> None:
        known = self.registry.cached_by_id(stored.id)
        try:
            queue_actor = await self.registry.load(stored)
            if not self.leases.has_lease(queue_actor.key.repo):
                return
            if known is None:
                await queue_actor.resume()
            elif self._needs_decision(queue_actor):
                await self._decide(queue_actor)
        except (RequestRefused, LeaseLost):
            return
        except StoreUnavailable as error:
            log.warning("queue_not_updated", queue=str(stored.key), error=str(error))

    async def _decide(self, queue_actor: QueueActor) -> None:
        lease_assertion = self.leases.lease_assertion(queue_actor.key.repo)
        await queue_actor.submit(*_find_unread(queue_actor.queue), lease_assertion=lease_assertion)


def _find_unread(queue: Queue) -> Iterator[PullRequestDirty]:
    """Pull requests that were submitted through another replica and wait for a read. `refresh_requested` is not stored,
    so they are recognized by their mergeability, which is still `CHECKING`."""
    for _, submission_id in queue.not_ready:
        submission = queue.submissions[submission_id]
        if (
            submission.pull_request.mergeability is Mergeability.CHECKING
            and submission_id not in queue.refresh_requested
        ):
            yield PullRequestDirty(number=submission.number)


async def _claim_or_log(claim_leases: Callable[[], Awaitable[None]]) -> None:
    try:
        await claim_leases()
    except StoreUnavailable as error:
        log.warning("leases_not_claimed", error=str(error))
