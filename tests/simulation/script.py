"""The script of a world before it is played: what people do, what breaks, and when.

Every part can be left out, so that a long script that breaks a promise can be shrunk to a short one.
"""

from typing import Any, ClassVar

from msgspec import Struct

from mergeyard.domain.config import Config
from mergeyard.domain.states import QueueState
from tests.simulation.faults import Family


class Act(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    family: ClassVar[Family | None] = None
    """The family it belongs to, if it is a fault."""
    at: int
    """Milliseconds after the start."""
    during: str = ""
    """Wait until the queue is in this phase,"""
    lag: int = 0
    """and then for this many milliseconds."""


# With the queue.


class Submit(Act, frozen=True, kw_only=True):
    pr: int
    priority: int | None = None
    no_batch: bool | None = None
    forced: bool | None = None


class Cancel(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.USER_REQUESTS
    pr: int


class Restart(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.USER_REQUESTS
    pr: int


class Upload(Act, frozen=True, kw_only=True):
    pr: int
    targets: tuple[str, ...] | None = None
    """None: all of them."""


class SetState(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.USER_REQUESTS
    state: QueueState


class Change(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.USER_REQUESTS
    setting: str
    value: Any


# At the host.


class Push(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.AUTHORS
    pr: int


class RewriteHead(Act, frozen=True, kw_only=True):
    """The author rebases the commits, and pushes by force."""

    family: ClassVar[Family | None] = Family.AUTHORS
    pr: int


class PullAndPush(Act, frozen=True, kw_only=True):
    """The author pushes on top of what the head branch has, also if the service moved it."""

    family: ClassVar[Family | None] = Family.AUTHORS
    pr: int


class DeleteHead(Act, frozen=True, kw_only=True):
    """The author deletes the head branch."""

    family: ClassVar[Family | None] = Family.AUTHORS
    pr: int


class RestoreHead(Act, frozen=True, kw_only=True):
    """The author pushes the last head of the author again, by force, also if the head branch is gone."""

    family: ClassVar[Family | None] = Family.AUTHORS
    pr: int


class Close(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.AUTHORS
    pr: int


class Reopen(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.AUTHORS
    pr: int


class Retarget(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.AUTHORS
    pr: int


class MergeByHand(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.FOREIGN_PUSHES
    pr: int


class PushToTarget(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.FOREIGN_PUSHES


class RewindTarget(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.FOREIGN_PUSHES


class PushRevert(Act, frozen=True, kw_only=True):
    """A person pushes a revert of what a pull request merged, or merges it back with the same message."""

    pr: int
    again: bool = False


class PushForged(Act, frozen=True, kw_only=True):
    """A person pushes a commit whose message has trailers like ours, about this pull request."""

    pr: int
    run: int | None = None
    """Which of the runs whose test branches exist, if there are any; None: one that never existed."""
    picks: bool = False
    """It has the change of the first commit of the pull request, and names that commit as head."""


class DeleteTestBranch(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.AUTHORS
    which: int = 0


class ReportOnHead(Act, frozen=True, kw_only=True):
    pr: int


class Approve(Act, frozen=True, kw_only=True):
    pr: int


class Withdraw(Act, frozen=True, kw_only=True):
    """A reviewer withdraws the approval."""

    pr: int


# At the servers.


class Kill(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.KILLS
    replica: int = 0
    for_ms: int = 1000
    loses_its_disk: bool = False


class Freeze(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.FREEZES
    replica: int = 0
    for_ms: int = 20_000


class JumpClock(Act, frozen=True, kw_only=True):
    family: ClassVar[Family | None] = Family.CLOCKS
    by_ms: int
    replica: int = 0
    for_ms: int = 60_000


class FaultPeriod(Act, frozen=True, kw_only=True):
    of: Family
    for_ms: int = 10_000
    percent: int = 100


class Nature(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """What pull requests are like, by their numbers."""

    bad: tuple[int, ...] = ()
    bad_pairs: tuple[tuple[int, int], ...] = ()
    sharing: tuple[int, ...] = ()
    """They change the same file."""
    stacked_on: tuple[tuple[int, int], ...] = ()
    """The first is stacked on the second."""
    reverting: tuple[tuple[int, int], ...] = ()
    """The first reverts what the second merged, if it merged before."""
    landing_again: tuple[tuple[int, int], ...] = ()
    """The first has the commits that the second was opened with, and a correction."""
    picking: tuple[tuple[int, int], ...] = ()
    """The first has what the second merged as one commit more, with the message that it merged with."""
    forging: tuple[tuple[int, int], ...] = ()
    """The first has a commit with trailers like ours, about the second."""
    undoing: tuple[int, ...] = ()
    """They contain a change of the shared file and its revert."""
    base_is_broken: bool = False
    repaired_by: int = 0


class Heads(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """How the host treats the head branches of pull requests, by the numbers of pull requests."""

    moved_first: bool = False
    """A head branch must be moved before the target branch."""
    closes_merged: bool = False
    """If the host notices the target branch first, it closes the pull request without a merge; else it stays open."""
    shown_after_ms: int = 0
    """How long the host takes to notice that a branch moved."""
    in_forks: tuple[int, ...] = ()
    in_closed_forks: tuple[int, ...] = ()
    """Of forks that accept no pushes of ours."""
    protected: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    """The host says that they can be moved, and refuses it."""


class Script(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    seed: int = 0
    """For what the script does not fix: how long calls take, and which calls a fault affects."""
    config: Config = Config()
    replicas: int = 1
    """Several replicas share one store."""
    has_forge: bool = False
    requires_approval: bool = False
    """The forge requires one approval of every pull request."""
    hides_reviews: bool = False
    """A review changes nothing that a poll of the forge shows."""
    statuses: tuple[str, ...] = ("unit",)
    families: frozenset[Family] = frozenset()
    nature: Nature = Nature()
    heads: Heads | None = None
    """None: no head branch can be moved, and the host is told about every merge."""
    acts: tuple[Act, ...] = ()
