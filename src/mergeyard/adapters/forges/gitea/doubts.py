"""Tells a pull request that conflicts from one that Gitea has not checked yet.

Of both it says that they cannot be merged, and nowhere which of them it means. Mostly it checks within moments; what it
goes on denying, of the same two commits, is for git to judge. Only of a head that it has also refused to merge it is
believed.
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
        self._refused: dict[tuple[Repo, PrNumber], str] = {}
        """The heads that it was asked to merge, and did not."""

    def note_refusal(self, repo: Repo, number: PrNumber, head: str) -> None:
        self._refused[repo, number] = head

    def judge(self, repo: Repo, pull: Pull) -> Mergeability:
        if pull.mergeable or pull.state != "open":
            self._doubts.pop((repo, pull.number), None)
            self._refused.pop((repo, pull.number), None)
            return Mergeability.MERGEABLE
        if pull.draft:
            return Mergeability.UNKNOWN
        if self._clock.now() < self._doubt(repo, pull).since + PATIENCE:
            return Mergeability.CHECKING
        refused = self._refused.get((repo, pull.number)) == pull.head.sha
        return Mergeability.NOT_MERGEABLE if refused else Mergeability.UNKNOWN

    def judge_again(self, repo: Repo, pull: Pull) -> Mergeability:
        """Only of those that were in doubt: all others flicker whenever their base moves, which is no news."""
        return self.judge(repo, pull) if (repo, pull.number) in self._doubts else Mergeability.MERGEABLE

    def _doubt(self, repo: Repo, pull: Pull) -> Doubt:
        known = self._doubts.get((repo, pull.number))
        if known is not None and (known.head, known.base) == (pull.head.sha, pull.base.sha):
            return known
        doubt = self._doubts[repo, pull.number] = Doubt(pull.head.sha, pull.base.sha, self._clock.now())
        return doubt
