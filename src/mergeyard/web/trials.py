"""A run as people watch it: how many checks are done, how long it has taken, and how long one usually takes."""

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, RunId
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import ACTIVE, CheckState, RunStatus
from mergeyard.engine import estimating

ROOM_BEHIND_THE_USUAL = 1.25
"""The time that a bar has room for, as a multiple of the usual one, so that its end is not where the run ends."""


class Trial(Struct, frozen=True, kw_only=True):
    run: RunId
    status: RunStatus
    checks: tuple[CheckState, ...]
    """In the order in which they are required."""
    started_at: Instant | None
    elapsed: int | None
    usual: int | None
    attempt: int
    without: tuple[PrNumber, ...]
    """Those ahead that it leaves out, because they are expected to leave."""

    @property
    def shown(self) -> bool:
        """Whether it has a page: one that is still being built has none."""
        return self.status is not RunStatus.PREPARING

    @property
    def total(self) -> int:
        return len(self.checks)

    @property
    def done(self) -> int:
        return sum(check is not CheckState.PENDING for check in self.checks)

    @property
    def overdue(self) -> bool:
        if self.elapsed is None or self.usual is None:
            return False
        return self.status in ACTIVE and self.elapsed > self.usual

    @property
    def progress(self) -> int | None:
        """How much of its bar is full, in percent; None where nobody knows how long it will take."""
        return None if self.elapsed is None else self._percent(self.elapsed)

    @property
    def due(self) -> int | None:
        """Where in the bar the usual time is over."""
        return None if self.usual is None else self._percent(self.usual)

    def _percent(self, milliseconds: int) -> int | None:
        if not self.usual:
            return None
        whole = max(self.usual * ROOM_BEHIND_THE_USUAL, self.elapsed or 0)
        return round(100 * milliseconds / whole)


def trial(queue: Queue, run: Run, now: Instant) -> Trial:
    return Trial(
        run=run.id,
        status=run.status,
        checks=tuple(run.checks.get(name, CheckState.PENDING) for name in run.required),
        started_at=run.started_at,
        elapsed=_elapsed(run, now),
        usual=estimating.usual(queue),
        attempt=run.attempt,
        without=tuple(
            queue.submissions[ticket].number for ticket in sorted(run.left_out) if ticket in queue.submissions
        ),
    )


def _elapsed(run: Run, now: Instant) -> int | None:
    return None if run.started_at is None else max(0, (run.decided_at or now) - run.started_at)
