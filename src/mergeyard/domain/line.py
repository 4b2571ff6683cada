"""The line, batch behind batch, and the bisections beside it."""

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct, field

from mergeyard.domain.ids import BatchId, RunId, Sha, Ticket
from mergeyard.domain.runs import Run, Step
from mergeyard.domain.targets import ALL, Targets


class Batch(Struct, frozen=True, kw_only=True):
    id: BatchId
    tickets: tuple[Ticket, ...]
    targets: Targets = ALL
    """Fixed when it entered the line: an upload during a run counts at the next start."""
    behind: frozenset[Ticket] = frozenset()
    """Whose commits its members contain: it stands behind them whatever their targets."""
    urgent: bool = False
    interruptions: int = 0
    runs: tuple[RunId, ...] = ()
    """The runs whose verdict still counts, the latest last."""


class LaneIndex(Struct, frozen=True):
    """Who was the last to claim a target. Newer segments win, and grow geometrically from the newest back,
    so that placing a batch copies little and looking a target up asks few."""

    segments: tuple[Mapping[str, BatchId], ...] = ()
    last_of_all: BatchId | None = None
    """The last batch that impacts everything."""


class Line(Struct, frozen=True, dict=True):
    batches: tuple[Batch, ...] = ()
    ahead: Mapping[BatchId, tuple[BatchId, ...]] = field(default_factory=dict[BatchId, tuple[BatchId, ...]])
    """Per batch all that it depends on, transitively, in the order of the line."""
    index: LaneIndex = LaneIndex()

    @property
    def tickets(self) -> tuple[Ticket, ...]:
        return tuple(ticket for batch in self.batches for ticket in batch.tickets)

    @cached_property
    def by_id(self) -> Mapping[BatchId, Batch]:
        return {batch.id: batch for batch in self.batches}


class Bisection(Struct, frozen=True, kw_only=True):
    """The search for the guilty one of a red batch, on its own base, whatever the target does meanwhile."""

    id: BatchId
    tickets: tuple[Ticket, ...]
    """The whole batch as it failed, also those that have been handed back since."""
    targets: Targets
    failed: Run
    green: int = 0
    """The longest prefix known to pass."""
    red: int
    """The shortest prefix known to fail."""
    red_run: Run
    merged: frozenset[Ticket] = frozenset()
    runs: tuple[RunId, ...] = ()
    """Tests of prefixes, then the test that confirms the suspect."""
    confirming: bool = False

    @property
    def base(self) -> Sha:
        """The commit beneath the batch: its results are evidence because they never leave it."""
        return self.failed.tested_upon

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.failed.chain[len(self.failed.beneath) :]

    @property
    def searching(self) -> bool:
        return self.red - self.green > 1

    @property
    def suspect(self) -> Ticket:
        return self.tickets[self.red - 1]

    @property
    def prefix(self) -> tuple[Ticket, ...]:
        """Those that the suspect was red upon."""
        return self.tickets[: self.red - 1]

    @property
    def members(self) -> tuple[Ticket, ...]:
        """Those that are still here: neither known to be good nor behind a red prefix."""
        return self.tickets[self.green : self.red]
