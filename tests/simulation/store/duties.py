"""Who works for which repository. All times are those of the database's own clock."""

from collections.abc import Collection
from math import inf

from msgspec import Struct

from mergeyard.domain.instants import HOUR, Instant, later
from mergeyard.domain.repositories import Repo
from mergeyard.ports.sharing import Duty, Roster
from mergeyard.ports.store import Relieved
from mergeyard.ports.writes import ProveDuty

LONG_SILENT = 24 * HOUR


class Held(Struct):
    """What is known of the duty for one repository."""

    repo: Repo
    holder: str | None = None
    fence: int = 0
    free_since: Instant | None = None

    @property
    def duty(self) -> Duty:
        return Duty(self.repo, self.fence)

    def free(self, now: Instant) -> None:
        self.holder, self.free_since = None, now


class Duties:
    def __init__(self) -> None:
        self._duties: dict[Repo, Held] = {}
        self._until: dict[str, Instant] = {}

    def add(self, repo: Repo) -> None:
        if repo not in self._duties:
            self._duties[repo] = Held(repo)

    def enlist(self, replica: str, lasting: int, now: Instant) -> None:
        """Whatever stood under its name before, it begins without duties."""
        self._free(self._of(replica), now)
        silent = [name for name, until in self._until.items() if until < now - LONG_SILENT]
        for name in silent:
            del self._until[name]
        self._until[replica] = later(now, lasting)

    def report(self, replica: str, lasting: int, now: Instant) -> Roster:
        if not self._is_heard_of(replica, now):
            raise Relieved(f"{replica} was not heard of for too long.")
        self._until[replica] = later(now, lasting)
        return Roster(
            duties=tuple(held.duty for held in sorted(self._of(replica), key=_by_name)),
            repositories=len(self._duties),
            workers=sum(until > now for until in self._until.values()),
        )

    def claim(
        self, replica: str, most: int, at_hand: Collection[Repo], patience: int, now: Instant
    ) -> tuple[Duty, ...]:
        """Those at hand first, the others when they have been free for long enough, the longest first."""
        if not self._is_heard_of(replica, now):
            return ()
        wanted = frozenset(at_hand)
        free = [
            (held.repo not in wanted, since, _by_name(held), held)
            for held in self._duties.values()
            if (since := self._free_since(held, now)) is not None and (held.repo in wanted or since <= now - patience)
        ]
        taken = [held for *_, held in sorted(free, key=lambda each: each[:3])[:most]]
        for held in taken:
            held.holder, held.fence, held.free_since = replica, held.fence + 1, None
        return tuple(held.duty for held in taken)

    def let_go(self, replica: str, repos: Collection[Repo], now: Instant) -> None:
        self._free([held for held in self._of(replica) if held.repo in repos], now)

    def resign(self, replica: str, now: Instant) -> None:
        self._free(self._of(replica), now)
        self._until.pop(replica, None)

    def proves(self, proof: ProveDuty, now: Instant) -> bool:
        held = self._duties.get(proof.repo)
        return (
            held is not None
            and (held.holder, held.fence) == (proof.replica, proof.fence)
            and self._is_heard_of(proof.replica, now)
        )

    def repos_of(self, replica: str) -> set[Repo]:
        """Even of one that was silent for too long, until somebody else took over."""
        return {held.repo for held in self._of(replica)}

    def _of(self, replica: str) -> list[Held]:
        return [held for held in self._duties.values() if held.holder == replica]

    def _free(self, duties: list[Held], now: Instant) -> None:
        for held in duties:
            held.free(now)

    def _is_heard_of(self, replica: str, now: Instant) -> bool:
        return replica in self._until and self._until[replica] > now

    def _free_since(self, held: Held, now: Instant) -> float | None:
        """None while somebody works for it; since ever when it was never anybody's, or when its holder is forgotten."""
        until = None if held.holder is None else self._until.get(held.holder)
        if until is not None:
            return until if until <= now else None
        return -inf if held.free_since is None else held.free_since


def _by_name(held: Held) -> tuple[str, str, str]:
    return held.repo.host, held.repo.owner, held.repo.name
