"""People who open pull requests: alone, upon each other, with merges in them, or to take something back."""

from collections.abc import Callable
from random import Random
from subprocess import CalledProcessError

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.campaign.contents import Change, Draft, Kinds, add
from tests.campaign.snapshots import changes, snapshot
from tests.campaign.writing import AUTHORS, MESSAGES
from tests.support.repositories import Origin

MAIN = "main"
MOST_COMMITS = 3


class Proposal(Struct, frozen=True):
    """A pull request as its people made it."""

    number: int
    branch: str
    kinds: frozenset[str]
    upon: int | None
    """The pull request that it was begun upon."""


class People:
    def __init__(self, origin: Origin, chance: Random, kinds: Kinds) -> None:
        self.proposals: dict[int, Proposal] = {}
        self._origin = origin
        self._kinds = kinds
        self._chance = chance
        self._made = 0

    def propose(self, number: int) -> Proposal:
        """A branch with some commits, upon the target or upon another pull request."""
        below = self._chance.choice(list(self.proposals)) if self.proposals and self._chance.random() < 0.3 else None
        start = MAIN if below is None else self.proposals[below].branch
        branch = f"feature{number}"
        self._origin.branch(branch, upon=start)
        kinds = {"stacked"} if below is not None else set[str]()
        if below is not None and self._chance.random() < 0.35:
            kinds.add(self._take_back(branch, self.proposals[below]))
        for _ in range(self._chance.randint(1, MOST_COMMITS)):
            kinds.add(self._commit(branch, self._kinds))
        if self._chance.random() < 0.25:
            kinds.add(self._chance.choice(self._turns)(branch))
        self.proposals[number] = Proposal(number, branch, frozenset(kinds), below)
        return self.proposals[number]

    def commit_elsewhere(self, upon: str) -> Sha:
        """A commit that is on no branch, by somebody who knows nothing of the queue. Never a red one: whoever breaks
        the target itself keeps everybody waiting."""
        place = "refs/scratch/foreign"
        self._origin.set(place, self._origin.tip(upon))
        self._commit(place, {name: kind for name, kind in self._kinds.items() if name != "red"})
        return self._origin.tip(place)

    @property
    def _turns(self) -> tuple[Callable[[str], str], ...]:
        return self._empty_commit, self._merge_target, self._merge_another, self._evil_merge

    def _commit(self, place: str, kinds: Kinds) -> str:
        name = self._chance.choices(list(kinds), [weight for weight, _ in kinds.values()])[0]
        self._made += 1
        draft = Draft(snapshot(self._origin, self._origin.tip(place)), f"c{self._made}", self._chance)
        self._write(place, kinds[name][1](draft) or add(draft))
        return name

    def _write(self, place: str, change: Change, merging: str | None = None) -> None:
        message, author = self._chance.choice(MESSAGES), self._chance.choice(AUTHORS)
        self._origin.commit(place, change, message=message, author=author, merging=merging)

    def _empty_commit(self, branch: str) -> str:
        self._write(branch, {})
        self._commit(branch, self._kinds)
        return "empty commit"

    def _merge_target(self, branch: str) -> str:
        self._merge(branch, MAIN, {})
        return "merge of the target"

    def _merge_another(self, branch: str) -> str:
        if self.proposals:
            self._merge(branch, self._chance.choice(list(self.proposals.values())).branch, {})
        return "merge of another"

    def _evil_merge(self, branch: str) -> str:
        """It brings what neither side had."""
        self._made += 1
        self._merge(branch, MAIN, {f"evil/{self._made}": "1\n"})
        return "evil merge"

    def _merge(self, branch: str, other: str, more: Change) -> None:
        ours, theirs = self._origin.tip(branch), self._origin.tip(other)
        tree = clean_merge(self._origin, ours, theirs)
        if tree is not None:
            merged = changes(snapshot(self._origin, ours), snapshot(self._origin, tree))
            self._write(branch, merged | more, merging=other)

    def _take_back(self, branch: str, below: Proposal) -> str:
        """What another pull request changed, the whole of it or a part."""
        before, after = self._origin.run("merge-base", MAIN, below.branch).decode().strip(), below.branch
        undone = changes(snapshot(self._origin, self._origin.tip(after)), snapshot(self._origin, before))
        if self._chance.random() < 0.5:
            undone = {path: content for path, content in undone.items() if self._chance.random() < 0.5} or undone
        self._write(branch, undone)
        return "revert"


def clean_merge(origin: Origin, ours: Sha, theirs: Sha) -> Sha | None:
    """None when people would have to resolve something, which these do not."""
    try:
        return Sha(origin.run("merge-tree", "--write-tree", ours, theirs).decode().strip())
    except CalledProcessError:
        return None
