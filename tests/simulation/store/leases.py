"""Leases: which replica works for which repository. All times are those of the database's own clock."""

from collections.abc import Collection
from math import inf

from msgspec import Struct

from mergeyard.domain.ids import Repo
from mergeyard.domain.timestamps import HOUR, Instant, later
from mergeyard.ports.store import Lease, LeaseLost, LeaseStatus
from mergeyard.ports.writes import AssertLease

FORGET_AFTER_MS = 24 * HOUR


class RepositoryLease(Struct):
    """The lease of one repository."""

    repo: Repo
    holder: str | None = None
    fence: int = 0
    free_since: Instant | None = None

    @property
    def lease(self) -> Lease:
        return Lease(self.repo, self.fence)

    def free(self, now: Instant) -> None:
        self.holder, self.free_since = None, now


class LeaseTable:
    def __init__(self) -> None:
        self._leases: dict[Repo, RepositoryLease] = {}
        self._until: dict[str, Instant] = {}

    def add(self, repo: Repo) -> None:
        if repo not in self._leases:
            self._leases[repo] = RepositoryLease(repo)

    def register(self, replica: str, ttl_ms: int, now: Instant) -> None:
        """The replica starts without leases, whatever it held under this name before."""
        self._free(self._of(replica), now)
        expired = [name for name, until in self._until.items() if until < now - FORGET_AFTER_MS]
        for name in expired:
            del self._until[name]
        self._until[replica] = later(now, ttl_ms)

    def renew(self, replica: str, ttl_ms: int, now: Instant) -> LeaseStatus:
        if not self._is_registered(replica, now):
            raise LeaseLost(f"The registration of {replica} has expired.")
        self._until[replica] = later(now, ttl_ms)
        return LeaseStatus(
            leases=tuple(held.lease for held in sorted(self._of(replica), key=_by_name)),
            repository_count=len(self._leases),
            worker_count=sum(until > now for until in self._until.values()),
        )

    def acquire(
        self, replica: str, limit: int, mirrored: Collection[Repo], grace_ms: int, now: Instant
    ) -> tuple[Lease, ...]:
        """Mirrored repositories first, then those that have been free for the grace time, the longest first."""
        if not self._is_registered(replica, now):
            return ()
        wanted = frozenset(mirrored)
        free = [
            (held.repo not in wanted, since, _by_name(held), held)
            for held in self._leases.values()
            if (since := self._free_since(held, now)) is not None and (held.repo in wanted or since <= now - grace_ms)
        ]
        taken = [held for *_, held in sorted(free, key=lambda each: each[:3])[:limit]]
        for held in taken:
            held.holder, held.fence, held.free_since = replica, held.fence + 1, None
        return tuple(held.lease for held in taken)

    def release(self, replica: str, repos: Collection[Repo], now: Instant) -> None:
        self._free([held for held in self._of(replica) if held.repo in repos], now)

    def unregister(self, replica: str, now: Instant) -> None:
        self._free(self._of(replica), now)
        self._until.pop(replica, None)

    def is_held(self, assertion: AssertLease, now: Instant) -> bool:
        held = self._leases.get(assertion.repo)
        return (
            held is not None
            and (held.holder, held.fence) == (assertion.replica, assertion.fence)
            and self._is_registered(assertion.replica, now)
        )

    def repos_of(self, replica: str) -> set[Repo]:
        """Also those of an expired registration, until another replica takes over."""
        return {held.repo for held in self._of(replica)}

    def _of(self, replica: str) -> list[RepositoryLease]:
        return [held for held in self._leases.values() if held.holder == replica]

    def _free(self, leases: list[RepositoryLease], now: Instant) -> None:
        for held in leases:
            held.free(now)

    def _is_registered(self, replica: str, now: Instant) -> bool:
        return replica in self._until and self._until[replica] > now

    def _free_since(self, held: RepositoryLease, now: Instant) -> float | None:
        """None while it is held; -inf if it was never held, or if its holder is no longer known."""
        until = None if held.holder is None else self._until.get(held.holder)
        if until is not None:
            return until if until <= now else None
        return -inf if held.free_since is None else held.free_since


def _by_name(held: RepositoryLease) -> tuple[str, str, str]:
    return held.repo.host, held.repo.owner, held.repo.name
