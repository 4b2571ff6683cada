"""What is remembered of a time: what happened to pull requests, and the runs that were decided in it."""

from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct

from mergeyard.domain.ids import QueueId, RunId
from mergeyard.domain.instants import Instant
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import TERMINAL, PrState, RunStatus
from mergeyard.ports.store import Figure


class PastRun(Struct, frozen=True, kw_only=True, gc=False):
    """Of a run only what is counted: there may be a hundred thousand of them, so the collector need not see them."""

    queue: QueueId
    id: RunId
    kind: RunKind
    in_line: bool
    """It stood in the line, though it may have begun in a bisection."""
    stack: bytes
    """The same for the same pull requests, with the same heads, upon the same base."""
    tests: int
    status: RunStatus
    started_at: Instant
    decided_at: Instant
    red: tuple[str, ...] = ()
    """The checks that failed, and then those that passed."""
    green: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        return self.decided_at - self.started_at

    @property
    def batched(self) -> bool:
        return self.in_line and self.tests > 1


def is_counted(figure: Figure) -> bool:
    return figure.to in TERMINAL or is_restart(figure)


def is_restart(figure: Figure) -> bool:
    return figure.source == PrState.TESTING and figure.to == PrState.PENDING


class Past(Struct, frozen=True):
    figures: Sequence[Figure] = ()
    """Ends of stays, and restarts: nothing else is counted."""
    runs: Sequence[PastRun] = ()

    @property
    def empty(self) -> bool:
        return not self.figures and not self.runs

    def between(self, since: Instant, until: Instant) -> "Past":
        return Past(
            [figure for figure in self.figures if since <= figure.at < until],
            [run for run in self.runs if since <= run.decided_at < until],
        )

    def parted(self, starts: Sequence[Instant]) -> "list[Past]":
        """A part for each of these starts, up to the next one; what was before the first is in none of them."""
        figures, runs = [list[Figure]() for _ in starts], [list[PastRun]() for _ in starts]
        for figure in self.figures:
            if figure.at >= starts[0]:
                figures[bisect_right(starts, figure.at) - 1].append(figure)
        for run in self.runs:
            if run.decided_at >= starts[0]:
                runs[bisect_right(starts, run.decided_at) - 1].append(run)
        return [Past(*part) for part in zip(figures, runs, strict=True)]
