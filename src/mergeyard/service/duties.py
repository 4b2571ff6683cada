"""Knows for which repositories this process works, and lets nobody work for any other.

A server that is alone works for all. Of several replicas each works for some, for as long as it reports in time, and
proves that with everything it writes on duty.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import Repo
from mergeyard.ports.clock import Clock
from mergeyard.ports.sharing import Duty
from mergeyard.ports.store import Relieved
from mergeyard.ports.writes import ProveDuty, Write
from mergeyard.service.measuring import DUTIES, DUTIES_LOST, DUTIES_TAKEN
from mergeyard.service.turn import Keeper


class Follower(Protocol):
    """Does part of the work for queues on duty."""

    def follow(self, keeper: Keeper, before: Queue | None, /) -> None:
        """Is told of every turn, with the queue as it was before; None: of this queue it has not been told yet."""
        ...

    def leave(self, keeper: Keeper, /) -> None:
        """Drops what it does for this queue: it is somebody else's now."""
        ...


class Duties:
    def __init__(self, clock: Clock) -> None:
        self.followers: list[Follower] = []
        self._clock = clock
        self._replica: str | None = None
        self._fences: dict[Repo, int] = {}
        self._until = Instant(0)

    @property
    def replica(self) -> str:
        """The name under which it works; none when it is alone, or works for nobody."""
        return self._replica or ""

    @property
    def repos(self) -> tuple[Repo, ...]:
        """Those that were given to this replica; none when it is alone."""
        return tuple(self._fences)

    def covers(self, repo: Repo) -> bool:
        """A process that was stopped and woken late knows by the time that its duties may be somebody else's."""
        return self._replica is None or (repo in self._fences and self.valid)

    def proof(self, repo: Repo) -> tuple[Write, ...]:
        """To be written along with what was done on duty, so that nothing is written when that is over."""
        if self._replica is None:
            return ()
        if repo not in self._fences:
            raise Relieved(f"Another replica works for {repo}.")
        return (ProveDuty(self._replica, repo, self._fences[repo]),)

    def follow(self, keeper: Keeper, before: Queue | None) -> None:
        if self.covers(keeper.key.repo):
            for follower in self.followers:
                follower.follow(keeper, before)

    def share(self, replica: str) -> None:
        """From now on it works only for what it is given."""
        self._replica = replica
        self._fences = {}

    @property
    def valid(self) -> bool:
        """Whether it reported lately enough to be believed."""
        return self._clock.now() < self._until

    @property
    def lapsed(self) -> bool:
        """Nobody was told of anything since then, even if all of it comes back."""
        return bool(self._fences) and not self.valid

    def last_until(self, instant: Instant) -> None:
        self._until = instant

    def missing(self, duties: Iterable[Duty]) -> tuple[Repo, ...]:
        """Those that are new, or came back after somebody else had them."""
        return tuple(duty.repo for duty in duties if self._fences.get(duty.repo) != duty.fence)

    def set(self, duties: Collection[Duty], keepers_of: Callable[[Repo], Iterable[Keeper]]) -> None:
        """Exactly these from now on."""
        DUTIES_TAKEN.inc(len(self.missing(duties)))
        fences = {duty.repo: duty.fence for duty in duties}
        lost = [repo for repo, fence in self._fences.items() if fences.get(repo) != fence]
        self._fences = fences
        for repo in lost:
            for keeper in keepers_of(repo):
                self.leave(keeper)
        DUTIES.set(len(fences))
        DUTIES_LOST.inc(len(lost))

    def leave(self, keeper: Keeper) -> None:
        for follower in self.followers:
            follower.leave(keeper)
