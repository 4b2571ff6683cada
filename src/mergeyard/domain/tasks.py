"""Tasks: work outside the engine.

They are derived from the queue's state and never stored, so a crash loses none, and each is safe to repeat.
"""

from msgspec import Struct

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha
from mergeyard.domain.runs import HeadMove, Member, Step


class TaskBase(Struct, frozen=True, kw_only=True, tag=True):
    """Base of all tasks."""


class ReadTargetBranch(TaskBase, frozen=True):
    known_tip: Sha | None


class ReadPullRequest(TaskBase, frozen=True):
    number: PullRequestNumber


class ReadChecks(TaskBase, frozen=True):
    run: RunId


class BuildRun(TaskBase, frozen=True):
    """Merge the members onto `onto`, one by one, and push the test branch."""

    run: RunId
    onto: Sha
    base: Sha
    built_members: tuple[Member, ...]
    """The members whose commits `onto` already contains."""
    members: tuple[Member, ...]
    merge_method: MergeMethod
    forbidden_commits: frozenset[Sha]
    """Removed commits: no member must contain them, unless the target branch contains them again."""
    read_head_checks: bool = False
    """If the test commit has the same tree as the head of its only member, report the checks of that head."""


class DeleteBranch(TaskBase, frozen=True):
    run: RunId


class RebaseLanding(TaskBase, frozen=True):
    """Put the tested contents of these members onto the tip, if no other commit since the base changed their paths."""

    landing: int
    base: Sha
    onto: Sha
    members: tuple[Member, ...]
    tested_steps: tuple[Step, ...]


class ReadPullRequests(TaskBase, frozen=True):
    landing: int
    numbers: tuple[PullRequestNumber, ...]


class Land(TaskBase, frozen=True):
    """Move the target branch from `expected_tip` to the last step, or find out that this has happened already."""

    landing: int
    run: RunId
    landing_method: LandingMethod
    expected_tip: Sha
    members: tuple[Member, ...]
    steps: tuple[Step, ...]
    test_branch_tip: Sha
    head_moves: tuple[HeadMove, ...] = ()


Task = (
    ReadTargetBranch | ReadPullRequest | ReadChecks | BuildRun | DeleteBranch | RebaseLanding | ReadPullRequests | Land
)
