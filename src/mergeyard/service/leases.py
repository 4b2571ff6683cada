"""Leases of this replica: for which repositories it does background work, and the fence that its commits assert.

A single server needs no leases and works for all repositories. Of several replicas, each works for the repositories
whose leases it holds. Every commit of background work asserts the lease, so a replica that lost it writes nothing.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from mergeyard.domain.ids import Repo
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.external import Clock
from mergeyard.ports.store import Lease, LeaseLost
from mergeyard.ports.writes import AssertLease, Write
from mergeyard.service.metrics import LEASES, LEASES_ACQUIRED, LEASES_LOST
from mergeyard.service.queue_actor import QueueActor


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
            for listener in self.listeners:
                listener.on_change(queue_actor, before)

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
        for listener in self.listeners:
            listener.on_lease_lost(queue_actor)
