"""A pull request as last read from the host, and one submission of it to the queue."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from mergeyard.domain.config import MIN_AGED_PRIORITY, URGENT, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha, SubmissionId
from mergeyard.domain.journal import SYSTEM_ACTOR, Cause
from mergeyard.domain.states import REQUIREMENT_REASONS, CheckState, Mergeability, PullRequestState, Reason
from mergeyard.domain.timestamps import Instant


class ImpactedTargets(Struct, frozen=True):
    names: frozenset[str] = frozenset()
    everything: bool = False

    def overlaps(self, other: "ImpactedTargets") -> bool:
        """ALL overlaps with everything, also with a pull request that impacts nothing."""
        return self.everything or other.everything or not self.names.isdisjoint(other.names)


ALL_TARGETS = ImpactedTargets(everything=True)
NO_TARGETS = ImpactedTargets()


def impacted_targets_from_names(*names: str) -> ImpactedTargets:
    return ImpactedTargets(frozenset(names))


def union_impacted_targets(many: Iterable[ImpactedTargets]) -> ImpactedTargets:
    parts = tuple(many)
    if any(part.everything for part in parts):
        return ALL_TARGETS
    return ImpactedTargets(frozenset[str]().union(*(part.names for part in parts)))


MAX_REQUIREMENT_NAMES = 20
"""Further names of a requirement are not recorded."""


class Requirement(Struct, frozen=True, kw_only=True):
    """A rule of the Git host for one pull request, and how much of it the pull request has."""

    reason: Reason
    """Why the pull request waits while the rule is not met."""
    needed: int = 1
    given: int | None = 0
    """None: unknown, because the Git host does not show the rule to us."""
    names: tuple[str, ...] = ()
    """What or who is missing: `@acme/db`, `unit`; for a rule that cannot be read, the missing permission."""
    given_by: tuple[str, ...] = ()
    """The accounts whose approvals count: `@ada`; only where the Git host shows them."""
    blocks_if_unknown: bool = True
    concerns_test_branches: bool = False
    """The Git host applies the rule to every branch that we push."""
    concerns_host_merges: bool = False
    """The Git host applies the rule to the commits of the pull request also if it squashes or rebases them itself."""

    @property
    def is_met(self) -> bool:
        return self.given >= self.needed if self.given is not None else not self.blocks_if_unknown

    def applies_to(self, method: MergeMethod, *, by_host: bool) -> bool:
        """Whether the rule concerns what merges: squashed and rebased commits are ours unless the Git host merges, and
        our key does not sign what it merges. (GitHub does not sign what it rebases: the check of the host reports
        this.)"""
        match self.reason:
            case Reason.COMMITS_UNSIGNED:
                return method is MergeMethod.MERGE_COMMIT or (by_host and self.concerns_host_merges)
            case Reason.SIGNING_KEY_NOT_ACCEPTED:
                return not by_host or self.concerns_test_branches
            case _:
                return True


class HeadBranchAccess(StrEnum):
    """Whether the head branch of a pull request can be moved to the commit that merges it."""

    MOVABLE = "movable"
    IN_FORK = "in_fork"
    """It is in a fork that does not accept pushes of ours."""
    PROTECTED = "protected"
    """A rule of the Git host forbids pushes of ours, or to move it back."""
    SHARED = "shared"
    """It is also something else: the default branch, or the head of another open pull request."""
    NOT_MOVED = "not_moved"
    """We could move it, but then the Git host would no longer show the changes of the pull request. We report the merge
    to this Git host instead."""
    GONE = "gone"
    """It does not exist, or is not at the head of the pull request."""
    UNKNOWN = "unknown"
    """It was not read, because the settings of the queue do not need it."""


class PullRequest(Struct, frozen=True, kw_only=True):
    number: PullRequestNumber
    head: Sha
    base_branch: str
    head_branch: str = ""
    head_repo: str = ""
    """`owner/name` of the fork that has the head branch; empty: the repository itself, or a fork that is gone."""
    head_branch_access: HeadBranchAccess = HeadBranchAccess.MOVABLE
    is_merged_by_head: bool = False
    """The Git host shows it as merged only if its head is on the target branch, or if the Git host merged it."""
    title: str = ""
    author: str = ""
    is_open: bool = True
    draft: bool = False
    fork: bool = False
    mergeability: Mergeability = Mergeability.UNKNOWN
    """Whether it merges into its base branch without conflicts."""
    requirements: tuple[Requirement, ...] = ()
    """What the rules of the Git host require of it."""
    merged_into: str | None = None
    guarded_paths: tuple[str, ...] | None = None
    """For a pull request from a fork, some of the guarded paths it changes; None: git has not been asked yet."""
    exceeded_limit: str = ""
    """The limit that git exceeded when it merged this head on trial; empty if it did not. Nothing else is known then of
    what git finds out."""
    is_in_target_branch: bool = False
    """The target branch already contains its head."""
    contained_heads: Mapping[PullRequestNumber, Sha] = field(default_factory=dict[PullRequestNumber, Sha])
    """Other pull requests of this queue whose heads this one contains, with those heads."""

    @property
    def unmet_requirements(self) -> tuple[Requirement, ...]:
        unmet = (requirement for requirement in self.requirements if not requirement.is_met)
        return tuple(sorted(unmet, key=lambda requirement: REQUIREMENT_REASONS.index(requirement.reason)))

    @property
    def is_mergeable(self) -> bool:
        """Without conflicts, and with everything that the rules of the Git host require."""
        return self.mergeability is Mergeability.MERGEABLE and not self.unmet_requirements


class Hold(Struct, frozen=True):
    """Why an admitted pull request stays out of every stack for now."""

    reason: Reason
    blockers: tuple[SubmissionId, ...] = ()
    """The pull requests ahead that it conflicts with."""
    tip: Sha | None = None
    """The hold ends when the target branch is no longer at this commit."""


MAX_MOVED_HEADS = 3


class MovedHead(Struct, frozen=True):
    """The commit that we move its head branch to when it merges. The author did not push this commit."""

    commit: Sha
    at: Instant
    """When this was decided or, if nothing landed, when the landing ended."""


class Submission(Struct, frozen=True, kw_only=True):
    id: SubmissionId
    pull_request: PullRequest
    priority: int
    submitted_at: Instant
    state_changed_at: Instant
    priority_is_default: bool = True
    priority_set_by: str = SYSTEM_ACTOR
    """Who chose the priority."""
    no_batch: bool = False
    forced: bool = False
    forced_by: str = SYSTEM_ACTOR
    head_pinned: bool = False
    """The submitter named the head: a push cancels the submission."""
    by_maintainer: bool = False
    """A maintainer submitted this head, so it is allowed to change guarded paths."""
    impacted_targets: ImpactedTargets | None = None
    not_ready_at_running_ms: int = 0
    """The queue's running time in milliseconds when the pull request last became not ready."""
    admitted_at: Instant | None = None
    was_in_run: bool = False
    keep_together: tuple[SubmissionId, ...] = ()
    """The submissions it is batched with next, in this order and without others."""
    returned_from_bisection: bool = False
    """It waits again because of another pull request's failure, or to be tested without its batch."""
    hold: Hold | None = None
    recorded_at_revision: int = 0
    """The revision in which the pull request as read from the host was last recorded."""
    state: PullRequestState = PullRequestState.NOT_READY
    reason: Reason = Reason.SUBMITTED
    changed_by: str = SYSTEM_ACTOR
    """Who caused the last change of its state."""
    stacked_on: tuple[PullRequestNumber, ...] = ()
    """The pull requests it was stacked on when it failed. The reason names them."""
    causes: tuple[Cause, ...] = ()
    """The pull requests because of which it is tested again. The reason names them."""
    detail: str = ""
    """Text from the host or the tester about the last state change."""
    run: RunId | None = None
    verified_by: RunId | None = None
    merged_sha: Sha | None = None
    rebased: bool = False
    """Its tested contents were put onto a tip that had moved."""
    moved_heads: tuple[MovedHead, ...] = ()
    """The commits that its head branch was last moved to, the newest last: the Git host can show each of them later."""
    costly_head: Sha | None = None
    """The head for which git exceeded a limit once. The machine may have been busy; a second time fails it."""
    refused_head: Sha | None = None
    """The host refused to move its head branch from this head, whatever it had reported."""

    @property
    def number(self) -> PullRequestNumber:
        return self.pull_request.number

    @property
    def moved_head(self) -> MovedHead | None:
        return self.moved_heads[-1] if self.moved_heads else None

    def with_moved_head(self, moved: MovedHead) -> "Submission":
        others = (each for each in self.moved_heads if each.commit != moved.commit)
        return replace(self, moved_heads=(*others, moved)[-MAX_MOVED_HEADS:])

    @property
    def waiting_priority(self) -> int:
        """A bisected pull request had started before: it goes ahead of all that have not, except urgent ones."""
        return min(self.priority, MIN_AGED_PRIORITY) if self.returned_from_bisection else self.priority

    @property
    def is_urgent(self) -> bool:
        return self.priority == URGENT


class RequiredSource(StrEnum):
    SERVICE_CONFIG = "service_config"
    BRANCH_PROTECTION = "repo_provider_branch_protection"
    MERGE_INSTANCE = "merge_instance"


class RequiredStatuses(Struct, frozen=True):
    """The statuses that the repository requires, read at the tip of the target branch."""

    statuses: tuple[str, ...] = ()
    source: RequiredSource = RequiredSource.SERVICE_CONFIG
    config_error: str | None = None
    """Why the repository's configuration is invalid."""


class StatusState(StrEnum):
    PENDING = "pending"
    SUCCESS = "success"
    SKIPPED = "skipped"
    NEUTRAL = "neutral"
    FAILURE = "failure"
    ERROR = "error"


class Status(Struct, frozen=True, kw_only=True):
    context: str
    state: StatusState
    at: Instant
    url: str = ""
    """Empty: the reporter gave no URL, and our own page is linked."""
    description: str = ""
    suite: str = ""
    """The check suite that it belongs to; empty for a plain commit status."""

    @property
    def check_state(self) -> CheckState:
        return CHECK_STATE_BY_STATUS_STATE[self.state]


CHECK_STATE_BY_STATUS_STATE = {
    StatusState.PENDING: CheckState.PENDING,
    StatusState.SUCCESS: CheckState.PASSED,
    StatusState.SKIPPED: CheckState.NEUTRAL,
    StatusState.NEUTRAL: CheckState.NEUTRAL,
    StatusState.FAILURE: CheckState.FAILED,
    StatusState.ERROR: CheckState.FAILED,
}
