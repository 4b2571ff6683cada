"""The figures of a race: how long changes waited, how that compares with Oracle, and what it cost."""

from collections.abc import Sequence
from math import ceil, floor

from msgspec import Struct

from mergeyard.domain.instants import HOUR, MINUTE
from mergeyard.sim.racing.race import Record
from mergeyard.sim.racing.trace import Trace


class Figures(Struct, frozen=True, kw_only=True):
    p50_over_oracle: float
    p95_over_oracle: float
    p99_over_oracle: float
    runs_per_merge: float
    merges_per_hour: float
    """Until the last one is decided."""
    innocent_ejections: float
    wasted_runs: float
    longest_wait_minutes: float
    p50_minutes: float
    p95_minutes: float
    p99_minutes: float
    changes: float
    merges: float
    runs: float
    broken_merges: float
    """Merged, though bad or in conflict: a policy that has any is no queue."""


def turnarounds(trace: Trace, record: Record) -> list[int]:
    """From submission to decision, the shortest first."""
    return sorted(record.decided_at[change.number] - change.at for change in trace.changes)


def figures(trace: Trace, record: Record, oracle: Record) -> Figures:
    waits, least = turnarounds(trace, record), turnarounds(trace, oracle)
    p50, p95, p99 = (percentile(waits, share) for share in (0.50, 0.95, 0.99))
    merges = len(record.merged)
    return Figures(
        p50_over_oracle=ratio(p50, percentile(least, 0.50)),
        p95_over_oracle=ratio(p95, percentile(least, 0.95)),
        p99_over_oracle=ratio(p99, percentile(least, 0.99)),
        runs_per_merge=ratio(record.runs, merges),
        merges_per_hour=ratio(merges * HOUR, record.ended_at),
        innocent_ejections=len(record.innocent),
        wasted_runs=record.wasted,
        longest_wait_minutes=percentile(waits, 1) / MINUTE,
        p50_minutes=p50 / MINUTE,
        p95_minutes=p95 / MINUTE,
        p99_minutes=p99 / MINUTE,
        changes=len(trace.changes),
        merges=merges,
        runs=record.runs,
        broken_merges=len(record.broken),
    )


def percentile(ordered: Sequence[int], share: float) -> float:
    """Between two of them, in proportion."""
    if not ordered:
        return 0.0
    place = share * (len(ordered) - 1)
    below, above = ordered[floor(place)], ordered[ceil(place)]
    return below + (above - below) * (place - floor(place))


def ratio(number: float, of: float) -> float:
    return number / of if of else 0.0
