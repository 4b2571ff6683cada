"""What happened: everything that the engine can be told.

Events that report a look at the world say in which turn the look began (`as_of`). A look that began before
the fact it would replace was recorded may be older than that fact, and is not believed.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.config import Config
from mergeyard.domain.ids import PrNumber, RunId, Sha, Ticket
from mergeyard.domain.journal import OURSELVES
from mergeyard.domain.mismatches import Mismatch
from mergeyard.domain.pulls import HeadExam, PullRequest
from mergeyard.domain.reasons import Reason
from mergeyard.domain.required import Required
from mergeyard.domain.runs import Step
from mergeyard.domain.states import CheckState, QueueState
from mergeyard.domain.targets import Targets


class Happened(Struct, frozen=True, kw_only=True, tag=True):
    """The common form of all events."""


class PrSubmitted(Happened, frozen=True):
    """Members that are None were not given: they keep their value, or take the default."""

    pull: PullRequest
    as_of: int
    complete: bool = True
    """Whether the pull request was looked at; after a glance that is still to be done."""
    priority: int | None = None
    no_batch: bool | None = None
    forced: bool | None = None
    pinned: bool = False
    by_maintainer: bool = False
    targets: Targets | None = None
    actor: str = OURSELVES


class CancelRequested(Happened, frozen=True):
    number: PrNumber
    actor: str = OURSELVES


class RestartRequested(Happened, frozen=True):
    number: PrNumber
    actor: str = OURSELVES


class PriorityRequested(Happened, frozen=True):
    """Of one that is in the queue: it submits nobody."""

    number: PrNumber
    priority: int


class TargetsUploaded(Happened, frozen=True):
    number: PrNumber
    head: Sha
    targets: Targets


class SettingsSaved(Happened, frozen=True):
    config: Config
    actor: str = OURSELVES


class StateRequested(Happened, frozen=True):
    state: QueueState
    actor: str = OURSELVES


class PullTouched(Happened, frozen=True):
    """Somebody says that it changed; how, only a look can tell."""

    number: PrNumber


class TargetTouched(Happened, frozen=True):
    pass


class PullSeen(Happened, frozen=True):
    pull: PullRequest
    as_of: int
    targets: Targets | None = None
    """What was uploaded for this very head, if anything."""


class TargetSeen(Happened, frozen=True):
    tip: Sha | None
    as_of: int
    required: Required = Required()
    removed: frozenset[Sha] = frozenset()
    """The commits that the branch held at the tip we knew and holds no more."""
    restored: frozenset[Sha] = frozenset()
    """Removed commits that somebody put back."""


class ChecksSeen(Happened, frozen=True):
    run: RunId
    checks: Mapping[str, CheckState]
    as_of: int
    told: bool = False
    """By others, so far: nobody asked for the latest."""


class HostLost(Happened, frozen=True):
    pass


class HostFound(Happened, frozen=True):
    pass


class RunBuilt(Happened, frozen=True):
    """Its test branch is pushed."""

    run: RunId
    steps: tuple[Step, ...]
    """Of those members that were not reused."""


class BuildRefusal(StrEnum):
    CONFLICTS_WITH_TARGET = "conflicts_with_target"
    CONFLICTS_WITH_STACK = "conflicts_with_stack"
    CONTAINS_REMOVED_COMMIT = "contains_removed_commit"
    NOTHING_TO_MERGE = "nothing_to_merge"
    ALREADY_CONTAINED = "already_contained"
    TOO_LARGE = "too_large"
    INVALID_TREE = "invalid_tree"
    BREAKS_CONFIG = "breaks_config"
    REFUSED = "refused"


class RunRefused(Happened, frozen=True):
    """The test branch cannot be built, because of this member of its stack."""

    run: RunId
    ticket: Ticket
    refusal: BuildRefusal
    blockers: tuple[Ticket, ...] = ()
    """With whom it conflicts, as far as that is known; otherwise with any beneath it."""
    words: str = ""


class GroundLost(Happened, frozen=True):
    """Nobody has the commits any more that the run was to be built upon."""

    run: RunId


class BranchDeleted(Happened, frozen=True):
    run: RunId


class HeadExamined(Happened, frozen=True):
    ticket: Ticket
    exam: HeadExam
    forbidden: frozenset[Sha]
    """What it was held against: commits that must not come back."""


class LandingComposed(Happened, frozen=True):
    landing: int
    steps: tuple[Step, ...]


class CompositionRefused(Happened, frozen=True):
    """What landed meanwhile changed a path that this landing changes too, or what was tested is lost."""

    landing: int


class LandingRead(Happened, frozen=True):
    """Its pull requests, read after the landing was chosen."""

    landing: int
    pulls: tuple[PullRequest, ...]
    as_of: int


class LandingSucceeded(Happened, frozen=True):
    landing: int
    steps: tuple[Step, ...]
    """What the target holds now, one commit per pull request, as the host shows it."""


class LandingMissed(Happened, frozen=True):
    """The target was not what we expected, and was left as it was."""

    landing: int
    steps: tuple[Step, ...] = ()
    """What had landed before that, when the provider merges one by one."""
    withdrawn: bool = False
    """The target is as we expected it, but the test branch was moved away: with that run nothing can land any more."""


class LandingRefused(Happened, frozen=True):
    landing: int
    words: str
    ticket: Ticket | None = None
    """The pull request that the host names, if it names one."""
    steps: tuple[Step, ...] = ()
    """What had landed before it, when the provider merges one by one."""


class LandingLost(Happened, frozen=True):
    """The test branch is gone, the target lacks the commit, and nobody knows what happened."""

    landing: int


class WatchBegan(Happened, frozen=True):
    """Somebody works for this queue from now on, after a time in which perhaps nobody did."""


class LandingsDoubted(Happened, frozen=True):
    """What landed was compared with what is recorded, and differs."""

    mismatches: tuple[Mismatch, ...]


Event = (
    PrSubmitted
    | CancelRequested
    | RestartRequested
    | PriorityRequested
    | TargetsUploaded
    | SettingsSaved
    | StateRequested
    | PullTouched
    | TargetTouched
    | PullSeen
    | TargetSeen
    | ChecksSeen
    | HostLost
    | HostFound
    | RunBuilt
    | RunRefused
    | GroundLost
    | BranchDeleted
    | HeadExamined
    | LandingComposed
    | CompositionRefused
    | LandingRead
    | LandingSucceeded
    | LandingMissed
    | LandingRefused
    | LandingLost
    | LandingsDoubted
    | WatchBegan
)

REFUSAL_REASONS: dict[BuildRefusal, Reason] = {
    BuildRefusal.CONFLICTS_WITH_TARGET: Reason.MERGE_CONFLICT,
    BuildRefusal.CONTAINS_REMOVED_COMMIT: Reason.CONTAINS_REMOVED_COMMIT,
    BuildRefusal.NOTHING_TO_MERGE: Reason.NOTHING_TO_MERGE,
    BuildRefusal.TOO_LARGE: Reason.PR_TOO_LARGE,
    BuildRefusal.INVALID_TREE: Reason.INVALID_TREE,
    BuildRefusal.BREAKS_CONFIG: Reason.BREAKS_CONFIG,
    BuildRefusal.REFUSED: Reason.START_REFUSED,
}
