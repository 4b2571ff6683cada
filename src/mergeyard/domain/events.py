"""Events: everything that the engine can be told, and the mismatches that the merge audit can find.

An event that reports an observation of the outside world carries `observed_at_revision`, the queue's revision when the
observation began. If the value that it would replace was recorded at a later revision, the observation is outdated and
ignored.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.config import Config
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha, SubmissionId
from mergeyard.domain.journal import SYSTEM_ACTOR
from mergeyard.domain.pull_requests import ImpactedTargets, PullRequest, RequiredStatuses
from mergeyard.domain.runs import Step
from mergeyard.domain.states import CheckState, QueueState, Reason
from mergeyard.domain.timestamps import Instant


class MismatchKind(StrEnum):
    MISSING = "missing"
    """The target branch lacks the commit, and no push that removed it was observed."""
    NOWHERE = "nowhere"
    """It is recorded as landed, but no such commit exists."""
    OTHER_TREE = "other_tree"
    """Its contents differ from the tested contents."""
    OTHER_PARENT = "other_parent"
    """Its parent differs from the one it was tested on."""
    OTHER_HEAD = "other_head"
    """Its head differs from the head that was tested."""
    UNTESTED = "untested"
    """No run that succeeded verified it."""
    INCOMPLETE = "incomplete"
    """It brought another change than the merge of its head brings."""
    NOT_PASSED = "not_passed"
    """A required status did not pass on the commit that was tested."""
    LANDED_TWICE = "landed_twice"
    """The target branch contains it more than once."""
    ALTERED = "altered"
    """A copy with other contents replaced it."""
    UNRECORDED = "unrecorded"
    """A commit claims to be landed by this service but is not recorded."""
    OUT_OF_ORDER = "out_of_order"
    """The target branch contains the landings in another order than recorded."""


class Mismatch(Struct, frozen=True, kw_only=True):
    kind: MismatchKind
    commit: Sha | None
    number: PullRequestNumber
    message: str
    """What was found, and what to do about it."""

    @property
    def key(self) -> str:
        """Identifies the mismatch across audits, independent of the wording of its message."""
        return f"{self.kind} #{self.number} {self.commit}"


class EventBase(Struct, frozen=True, kw_only=True, tag=True):
    """Base of all events."""


class PullRequestSubmitted(EventBase, frozen=True):
    """Fields that are None were not given: an existing submission keeps its value, a new one gets the default."""

    pull_request: PullRequest
    observed_at_revision: int
    merge_checked: bool = True
    """False: read from the host without the merge check in git; the engine then requests a full read."""
    priority: int | None = None
    no_batch: bool | None = None
    forced: bool | None = None
    head_pinned: bool = False
    by_maintainer: bool = False
    impacted_targets: ImpactedTargets | None = None
    actor: str = SYSTEM_ACTOR


class CancelRequested(EventBase, frozen=True):
    number: PullRequestNumber
    actor: str = SYSTEM_ACTOR


class RestartRequested(EventBase, frozen=True):
    number: PullRequestNumber
    actor: str = SYSTEM_ACTOR


class PriorityRequested(EventBase, frozen=True):
    """Changes the priority of a pull request that is in the queue. It never submits one."""

    number: PullRequestNumber
    priority: int
    actor: str = SYSTEM_ACTOR


class ImpactedTargetsUploaded(EventBase, frozen=True):
    number: PullRequestNumber
    head: Sha
    impacted_targets: ImpactedTargets


class SettingsSaved(EventBase, frozen=True):
    config: Config
    actor: str = SYSTEM_ACTOR


class StateRequested(EventBase, frozen=True):
    state: QueueState
    actor: str = SYSTEM_ACTOR
    state_reason: str = ""
    """Why, in the words of the user; empty if none was given."""


class PullRequestDirty(EventBase, frozen=True):
    """A hint that the pull request changed. The worker reads it again; nothing in the hint is trusted."""

    number: PullRequestNumber


class TargetBranchDirty(EventBase, frozen=True):
    pass


class PullRequestObserved(EventBase, frozen=True):
    pull_request: PullRequest
    observed_at_revision: int
    impacted_targets: ImpactedTargets | None = None
    """The impacted targets that were uploaded for exactly this head, if any."""


class TargetBranchObserved(EventBase, frozen=True):
    tip: Sha | None
    observed_at_revision: int
    required_statuses: RequiredStatuses = RequiredStatuses()
    removed_commits: frozenset[Sha] = frozenset()
    """Commits that the branch contained at the last known tip and no longer contains."""


class ChecksObserved(EventBase, frozen=True):
    run: RunId
    checks: Mapping[str, CheckState]
    observed_at_revision: int
    pushed: bool = False
    """True: pushed to us by a status report. False: polled. Only a polled observation decides a timeout."""


class HostUnreachable(EventBase, frozen=True):
    """The Git host does not respond, or not as expected."""


class HostLimiting(EventBase, frozen=True):
    """The Git host responds, and accepts no request of this kind before `until`."""

    until: Instant
    only_waiting: bool = False
    """Pull requests under test go on: only what waits is not read."""


class HostRefusing(EventBase, frozen=True):
    """The Git host responds, and refuses what a task asks of it: an administrator has to repair a permission."""

    detail: str
    number: PullRequestNumber | None = None
    """The pull request that the task read, if it was about a single one."""


class ServerFailing(EventBase, frozen=True):
    """A task failed on our own server: its disk is full, or git fails there."""


class HostReachable(EventBase, frozen=True):
    """A task was done again: what was in its way is gone."""


class RunBuilt(EventBase, frozen=True):
    """The test branch is pushed."""

    run: RunId
    steps: tuple[Step, ...]
    """For the members that are not part of a reused chain."""
    head_checks: Mapping[str, CheckState] | None = None
    """The checks of its only pull request's head, if the task asked for them and both have the same tree."""
    statuses_ahead: tuple[str, ...] = ()
    """What the configuration file requires in the commit below the last member, if those ahead of it change that."""


class BuildRefusal(StrEnum):
    CONFLICTS_WITH_TARGET = "conflicts_with_target"
    CONFLICTS_WITH_STACK = "conflicts_with_stack"
    CONTAINS_REMOVED_COMMIT = "contains_removed_commit"
    NOTHING_TO_MERGE = "nothing_to_merge"
    ALREADY_CONTAINED = "already_contained"
    TOO_LARGE = "too_large"
    LIMIT_EXCEEDED = "limit_exceeded"
    """Git needs more memory or time than one process may take. The first time the machine may have been busy."""
    INVALID_TREE = "invalid_tree"
    BREAKS_CONFIG = "breaks_config"
    REBASE_DIFFERS = "rebase_differs"
    REFUSED = "refused"


class RunBuildRefused(EventBase, frozen=True):
    """The test branch cannot be built because of this member of its stack."""

    run: RunId
    submission_id: SubmissionId
    refusal: BuildRefusal
    blockers: tuple[SubmissionId, ...] = ()
    """The pull requests that it conflicts with, if known. Empty: any of those ahead of it in the stack."""
    detail: str = ""


class RunStartRefused(EventBase, frozen=True):
    """The host refuses the test branch, or the draft that CI needs, and no pull request is the cause."""

    run: RunId
    detail: str


class BaseCommitMissing(EventBase, frozen=True):
    """The commit that the run is to be built on no longer exists in the mirror or at the host."""

    run: RunId


class BranchDeleted(EventBase, frozen=True):
    run: RunId


class LandingRebased(EventBase, frozen=True):
    landing: int
    steps: tuple[Step, ...]


class LandingRebaseRefused(EventBase, frozen=True):
    """A pull request that landed since changed a path that this landing changes too, or the tested commits are gone."""

    landing: int


class LandingPullRequestsRead(EventBase, frozen=True):
    """The pull requests of the landing, read after the landing was chosen."""

    landing: int
    pull_requests: tuple[PullRequest, ...]
    observed_at_revision: int


class LandingSucceeded(EventBase, frozen=True):
    landing: int
    steps: tuple[Step, ...]
    """What the target branch contains now, one commit per pull request, as read from the host."""


class LandingMissed(EventBase, frozen=True):
    """The target branch was not at the expected commit and was not moved."""

    landing: int
    steps: tuple[Step, ...] = ()
    """What had landed before, when the host merges the pull requests one by one."""
    test_branch_moved: bool = False
    """The target branch is at the expected commit, but the test branch was moved: this run can no longer land."""
    refused_heads: tuple[PullRequestNumber, ...] = ()
    """The pull requests whose head branch the host refuses to move."""


class LandingRefused(EventBase, frozen=True):
    landing: int
    detail: str
    submission_id: SubmissionId | None = None
    """The pull request that the host names, if it names one."""
    steps: tuple[Step, ...] = ()
    """What had landed before it, when the host merges the pull requests one by one."""


class LandingOutcomeUnknown(EventBase, frozen=True):
    """The test branch is gone and the target branch lacks the commit: it is unknown whether the push took effect."""

    landing: int


class ProcessingResumed(EventBase, frozen=True):
    """A process starts to process this queue, after a restart or a takeover. Status reports may have
    been lost before."""


class AuditMismatchFound(EventBase, frozen=True):
    """The merge audit found that the target branch differs from what is recorded."""

    mismatches: tuple[Mismatch, ...]


Event = (
    PullRequestSubmitted
    | CancelRequested
    | RestartRequested
    | PriorityRequested
    | ImpactedTargetsUploaded
    | SettingsSaved
    | StateRequested
    | PullRequestDirty
    | TargetBranchDirty
    | PullRequestObserved
    | TargetBranchObserved
    | ChecksObserved
    | HostUnreachable
    | HostLimiting
    | HostRefusing
    | ServerFailing
    | HostReachable
    | RunBuilt
    | RunBuildRefused
    | RunStartRefused
    | BaseCommitMissing
    | BranchDeleted
    | LandingRebased
    | LandingRebaseRefused
    | LandingPullRequestsRead
    | LandingSucceeded
    | LandingMissed
    | LandingRefused
    | LandingOutcomeUnknown
    | AuditMismatchFound
    | ProcessingResumed
)

BUILD_REFUSAL_REASONS: dict[BuildRefusal, Reason] = {
    BuildRefusal.CONFLICTS_WITH_TARGET: Reason.MERGE_CONFLICT,
    BuildRefusal.CONTAINS_REMOVED_COMMIT: Reason.CONTAINS_REMOVED_COMMIT,
    BuildRefusal.NOTHING_TO_MERGE: Reason.NOTHING_TO_MERGE,
    BuildRefusal.TOO_LARGE: Reason.PR_TOO_LARGE,
    BuildRefusal.LIMIT_EXCEEDED: Reason.PR_TOO_LARGE,
    BuildRefusal.INVALID_TREE: Reason.INVALID_TREE,
    BuildRefusal.BREAKS_CONFIG: Reason.BREAKS_CONFIG,
    BuildRefusal.REBASE_DIFFERS: Reason.REBASE_DIFFERS,
    BuildRefusal.REFUSED: Reason.START_REFUSED,
}
