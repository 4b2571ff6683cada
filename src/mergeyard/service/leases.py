"""Leases of this replica: acquiring, renewing, losing and releasing them, and the fence that its commits assert.

Every worker aims for the same share of the repositories, so that work spreads evenly without a coordinator.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from socket import gethostname
from typing import Protocol
from uuid import uuid4

import structlog

from mergeyard.domain.ids import Repo
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import Instant, later
from mergeyard.ports.external import Clock
from mergeyard.ports.git import Git
from mergeyard.ports.store import Lease, LeaseLost, LeaseStatus, SharedStore, StoredQueue, StoreUnavailable
from mergeyard.ports.writes import AssertLease, Write
from mergeyard.service.background import Background, retry_until_stored
from mergeyard.service.callbacks import call_each
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.metrics import LEASES, LEASES_ACQUIRED, LEASES_LOST
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.replica_bus import LeaseReleased, ReplicaBus, encode_hint


class QueueListener(Protocol):
    """Does part of the background work for queues whose lease this replica holds."""

    def on_change(self, queue_actor: QueueActor, before: Queue | None, /) -> None:
        """Called after every decision with the queue before it; None on the first call for this queue."""
        ...

    def on_lease_lost(self, queue_actor: QueueActor, /) -> None:
        """Stops the work for this queue: another replica holds the lease, or the queue was evicted."""
        ...


class Leases:
    def __init__(self, clock: Clock) -> None:
        self.listeners: list[QueueListener] = []
        self._clock = clock
        self._replica: str | None = None
        self._fences: dict[Repo, int] = {}
        self._until = Instant(0)

    @property
    def replica_name(self) -> str:
        """The name under which this replica holds leases; empty on a single server and on one that only answers."""
        return self._replica or ""

    @property
    def repos(self) -> tuple[Repo, ...]:
        """The repositories whose leases this replica holds; none on a single server."""
        return tuple(self._fences)

    def has_lease(self, repo: Repo) -> bool:
        """False once the leases have expired locally, so a suspended process does not act on a lease that another
        replica may hold."""
        return self._replica is None or (repo in self._fences and self.is_valid)

    def lease_assertion(self, repo: Repo) -> tuple[Write, ...]:
        """Writes to commit with the results of background work: they fail the commit if the lease is lost by then."""
        if self._replica is None:
            return ()
        if repo not in self._fences:
            raise LeaseLost(f"This replica does not hold the lease of {repo}.")
        return (AssertLease(self._replica, repo, self._fences[repo]),)

    def on_change(self, queue_actor: QueueActor, before: Queue | None) -> None:
        if self.has_lease(queue_actor.key.repo):
            on_change = [listener.on_change for listener in self.listeners]
            call_each(on_change, queue_actor, before, event="queue_listener_failed", queue=str(queue_actor.key))

    def require_leases(self, replica: str) -> None:
        """From now on this process works only for repositories whose leases it holds. It starts with none."""
        self._replica = replica
        self._fences = {}

    @property
    def is_valid(self) -> bool:
        """Whether the leases were renewed recently enough that no other replica can have claimed them."""
        return self._clock.now() < self._until

    @property
    def is_expired(self) -> bool:
        """The leases have expired locally. Decisions were not passed on to the listeners since then, so the work must
        start over even if this replica gets the same leases back."""
        return bool(self._fences) and not self.is_valid

    def extend_until(self, instant: Instant) -> None:
        self._until = instant

    def find_new(self, leases: Iterable[Lease]) -> tuple[Repo, ...]:
        """The repositories whose lease is new here, or has a new fence because another replica held it in between."""
        return tuple(lease.repo for lease in leases if self._fences.get(lease.repo) != lease.fence)

    def replace_all(self, leases: Collection[Lease], actors_of: Callable[[Repo], Iterable[QueueActor]]) -> None:
        """Replaces the held leases, and stops the work for repositories whose lease is gone or has a new fence."""
        LEASES_ACQUIRED.inc(len(self.find_new(leases)))
        fences = {lease.repo: lease.fence for lease in leases}
        lost = [repo for repo, fence in self._fences.items() if fences.get(repo) != fence]
        self._fences = fences
        for repo in lost:
            for queue_actor in actors_of(repo):
                self.on_lease_lost(queue_actor)
        LEASES.set(len(fences))
        LEASES_LOST.inc(len(lost))

    def on_lease_lost(self, queue_actor: QueueActor) -> None:
        on_lease_lost = [listener.on_lease_lost for listener in self.listeners]
        call_each(on_lease_lost, queue_actor, event="lease_listener_failed", queue=str(queue_actor.key))


log = structlog.get_logger()

LEASE_TTL_MS = 10_000
"""Time without a heartbeat after which other replicas take over. With the heartbeat interval and the head start, a
takeover is done within 15 seconds."""
HEARTBEAT_INTERVAL_MS = 2000
MIRROR_HEAD_START_MS = 500
"""How much earlier a replica that has a mirror of the repository can take its lease."""


@dataclass(eq=False)
class Replica:
    shared: SharedStore
    registry: QueueRegistry
    leases: Leases
    bus: ReplicaBus
    git: Git
    clock: Clock
    background: Background
    _name: str | None = field(default=None, init=False)
    _heartbeat_lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def send_heartbeat(self) -> None:
        """Renews the leases, and takes or releases repositories to reach the share of this replica."""
        async with self._heartbeat_lock:
            try:
                status = await self._renew()
            except LeaseLost:
                log.warning("replica_registration_expired", replica=self._name)
                self._name = None
                await self._set_leases(())
                status = await self._renew()
            await self._set_leases(await self._balance(status))

    async def claim_released_leases(self) -> None:
        """Takes leases that another replica released: at once with a mirror of the repository, else a little later."""
        await self.send_heartbeat()
        await self.clock.sleep(MIRROR_HEAD_START_MS)
        await self.send_heartbeat()

    def check_ready(self) -> None:
        if self._name is None or not self.leases.is_valid:
            message = "This replica cannot renew its leases: see its log for the database's error message."
            raise RequestRefused(Code.STORAGE_UNAVAILABLE, message)

    async def unregister(self) -> None:
        """Releases all leases, so that other replicas take over at once."""
        name, self._name = self._name, None
        if name is None:
            return
        try:
            await self.shared.unregister_worker(name)
            await self.shared.notify(encode_hint(LeaseReleased()))
        except StoreUnavailable as error:
            # The leases expire after LEASE_TTL_MS.
            log.warning("leases_not_released", replica=name, error=str(error))

    async def _renew(self) -> LeaseStatus:
        started = self.clock.now()
        if self._name is None:
            name = f"{gethostname()}-{uuid4()}"
            await self.shared.register_worker(name, LEASE_TTL_MS)
            self._name = name
            self.leases.require_leases(name)
        status = await self.shared.renew_leases(self._name, LEASE_TTL_MS)
        if self.leases.is_expired:
            # Listeners were not called while the leases were expired: drop all, so that each counts as new.
            self.leases.replace_all((), self.registry.cached_by_repo)
        self.leases.extend_until(later(started, LEASE_TTL_MS))
        return status

    async def _balance(self, status: LeaseStatus) -> Collection[Lease]:
        """Takes leases up to the share of this replica, or releases those beyond it, idle repositories first."""
        assert self._name is not None
        share = ceil(status.repository_count / status.worker_count)
        if len(status.leases) == share:
            return status.leases
        if len(status.leases) < share:
            names = await asyncio.to_thread(self.git.mirror_names)
            mirrored = [repo for repo in map(Repo.parse, names) if repo is not None]
            acquired = await self.shared.acquire_leases(
                self._name, share - len(status.leases), mirrored, MIRROR_HEAD_START_MS
            )
            return (*status.leases, *acquired)
        idle_last = sorted(status.leases, key=lambda lease: self._is_idle(lease.repo))
        retained, surplus = idle_last[:share], idle_last[share:]
        await self._set_leases(retained)
        await self.shared.release_leases(self._name, [lease.repo for lease in surplus])
        self.bus.publish(LeaseReleased())
        return retained

    def _is_idle(self, repo: Repo) -> bool:
        return not any(len(actor.queue.submissions) for actor in self.registry.cached_by_repo(repo))

    async def _set_leases(self, leases: Collection[Lease]) -> None:
        """Reads the queues of new repositories first: if that fails, the leases stay as they are until the next
        heartbeat."""
        new = set(self.leases.find_new(leases))
        queues = await self.shared.leased_queues(self.leases.replica_name) if new else ()
        self.leases.replace_all(leases, self.registry.cached_by_repo)
        if new:
            log.info("leases_acquired", repos=sorted(map(str, new)))
        for queue in queues:
            if queue.key.repo in new:
                self.background.start(retry_until_stored(self.clock, partial(self._resume, queue)))

    async def _resume(self, queue: StoredQueue) -> None:
        queue_actor = await self.registry.load(queue)
        await queue_actor.resume()
