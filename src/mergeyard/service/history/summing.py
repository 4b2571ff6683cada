"""Sums a time up in a few numbers: the same ones for an hour, a day and the whole of it."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.service.history import costs
from mergeyard.service.history.past import Past, PastRun, is_restart


class Summary(Struct, frozen=True, kw_only=True):
    merged: int
    failed: int
    cancelled: int
    median: int | None
    """Milliseconds in the queue, of those that merged; so is the next."""
    slow: int | None
    runs: int
    restarts: int
    bisection_runs: int
    red_batches: int
    spent: int
    """Milliseconds of CI; so is the next."""
    saved: int

    @property
    def success(self) -> float | None:
        judged = self.merged + self.failed
        return self.merged / judged if judged else None

    @property
    def runs_per_merged(self) -> float | None:
        return self.runs / self.merged if self.merged else None


def sum_up(past: Past) -> Summary:
    ends = Counter(figure.to for figure in past.figures)
    times = sorted(each.in_queue for each in past.figures if each.to == PrState.MERGED and each.in_queue is not None)
    return Summary(
        merged=ends[PrState.MERGED],
        failed=ends[PrState.FAILED],
        cancelled=ends[PrState.CANCELLED],
        median=quantile(times, 0.5),
        slow=quantile(times, 0.95),
        runs=len(past.runs),
        restarts=sum(map(is_restart, past.figures)),
        bisection_runs=sum(run.kind is RunKind.BISECTION for run in past.runs),
        red_batches=_red_batches(past.runs),
        spent=costs.spent(past.runs),
        saved=costs.saved(past.runs),
    )


def quantile(ordered: Sequence[int], share: float) -> int | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None


def _red_batches(runs: Sequence[PastRun]) -> int:
    """One that is red again when it is run again is still one."""
    return len({(run.queue, run.stack) for run in runs if run.batched and run.status is RunStatus.FAILED})
