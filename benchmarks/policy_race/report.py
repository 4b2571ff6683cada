"""Metrics of a race: turnaround compared with Oracle, and cost."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import fields

from benchmarks.policy_race.race import RaceResult
from benchmarks.policy_race.workload import Trace
from mergeyard.domain.timestamps import HOUR, MINUTE
from mergeyard.simulation.report import percentile


class RaceMetrics(Struct, frozen=True, kw_only=True):
    p50_over_oracle: float
    p95_over_oracle: float
    p99_over_oracle: float
    runs_per_merge: float
    merges_per_hour: float
    """Until the last change is decided."""
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
    """Merged although bad or in conflict; a correct policy has none."""


def list_turnarounds(trace: Trace, record: RaceResult) -> list[int]:
    """Times from submission to decision, shortest first."""
    return sorted(record.decided_at[change.number] - change.arrived_at for change in trace.changes)


def compute_metrics(trace: Trace, record: RaceResult, oracle: RaceResult) -> RaceMetrics:
    turnaround_times, oracle_times = list_turnarounds(trace, record), list_turnarounds(trace, oracle)
    p50, p95, p99 = (percentile(turnaround_times, quantile) for quantile in (0.50, 0.95, 0.99))
    merges = len(record.merged)
    return RaceMetrics(
        p50_over_oracle=safe_ratio(p50, percentile(oracle_times, 0.50)),
        p95_over_oracle=safe_ratio(p95, percentile(oracle_times, 0.95)),
        p99_over_oracle=safe_ratio(p99, percentile(oracle_times, 0.99)),
        runs_per_merge=safe_ratio(record.runs, merges),
        merges_per_hour=safe_ratio(merges * HOUR, record.ended_at),
        innocent_ejections=len(record.wrongly_failed),
        wasted_runs=record.wasted_runs,
        longest_wait_minutes=percentile(turnaround_times, 1) / MINUTE,
        p50_minutes=p50 / MINUTE,
        p95_minutes=p95 / MINUTE,
        p99_minutes=p99 / MINUTE,
        changes=len(trace.changes),
        merges=merges,
        runs=record.runs,
        broken_merges=len(record.wrongly_merged),
    )


def safe_ratio(value: float, divisor: float) -> float:
    return value / divisor if divisor else 0.0


class MetricRange(Struct, frozen=True):
    mean: float
    minimum: float
    maximum: float


def compute_range(values: Sequence[float]) -> MetricRange:
    return MetricRange(sum(values) / len(values), min(values), max(values))


def summarize_seeds(seeds: Sequence[RaceMetrics]) -> dict[str, MetricRange]:
    """By metric name."""
    names = [field.name for field in fields(RaceMetrics)]
    return {name: compute_range([getattr(metrics, name) for metrics in seeds]) for name in names}


def to_json_members(ranges: dict[str, MetricRange]) -> dict[str, float]:
    """The JSON members: the mean under the metric's name, and `_min` and `_max`."""
    members = dict[str, float]()
    for name, values in ranges.items():
        members |= {name: values.mean, f"{name}_min": values.minimum, f"{name}_max": values.maximum}
    return {name: round(value, 4) for name, value in members.items()}
