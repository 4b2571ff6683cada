"""A place for pull requests and branches that is only a picture of one."""

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain import tasks as t
from mergeyard.domain.ids import PrNumber, RunId, Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.required import Required
from mergeyard.domain.runs import Member, Step
from mergeyard.sim.checks import Checks
from mergeyard.sim.repository import Repository


class Push(Struct, frozen=True):
    """One update of the target that a task made."""

    task: t.Land
    before: Sha
    after: Sha


class Place:
    def __init__(self, repository: Repository, checks: Checks, target: str, required: Required) -> None:
        self.repository = repository
        self.checks = checks
        self.target = target
        self.required = required
        self.pulls: dict[PrNumber, PullRequest] = {}
        self.refusing: set[PrNumber] = set()
        """Pull requests that this host will not merge."""
        self.tested_tips: dict[RunId, Sha] = {}
        self.built: dict[RunId, e.RunBuilt] = {}
        self.pushes: list[Push] = []
        self.forgotten = frozenset[Sha]()
        """Commits that nobody had any more, unless a ref led to them."""
        repository.refs[target] = repository.root

    @property
    def tip(self) -> Sha:
        return self.repository.refs[self.target]

    def lose_mirror(self) -> None:
        """All that no ref leads to is gone, as when another replica takes over."""
        self.forgotten = frozenset(self.repository.commits)

    def is_lost(self, commit: Sha) -> bool:
        if commit not in self.forgotten:
            return False
        tips = (*self.repository.refs.values(), *(pull.head for pull in self.pulls.values()))
        return not any(self.repository.contains(tip, commit) for tip in tips)

    def holds_removed_commit(self, head: Sha, forbidden: frozenset[Sha]) -> bool:
        removed = forbidden - self.repository.ancestors(self.tip)
        return not removed.isdisjoint(self.repository.ancestors(head))

    def merge(self, member: Member, onto: Sha, message: str) -> Step:
        files = self.repository.merged_files(onto, member.head)
        commit = self.repository.commit((onto, member.head), files, message)
        return Step(commit, onto, self.repository.commits[commit].tree)

    def move_target(self, task: t.Land, before: Sha, after: Sha) -> bool:
        moved = self.repository.move(self.target, before, after)
        if moved:
            self.pushes.append(Push(task, before, after))
        return moved

    def mark_merged(self, members: Collection[Member]) -> None:
        for member in members:
            pull = self.pulls[member.number]
            self.pulls[member.number] = replace(pull, is_open=False, merged_into=self.target)
