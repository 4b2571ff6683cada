"""Metrics of a period, actual or replayed, and how reliable their comparison is."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from math import ceil, floor
from statistics import median_low
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import fields

from mergeyard.domain.config import Mode
from mergeyard.simulation.history import ArrivalIndex, ConfigChange, EndState, History
from mergeyard.simulation.outcomes import OutcomeModel
from mergeyard.simulation.replay import ReplayedOutcome, ReplayResult


class PeriodMetrics(Struct, frozen=True, kw_only=True):
    merged: int
    failed: int
    removed: int
    median_ms: int | None
    """Milliseconds from admission to merge of merged pull requests: the median; the next field is the 95th
    percentile."""
    p95_ms: int | None
    runs: int
    runs_per_merge: float | None
    ci_ms: int
    """Milliseconds of CI time, from the start of each run to its end."""


class MetricsSpread(Struct, frozen=True):
    """Median, minimum and maximum over several draws, per metric."""

    median: PeriodMetrics
    minimum: PeriodMetrics
    maximum: PeriodMetrics


def compute_spread(draws: Sequence[PeriodMetrics]) -> MetricsSpread:
    return MetricsSpread(_combine(draws, median_low), _combine(draws, min), _combine(draws, max))


def compute_actual_metrics(history: History) -> PeriodMetrics:
    outcomes = [
        ReplayedOutcome(outcome.admitted_at, outcome.ended_at, outcome.end_state)
        for outcome in history.arrivals
        if outcome.is_counted
    ]
    durations = [run.duration_ms for run in history.runs if history.is_counted_run(run.tested_arrivals, run.started_at)]
    return _compute_metrics(outcomes, durations)


def compute_replayed_metrics(history: History, replay: ReplayResult) -> PeriodMetrics:
    outcomes = [outcome for index, outcome in replay.outcomes.items() if history.arrivals[index].is_counted]
    counted_runs = (run for run in replay.runs if history.is_counted_run(run.tested_arrivals, run.started_at))
    return _compute_metrics(outcomes, [run.ended_at - run.started_at for run in counted_runs])


def _compute_metrics(outcomes: Iterable[ReplayedOutcome], durations: Sequence[int]) -> PeriodMetrics:
    concluded = tuple(outcomes)
    counts = Counter(outcome.end_state for outcome in concluded)
    merge_times = sorted(
        outcome.ended_at - outcome.submitted_at for outcome in concluded if outcome.end_state is EndState.MERGED
    )
    return PeriodMetrics(
        merged=counts[EndState.MERGED],
        failed=counts[EndState.FAILED],
        removed=counts[EndState.REMOVED] + counts[EndState.UNTESTED],
        median_ms=round(percentile(merge_times, 0.50)) if merge_times else None,
        p95_ms=round(percentile(merge_times, 0.95)) if merge_times else None,
        runs=len(durations),
        runs_per_merge=len(durations) / counts[EndState.MERGED] if counts[EndState.MERGED] else None,
        ci_ms=sum(durations),
    )


def _combine(draws: Sequence[PeriodMetrics], combine: Callable[[Sequence[float]], float]) -> PeriodMetrics:
    """None if nothing merged in one of the draws."""
    values = {field.name: [getattr(draw, field.name) for draw in draws] for field in fields(PeriodMetrics)}
    return convert(
        {name: None if None in outcome else combine(outcome) for name, outcome in values.items()}, PeriodMetrics
    )


def percentile(ordered: Sequence[int], quantile: float) -> float:
    """Linear interpolation between the two nearest values."""
    if not ordered:
        return 0.0
    position = quantile * (len(ordered) - 1)
    below, above = ordered[floor(position)], ordered[ceil(position)]
    return below + (above - below) * (position - floor(position))


class AssumptionKind(StrEnum):
    OUTCOMES = "outcomes"
    CONFLICTS = "conflicts"
    LENGTHS = "lengths"
    TARGETS = "targets"
    RUNS = "runs"
    BASES = "bases"
    SETTINGS = "settings"


ASSUMPTION_MESSAGES = {
    AssumptionKind.OUTCOMES: "pull requests left before a test run decided them: the replay assumes that they pass.",
    AssumptionKind.CONFLICTS: "pull requests conflict with one of several others: the replay assumes the latest.",
    AssumptionKind.LENGTHS: "pull requests have no completed test run: the replay assumes the typical duration.",
    AssumptionKind.TARGETS: "pull requests have no impacted targets: the replay assumes that they impact ALL.",
    AssumptionKind.RUNS: "test runs are not recorded in this form: the replay derives their results from the outcomes.",
    AssumptionKind.BASES: "test runs failed on the target branch itself: the replay assumes that it passes.",
    AssumptionKind.SETTINGS: "changes of settings cannot be read: the replay assumes the later values before them too.",
}


class Assumption(Struct, frozen=True):
    about: AssumptionKind
    count: int
    of: int
    message: str


class UnknownFacts(Struct, frozen=True):
    """The counted arrivals about which something is assumed."""

    arrivals: Mapping[AssumptionKind, Set[ArrivalIndex]]
    counted: int

    @property
    def share(self) -> float:
        return len(set[ArrivalIndex]().union(*self.arrivals.values())) / (self.counted or 1)


def find_unknown_facts(history: History, truth: OutcomeModel, settings: tuple[ConfigChange, ...]) -> UnknownFacts:
    counted = {
        index
        for index, arrival in enumerate(history.arrivals)
        if arrival.is_counted and arrival.end_state is not EndState.UNTESTED
    }
    uses_lanes = any(setting.config.mode is Mode.PARALLEL for setting in settings)
    without_targets = {index for index in counted if uses_lanes and history.arrivals[index].impacted_targets is None}
    arrivals = {
        AssumptionKind.OUTCOMES: truth.undetermined & counted,
        AssumptionKind.CONFLICTS: truth.rules.ambiguous & counted,
        AssumptionKind.LENGTHS: truth.durations.unknown & counted,
        AssumptionKind.TARGETS: without_targets,
    }
    return UnknownFacts(arrivals, len(counted))


def list_assumptions(
    history: History, truth: OutcomeModel, unknown_facts: UnknownFacts, proposed: ReplayResult | None
) -> tuple[Assumption, ...]:
    replayed_runs = () if proposed is None else proposed.runs
    runs = [run for run in replayed_runs if history.is_counted_run(run.tested_arrivals, run.started_at)]
    unreadable = history.unreadable_changes
    counts = {kind: (len(arrivals), unknown_facts.counted) for kind, arrivals in unknown_facts.arrivals.items()} | {
        AssumptionKind.RUNS: (sum(not run.is_recorded for run in runs), len(runs)),
        AssumptionKind.BASES: (truth.broken_base_count, sum(run.is_decided for run in history.runs)),
        AssumptionKind.SETTINGS: (unreadable, unreadable + len(history.config_changes) - 1),
    }
    return tuple(
        Assumption(kind, count, total, f"{count:,} of {total:,} {ASSUMPTION_MESSAGES[kind]}")
        for kind, (count, total) in counts.items()
        if count
    )


MIN_MERGES, MERGES_FOR_CONFIDENCE = 20, 100
"""Below the first number of merges a percentile is random, above the second it is stable."""
SMALL_SHARE, LARGE_SHARE = 0.10, 0.25
"""Limits for relative errors and for the share of assumptions."""
HIGH_FLAKE_RATE = 0.05
METRIC_NAMES = {
    "median_ms": "the median time to merge",
    "p95_ms": "the 95 % time to merge",
    "runs": "the number of runs",
    "merged": "the number of merges",
}


class Confidence(StrEnum):
    """Best first."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


CONFIDENCE_ORDER = list(Confidence)


class Caveat(Struct, frozen=True):
    confidence: Confidence
    message: str


class ReplayFindings(Struct, frozen=True, kw_only=True):
    """Everything the confidence is derived from."""

    history: History
    outcome_model: OutcomeModel
    unknown_facts: UnknownFacts
    actual: PeriodMetrics
    baseline: PeriodMetrics | None
    proposed: MetricsSpread | None
    unrecorded_share: float
    """The share of replayed runs that are not recorded."""
    proposed_settings: Mapping[str, Any]


def list_caveats(findings: ReplayFindings) -> list[Caveat]:
    """Most severe first."""
    return sorted(_find_caveats(findings), key=lambda caveat: -CONFIDENCE_ORDER.index(caveat.confidence))


def overall_confidence(caveats: list[Caveat]) -> Confidence:
    return max((caveat.confidence for caveat in caveats), key=CONFIDENCE_ORDER.index, default=Confidence.HIGH)


def compute_replay_error(really: PeriodMetrics, replayed: PeriodMetrics) -> tuple[float, str]:
    """The largest relative error of replaying the actual settings, and the metric it occurs in."""
    values = [(getattr(really, field), getattr(replayed, field) or 0, name) for field, name in METRIC_NAMES.items()]
    return max(((abs(after - actual) / actual, name) for actual, after, name in values if actual), default=(0.0, ""))


def _find_widest(spread: MetricsSpread) -> tuple[float, str]:
    ranges = [
        (getattr(spread.minimum, field), getattr(spread.maximum, field), METRIC_NAMES[field])
        for field in ("median_ms", "p95_ms", "runs")
    ]
    return max((((most - least) / most, name) for least, most, name in ranges if most), default=(0.0, ""))


def _find_caveats(findings: ReplayFindings) -> Iterator[Caveat]:
    yield from _check_merge_count(findings.actual.merged)
    yield from _check_replays(findings)
    share, model = findings.unknown_facts.share, findings.outcome_model
    message = f"The history of {round(share * 100)} % of the pull requests is incomplete, so assumptions are made."
    yield from _grade(share, SMALL_SHARE, LARGE_SHARE, message)
    if model.flake_rate >= HIGH_FLAKE_RATE and findings.unrecorded_share > 0.5:
        message = f"{round(model.flake_rate * 100)} % of the test runs failed without a cause, and it is unknown which"
        yield Caveat(Confidence.MEDIUM, f"{message} replayed ones would fail. Fix flaky tests first.")
    if model.broken_base_count:
        times = _format_count(model.broken_base_count, "time")
        yield Caveat(Confidence.MEDIUM, f"The target branch itself failed its tests {times}, which is not replayed.")
    if findings.history.unreadable_changes:
        message = "Settings were changed in this period, and not all earlier values can be read."
        yield Caveat(Confidence.MEDIUM, message)
    for name in findings.proposed_settings:
        if len({getattr(change.config, name) for change in findings.history.config_changes}) > 1:
            setting = name.replace("_", " ").capitalize()
            message = f"{setting} was changed in this period, so the comparison mixes values"
            yield Caveat(Confidence.MEDIUM, f"{message}: choose a period without that.")


def _check_merge_count(merged: int) -> Iterator[Caveat]:
    count = f"Only {_format_count(merged, 'pull request')}" if merged else "Nothing"
    description = f"{count} merged in this period"
    if merged < MIN_MERGES:
        message = f"{description}: choose a longer period, or try again when {MIN_MERGES} have merged."
        yield Caveat(Confidence.LOW, message)
    elif merged < MERGES_FOR_CONFIDENCE:
        message = f"{description}: {MERGES_FOR_CONFIDENCE} are needed for stable results. Choose a longer period."
        yield Caveat(Confidence.MEDIUM, message)


def _check_replays(findings: ReplayFindings) -> Iterator[Caveat]:
    if findings.baseline is None:
        message = "The replay does not end even with the actual settings: choose a shorter period."
        yield Caveat(Confidence.LOW, message)
    else:
        error, name = compute_replay_error(findings.actual, findings.baseline)
        message = f"Replayed with the actual settings, {name} is {round(error * 100)} % off: smaller differences mean"
        yield from _grade(error, SMALL_SHARE, LARGE_SHARE, f"{message} nothing.")
    if findings.proposed is not None:
        width, name = _find_widest(findings.proposed)
        message = f"The result depends on chance: over several draws, {name} differs by {round(width * 100)} %."
        yield from _grade(width, LARGE_SHARE, 2 * LARGE_SHARE, message)
    elif findings.baseline is not None:
        yield Caveat(Confidence.LOW, "The replay does not end with the change: the queue would not keep up.")


def _grade(value: float, medium_above: float, low_above: float, message: str) -> Iterator[Caveat]:
    if value > medium_above:
        yield Caveat(Confidence.LOW if value > low_above else Confidence.MEDIUM, message)


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
