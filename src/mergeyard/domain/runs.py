"""A run: one test of one batch upon one stack, from the plan to its verdict."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import BatchId, PrNumber, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.reasons import Reason
from mergeyard.domain.required import RequiredSource
from mergeyard.domain.states import ACTIVE, CheckState, RunStatus


class RunKind(StrEnum):
    LINE = "line"
    BISECTION = "bisection"
    BARE = "bare"
    """It tests the target itself, with no pull request."""


class Member(Struct, frozen=True):
    """A pull request in a stack, with all that building needs, also after it has left the queue."""

    ticket: Ticket
    number: PrNumber
    head: Sha


class Step(Struct, frozen=True):
    """The commit that one pull request becomes in a chain; rebased, the last of its commits."""

    commit: Sha
    parent: Sha
    """The commit of the step beneath it, or the base."""
    tree: Sha

    def interchangeable_with(self, other: "Step") -> bool:
        return self.parent == other.parent and self.tree == other.tree


class Run(Struct, frozen=True, kw_only=True):
    id: RunId
    kind: RunKind
    base: Sha
    stack: tuple[Member, ...]
    tests: int
    """How many members, from the end of the stack, this run tests; the others are what they stand upon."""
    left_out: frozenset[Ticket] = frozenset()
    """Those ahead that are expected to leave: the run holds only when they really do."""
    batch: BatchId | None = None
    required: tuple[str, ...]
    required_source: RequiredSource = RequiredSource.MERGE_INSTANCE
    method: MergeMethod
    landing: LandingMethod
    timeout: int
    attempt: int = 0
    status: RunStatus = RunStatus.PREPARING
    extends: RunId | None = None
    """The run whose chain this one goes on from, while that chain is not known yet."""
    chain: tuple[Step, ...] = ()
    """One step per member, from the base up; while preparing, only those that are reused."""
    pushed: bool = False
    """Its test branch may exist at the host."""
    started_at: Instant | None = None
    decided_at: Instant | None = None
    outages: int = 0
    """Milliseconds in which the host could not be read: they do not count against the timeout."""
    overdue_since: int | None = None
    """The turn in which its time ran out: only a look begun since then may judge it."""
    timed_out: bool = False
    seen: int = 0
    """The turn in which its checks were last recorded."""
    checks: Mapping[str, CheckState] = field(default_factory=dict[str, CheckState])
    restarted: bool = False
    """Somebody asked for it to be run again."""
    void: Reason | None = None
    """Why its verdict no longer counts, whatever its stack says."""

    @property
    def active(self) -> bool:
        return self.status in ACTIVE

    @property
    def tested(self) -> tuple[Member, ...]:
        return self.stack[len(self.stack) - self.tests :]

    @property
    def beneath(self) -> tuple[Member, ...]:
        return self.stack[: len(self.stack) - self.tests]

    @property
    def tested_upon(self) -> Sha:
        """The commit under the first pull request that it tests."""
        beneath = len(self.beneath)
        return self.chain[beneath - 1].commit if beneath else self.base

    @property
    def tip(self) -> Sha:
        return self.chain[-1].commit

    @property
    def failure(self) -> Reason:
        return Reason.TEST_RUN_TIMEOUT if self.timed_out else Reason.TEST_RUN_FAILED
