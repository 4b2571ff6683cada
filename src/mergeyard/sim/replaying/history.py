"""What a period of a queue tells: who came and how each left, which runs there were, and what was ordered meanwhile."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.config import Config
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.priorities import USUAL
from mergeyard.domain.states import QueueState, RunStatus
from mergeyard.domain.targets import Targets

Place = int
"""Of an arrival: they count from 0 in the order in which they came."""


class End(StrEnum):
    MERGED = "merged"
    FAILED = "failed"
    """Its tests said so."""
    LEFT = "left"
    """Taken out, closed, pushed to, or merged by hand."""
    BESIDE = "beside"
    """No test had a say: it could not be built or merged, or it merged without a run."""
    STAYED = "stayed"
    """It was still in the queue when the period ended."""


class Arrival(Struct, frozen=True, kw_only=True):
    """One stay of a pull request, from its admission on."""

    number: PrNumber
    head: Sha
    at: Instant
    author: str = ""
    priority: int = USUAL
    no_batch: bool = False
    targets: Targets | None = None
    stands_upon: tuple[Place, ...] = ()
    """Others whose changes are part of it."""
    after: Place | None = None
    """The stay of the same pull request before this one."""
    end: End
    ended_at: Instant
    counted: bool = True
    """Others are replayed so that the queue is as full as it was."""

    @property
    def stayed(self) -> int:
        return self.ended_at - self.at


class Tried(Struct, frozen=True, kw_only=True):
    """One run, as it was."""

    stack: tuple[Place, ...]
    tests: int
    """How many of them, from the end, it was about; none: it tested the target itself."""
    base: Sha
    started_at: Instant
    decided_at: Instant
    status: RunStatus
    whole: bool = True
    """Everybody in its stack is known; of others only those that it was about."""

    @property
    def length(self) -> int:
        return self.decided_at - self.started_at

    @property
    def decided(self) -> bool:
        return self.status in (RunStatus.SUCCEEDED, RunStatus.FAILED)

    @property
    def red(self) -> bool:
        return self.status is RunStatus.FAILED

    @property
    def tested(self) -> tuple[Place, ...]:
        return self.stack[len(self.stack) - self.tests :]


class Setting(Struct, frozen=True):
    """From then on these settings held."""

    at: Instant
    config: Config


class Order(Struct, frozen=True):
    """From then on the queue ran, drained or paused."""

    at: Instant
    state: QueueState


class History(Struct, frozen=True, kw_only=True):
    since: Instant
    until: Instant
    arrivals: tuple[Arrival, ...]
    runs: tuple[Tried, ...]
    """In the order in which they started."""
    settings: tuple[Setting, ...]
    """The first of them held from the beginning."""
    orders: tuple[Order, ...] = ()
    pushes: tuple[Instant, ...] = ()
    """When the target moved to what was no landing of this queue."""
    cut: bool = False
    """More came in the time that was asked for, before the first that is counted: there were too many."""
    unread: int = 0
    """How many changes of settings cannot be told."""

    def was_merged(self, place: Place, by: Instant) -> bool:
        arrival = self.arrivals[place]
        return arrival.end is End.MERGED and arrival.ended_at <= by

    def counts(self, tested: tuple[Place, ...], started_at: Instant) -> bool:
        """Whether a run belongs to those who are counted, or, as one of the target itself, to the period."""
        return any(self.arrivals[place].counted for place in tested) if tested else started_at >= self.since
