"""The host itself: its repository, its pull requests, the statuses it knows, and what it merged on request."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import Mergeability
from mergeyard.domain.statuses import Status
from mergeyard.ports.forge import (
    BranchNews,
    CommitNews,
    Merge,
    Merged,
    MergeOutcome,
    News,
    NotMerged,
    PullNews,
)
from mergeyard.ports.git import Conflict
from tests.simulation.origin import TARGET, Origin

REPO = Repo("git.local", "acme", "app")
BRANCH = "main"
Tell = Callable[[News], None]


class View(Struct, frozen=True):
    """All that the host shows, as of some moment."""

    refs: dict[str, Sha]
    pulls: dict[PrNumber, PullRequest]
    statuses: dict[Sha, dict[str, Status]]
    merged: dict[tuple[PrNumber, Sha], Sha]


class Hosting:
    def __init__(self, origin: Origin, tell: Tell) -> None:
        self.origin = origin
        self.pulls: dict[PrNumber, PullRequest] = {}
        self.statuses: dict[Sha, dict[str, Status]] = {}
        self.merged: dict[tuple[PrNumber, Sha], Sha] = {}
        self.is_wanted: Callable[[PrNumber], bool] = lambda _: True
        self.clashed = set[tuple[PrNumber, Sha]]()
        """What it would not merge, since it conflicts."""
        self.comments: list[tuple[PrNumber, str]] = []
        self._tell = tell
        self._stale: View | None = None

    def view(self) -> View:
        self._stale = View(
            dict(self.origin.refs),
            dict(self.pulls),
            {sha: dict(known) for sha, known in self.statuses.items()},
            dict(self.merged),
        )
        return self._stale

    def stale_view(self) -> View:
        """What it showed to the last one who got the truth."""
        return self._stale or self.view()

    def change(self, number: PrNumber, pull: PullRequest) -> None:
        """What changes about a pull request changes its refs too, as at a plain host."""
        self.pulls[number] = pull
        self.origin.set(f"refs/pull/{number}/head", pull.head)
        facts = (pull.base, pull.is_open, pull.draft, pull.title, pull.merged_into)
        self.origin.set(f"refs/pull/{number}/meta", self.origin.objects.tree({"meta": repr(facts)}))
        self._tell(PullNews(REPO, number))

    def move_target(self, to: Sha) -> None:
        self.origin.set(TARGET, to)
        self._tell(BranchNews(REPO, BRANCH))

    def set_status(self, sha: Sha, status: Status) -> None:
        self.statuses.setdefault(sha, {})[status.context] = status
        self._tell(CommitNews(REPO, sha))

    def mergeability(self, pull: PullRequest) -> Mergeability:
        clashes = isinstance(self.origin.objects.merge(self.origin.target, pull.head), Conflict)
        return Mergeability.NOT_MERGEABLE if clashes else Mergeability.MERGEABLE

    def mark_merged(self, number: PrNumber, head: Sha) -> None:
        pull = self.pulls[number]
        if pull.head == head and pull.is_open:
            self.change(number, replace(pull, is_open=False, merged_into=BRANCH))

    def say(self, number: PrNumber, text: str, comment: str | None) -> str:
        if comment is not None:
            self.comments[int(comment)] = (number, text)
            return comment
        self.comments.append((number, text))
        return str(len(self.comments) - 1)

    def merge(self, wanted: Merge, seconds: int) -> MergeOutcome:
        known = self.merged.get((wanted.number, wanted.head))
        if known is not None:
            return Merged(known)
        pull = self.pulls[wanted.number]
        if not pull.is_open or pull.draft or pull.head != wanted.head or pull.base != wanted.base:
            return NotMerged("it has changed")
        tree = self.origin.objects.merge(self.origin.target, pull.head)
        if isinstance(tree, Conflict):
            self.clashed.add((wanted.number, wanted.head))
            return NotMerged("it conflicts")
        parents = (self.origin.target,) if wanted.method is MergeMethod.SQUASH else (self.origin.target, pull.head)
        message = f"{wanted.title}\n\n{wanted.message}"
        commit = self.origin.objects.commit(tree, parents, message, committed=f"{seconds} +0000")
        self.origin.merge(commit)
        if not self.is_wanted(wanted.number):
            self.origin.late.add(commit)
        self.merged[wanted.number, wanted.head] = commit
        self.change(wanted.number, replace(pull, is_open=False, merged_into=BRANCH))
        self._tell(BranchNews(REPO, BRANCH))
        return Merged(commit)
