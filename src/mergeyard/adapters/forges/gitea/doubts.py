"""Tells a pull request that conflicts from one that Gitea has not checked yet.

Of both it says that they cannot be merged. But it checks within moments, so what it goes on denying, of the same two
commits, conflicts.
"""

from msgspec import Struct

from mergeyard.adapters.forges.gitea.wire import Pull
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import SECOND, Instant
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import Mergeability
from mergeyard.ports.clock import Clock

PATIENCE = 15 * SECOND


class Doubt(Struct, frozen=True):
    head: str
    base: str
    since: Instant


class Doubts:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._doubts: dict[tuple[Repo, PrNumber], Doubt] = {}

    def judge(self, repo: Repo, pull: Pull) -> Mergeability:
        if pull.mergeable or pull.state != "open":
            self._doubts.pop((repo, pull.number), None)
            return Mergeability.MERGEABLE
        if pull.draft:
            return Mergeability.UNKNOWN
        doubt = self._doubts.get((repo, pull.number))
        if doubt is None or (doubt.head, doubt.base) != (pull.head.sha, pull.base.sha):
            doubt = self._doubts[repo, pull.number] = Doubt(pull.head.sha, pull.base.sha, self._clock.now())
        patient = self._clock.now() < doubt.since + PATIENCE
        return Mergeability.CHECKING if patient else Mergeability.NOT_MERGEABLE

    def judge_again(self, repo: Repo, pull: Pull) -> Mergeability:
        """Only of those that were in doubt: all others flicker whenever their base moves, which is no news."""
        return self.judge(repo, pull) if (repo, pull.number) in self._doubts else Mergeability.MERGEABLE
