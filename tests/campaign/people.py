"""People who open pull requests: single ones, stacked ones, some with merges in them, some that revert another."""

from collections.abc import Callable
from random import Random
from subprocess import CalledProcessError

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.campaign.contents import AUTHORS, MESSAGES, Change, Draft, Kinds, add, changes, snapshot
from tests.support.repositories import Origin

MAIN = "main"
MAX_COMMITS = 3


class ProposedPullRequest(Struct, frozen=True):
    """A pull request as its author made it."""

    number: int
    branch: str
    kinds: frozenset[str]
    stacked_on: int | None = None
    """The pull request on which its branch starts."""
    base: str = MAIN
    """Its target branch."""


class People:
    def __init__(self, origin: Origin, chance: Random, kinds: Kinds) -> None:
        self.pull_requests: dict[int, ProposedPullRequest] = {}
        self._origin = origin
        self._kinds = kinds
        self._chance = chance
        self._made = 0

    def create_pull_request(self, number: int) -> ProposedPullRequest:
        """A branch with some commits, on the target branch or on another pull request."""
        below = (
            self._chance.choice(list(self.pull_requests))
            if self.pull_requests and self._chance.random() < 0.3
            else None
        )
        start = MAIN if below is None else self.place_of(self.pull_requests[below])
        branch = f"feature{number}"
        self._origin.branch(branch, base=start)
        kinds = {"stacked"} if below is not None else set[str]()
        if below is not None and self._chance.random() < 0.35:
            kinds.add(self._revert(branch, self.pull_requests[below]))
        for _ in range(self._chance.randint(1, MAX_COMMITS)):
            kinds.add(self._commit(branch, self._kinds))
        if self._chance.random() < 0.25:
            kinds.add(self._chance.choice(self._special_commits)(branch))
        base = MAIN if below is None else self.pull_requests[below].base
        return ProposedPullRequest(number, branch, frozenset(kinds), below, base)

    def commit_change(self, branch: str) -> str:
        """Adds a commit with a random change; returns its kind."""
        return self._commit(branch, self._kinds)

    def place_of(self, proposal: ProposedPullRequest) -> str:
        """Its head branch, or the ref of its head if the branch was deleted."""
        is_there = self._origin.ref(proposal.branch) is not None
        return proposal.branch if is_there else f"refs/pull/{proposal.number}/head"

    def commit_outside_queue(self, base: str) -> Sha:
        """A commit that is on no branch and does not come from the queue. Never a failing one: a broken target branch
        blocks all pull requests."""
        place = "refs/scratch/foreign"
        self._origin.set_ref(place, self._origin.tip(base))
        self._commit(place, {name: kind for name, kind in self._kinds.items() if name != "failing"})
        return self._origin.tip(place)

    @property
    def _special_commits(self) -> tuple[Callable[[str], str], ...]:
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
        if self.pull_requests:
            self._merge(branch, self.place_of(self._chance.choice(list(self.pull_requests.values()))), {})
        return "merge of another"

    def _evil_merge(self, branch: str) -> str:
        """A merge with a change that neither side has."""
        self._made += 1
        self._merge(branch, MAIN, {f"evil/{self._made}": "1\n"})
        return "evil merge"

    def _merge(self, branch: str, other: str, more: Change) -> None:
        ours, theirs = self._origin.tip(branch), self._origin.tip(other)
        tree = clean_merge(self._origin, ours, theirs)
        if tree is not None:
            merged = changes(snapshot(self._origin, ours), snapshot(self._origin, tree))
            self._write(branch, merged | more, merging=other)

    def _revert(self, branch: str, below: ProposedPullRequest) -> str:
        """Reverts another pull request, all of it or a part."""
        after = self.place_of(below)
        before = self._origin.run("merge-base", MAIN, self._origin.tip(after)).decode().strip()
        undone = changes(snapshot(self._origin, self._origin.tip(after)), snapshot(self._origin, before))
        if self._chance.random() < 0.5:
            undone = {path: content for path, content in undone.items() if self._chance.random() < 0.5} or undone
        self._write(branch, undone)
        return "revert"


def clean_merge(origin: Origin, ours: Sha, theirs: Sha) -> Sha | None:
    """The tree of a merge; None for a conflict, which these people do not resolve."""
    try:
        return Sha(origin.run("merge-tree", "--write-tree", ours, theirs).decode().strip())
    except CalledProcessError:
        return None
