"""A run: one test of one batch on one stack, from its plan to its result."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import BatchId, PullRequestNumber, RunId, Sha, SubmissionId
from mergeyard.domain.pull_requests import RequiredSource
from mergeyard.domain.states import ACTIVE_RUN_STATUSES, CheckState, Reason, RunStatus
from mergeyard.domain.timestamps import Instant


class RunKind(StrEnum):
    BATCH = "batch"
    BISECTION = "bisection"
    BASE = "base"
    """Tests the target branch itself, without pull requests."""


class Member(Struct, frozen=True):
    """A pull request in a stack. It has all that building needs, also after the pull request left the queue."""

    submission_id: SubmissionId
    number: PullRequestNumber
    head: Sha


class Step(Struct, frozen=True):
    """The commit that one pull request becomes in a chain. With the rebase method: the last of its commits."""

    commit: Sha
    parent: Sha
    """The commit of the step before it, or the base."""
    tree: Sha

    def is_interchangeable_with(self, other: "Step") -> bool:
        return self.parent == other.parent and self.tree == other.tree


class HeadMove(Struct, frozen=True):
    """A head branch that moves to the commit that merges its pull request."""

    number: PullRequestNumber
    branch: str
    head: Sha
    """The tested head, where the branch must be."""
    commit: Sha
    fork: str = ""
    """`owner/name` of the fork that has the branch; empty: the repository itself."""


class Run(Struct, frozen=True, kw_only=True):
    id: RunId
    kind: RunKind
    base: Sha
    stack: tuple[Member, ...]
    tested_count: int
    """How many members, from the end of the stack, this run tests. The others are the pull requests ahead."""
    excluded_submission_ids: frozenset[SubmissionId] = frozenset()
    """Pull requests ahead that are expected to leave the queue. The run is valid only once all of them have left."""
    batch: BatchId | None = None
    required_statuses: tuple[str, ...]
    required_statuses_source: RequiredSource = RequiredSource.MERGE_INSTANCE
    merge_method: MergeMethod
    landing_method: LandingMethod
    timeout_ms: int
    attempt: int = 0
    """How many failed runs it repeats; a restart by a user starts at 0 again."""
    is_repetition: bool = False
    status: RunStatus = RunStatus.PREPARING
    extends: RunId | None = None
    """The run whose chain this one continues, while that chain is not built yet."""
    chain: tuple[Step, ...] = ()
    """One step per member, from the base up. While preparing, only the reused steps."""
    pushed: bool = False
    """Its test branch may exist on the host."""
    started_at: Instant | None = None
    decided_at: Instant | None = None
    outage_ms: int = 0
    """Milliseconds in which the host was unreachable. They extend the timeout."""
    overdue_at_revision: int | None = None
    """The revision in which its timeout passed. Only checks observed at this revision or later can fail it."""
    timed_out: bool = False
    recorded_at_revision: int = 0
    """The revision in which its checks were last recorded."""
    checks: Mapping[str, CheckState] = field(default_factory=dict[str, CheckState])
    restart_requested: bool = False
    """A user asked to repeat it."""
    used_head_checks: bool = False
    """It passed with the checks of its pull request's head, which has the same tree as its tip."""
    invalidated: Reason | None = None
    """Why its result no longer counts, whatever its stack is."""

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE_RUN_STATUSES

    @property
    def tested_members(self) -> tuple[Member, ...]:
        return self.stack[len(self.stack) - self.tested_count :]

    @property
    def prs_ahead(self) -> tuple[Member, ...]:
        return self.stack[: len(self.stack) - self.tested_count]

    @property
    def tested_on(self) -> Sha:
        """The commit below the first pull request that it tests."""
        ahead = len(self.prs_ahead)
        return self.chain[ahead - 1].commit if ahead else self.base

    @property
    def tip(self) -> Sha:
        return self.chain[-1].commit

    @property
    def checked_commit(self) -> Sha:
        """The commit that its checks were reported on."""
        return self.stack[-1].head if self.used_head_checks else self.tip

    @property
    def is_restarted(self) -> bool:
        """A user asked to test again: until it is decided, no other run decides for its batch."""
        return self.is_repetition and self.attempt == 0 and self.is_active

    @property
    def failure_reason(self) -> Reason:
        return Reason.TEST_RUN_TIMEOUT if self.timed_out else Reason.TEST_RUN_FAILED
