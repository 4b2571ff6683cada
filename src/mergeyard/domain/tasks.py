"""What must be done outside: read off the facts, so that a crash can lose none and doing one twice is harmless."""

from msgspec import Struct

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import PrNumber, RunId, Sha, Ticket
from mergeyard.domain.runs import Member, Step


class ToDo(Struct, frozen=True, kw_only=True, tag=True):
    """The common form of all tasks."""


class LookAtTarget(ToDo, frozen=True):
    known_tip: Sha | None
    removed: frozenset[Sha]


class LookAtPull(ToDo, frozen=True):
    number: PrNumber


class LookAtChecks(ToDo, frozen=True):
    run: RunId


class BuildRun(ToDo, frozen=True):
    """Merge the members onto `onto`, one by one, and push the test branch."""

    run: RunId
    onto: Sha
    base: Sha
    beneath: tuple[Member, ...]
    """Those whose commits are part of `onto` already."""
    members: tuple[Member, ...]
    method: MergeMethod
    forbidden: frozenset[Sha]
    """Commits that no member may contain, unless the target holds them again by now."""


class DeleteBranch(ToDo, frozen=True):
    run: RunId


class ExamineHead(ToDo, frozen=True):
    ticket: Ticket
    number: PrNumber
    head: Sha
    tip: Sha
    forbidden: frozenset[Sha]


class ComposeLanding(ToDo, frozen=True):
    """Put the tested contents of these members on the tip, if no other change since the base touched their paths."""

    landing: int
    base: Sha
    onto: Sha
    members: tuple[Member, ...]
    tested: tuple[Step, ...]


class ReadPulls(ToDo, frozen=True):
    landing: int
    numbers: tuple[PrNumber, ...]


class Land(ToDo, frozen=True):
    """Move the target from `expected` to the last step, or find out whether that was done already."""

    landing: int
    run: RunId | None
    method: LandingMethod
    expected: Sha
    members: tuple[Member, ...]
    steps: tuple[Step, ...]
    tested_tip: Sha | None


Task = (
    LookAtTarget | LookAtPull | LookAtChecks | BuildRun | DeleteBranch | ExamineHead | ComposeLanding | ReadPulls | Land
)
