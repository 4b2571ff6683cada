"""A pull request as the host last showed it, and one stay of it in the queue."""

from collections.abc import Mapping

from msgspec import Struct, field

from mergeyard.domain.ids import PrNumber, RunId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.priorities import URGENT
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import Mergeability, PrState
from mergeyard.domain.targets import Targets


class PullRequest(Struct, frozen=True, kw_only=True):
    number: PrNumber
    head: Sha
    base: str
    branch: str = ""
    title: str = ""
    author: str = ""
    is_open: bool = True
    draft: bool = False
    fork: bool = False
    mergeability: Mergeability = Mergeability.UNKNOWN
    merged_into: str | None = None
    guarded: tuple[str, ...] | None = None
    """Some of the guarded paths that it changes, if it comes from a fork; None: git has not been asked yet."""
    contained: bool = False
    """Its head is already part of the target branch."""
    contains: Mapping[PrNumber, Sha] = field(default_factory=dict[PrNumber, Sha])
    """Other pull requests of this queue, and their heads, which are part of this one."""


class Hold(Struct, frozen=True):
    """Why an admitted pull request stays out of every stack for a while."""

    reason: Reason
    blockers: tuple[Ticket, ...] = ()
    """Those ahead that it conflicts with."""
    tip: Sha | None = None
    """It may rejoin when the target is no longer this commit."""


class HeadExam(Struct, frozen=True):
    """What was found when a head was considered for a direct merge onto a certain tip."""

    tip: Sha
    contains_tip: bool
    changes_something: bool
    holds_removed_commit: bool
    passed: frozenset[str]
    commit: Sha
    tree: Sha


class Submission(Struct, frozen=True, kw_only=True):
    ticket: Ticket
    pull: PullRequest
    priority: int
    submitted_at: Instant
    state_changed_at: Instant
    priority_is_default: bool = True
    no_batch: bool = False
    forced: bool = False
    pinned: bool = False
    """The submitter named the head, so no other head may take its place."""
    by_maintainer: bool = False
    """A maintainer submitted this head, so it may change guarded paths."""
    targets: Targets | None = None
    not_ready_mark: int = 0
    """What the queue's running clock showed when it last became not ready."""
    admitted_at: Instant | None = None
    was_in_run: bool = False
    reunion: tuple[Ticket, ...] = ()
    """With whom it goes into the line again, in this order and without newcomers."""
    hold: Hold | None = None
    exam: HeadExam | None = None
    seen: int = 0
    """The turn in which the host's view of it was last recorded."""
    state: PrState = PrState.NOT_READY
    reason: Reason = Reason.SUBMITTED
    upon: tuple[PrNumber, ...] = ()
    """Those that it was tested upon when it failed: the reason names them."""
    words: str = ""
    """The host's or the tester's own words about the last change."""
    run: RunId | None = None
    verified_by: RunId | None = None
    merged_sha: Sha | None = None
    composed: bool = False
    """Its tested contents were put on a tip that had moved."""

    @property
    def number(self) -> PrNumber:
        return self.pull.number

    @property
    def urgent(self) -> bool:
        return self.priority == URGENT
