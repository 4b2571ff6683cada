"""Metrics of a period, actual or replayed, and how reliable their comparison is."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

    outcomes: frozenset[ArrivalIndex]
    conflicts: frozenset[ArrivalIndex]
    lengths: frozenset[ArrivalIndex]
    targets: frozenset[ArrivalIndex]
    counted: int

    @property
    def share(self) -> float:
        return len(self.outcomes | self.conflicts | self.lengths | self.targets) / (self.counted or 1)


def find_unknown_facts(history: History, truth: OutcomeModel, settings: tuple[ConfigChange, ...]) -> UnknownFacts:
    counted = frozenset(
        index
        for index, arrival in enumerate(history.arrivals)
        if arrival.is_counted and arrival.end_state is not EndState.UNTESTED
    )
    without_targets = frozenset(index for index in counted if history.arrivals[index].impacted_targets is None)
    uses_lanes = any(setting.config.mode is Mode.PARALLEL for setting in settings)
    return UnknownFacts(
        outcomes=truth.undetermined & counted,
        conflicts=truth.attribution.ambiguous & counted,
        lengths=truth.durations.unknown & counted,
        targets=without_targets if uses_lanes else frozenset(),
        counted=len(counted),
    )


def list_assumptions(
    history: History, truth: OutcomeModel, unknown_facts: UnknownFacts, proposed: ReplayResult | None
) -> tuple[Assumption, ...]:
    replayed_runs = () if proposed is None else proposed.runs
    runs = [run for run in replayed_runs if history.is_counted_run(run.tested_arrivals, run.started_at)]
    decided = sum(run.is_decided for run in history.runs)
    counts = {
        AssumptionKind.OUTCOMES: (len(unknown_facts.outcomes), unknown_facts.counted),
        AssumptionKind.CONFLICTS: (len(unknown_facts.conflicts), unknown_facts.counted),
        AssumptionKind.LENGTHS: (len(unknown_facts.lengths), unknown_facts.counted),
        AssumptionKind.TARGETS: (len(unknown_facts.targets), unknown_facts.counted),
        AssumptionKind.RUNS: (sum(not run.is_recorded for run in runs), len(runs)),
        AssumptionKind.BASES: (truth.broken_base_count, decided),
        AssumptionKind.SETTINGS: (
            history.unreadable_changes,
            history.unreadable_changes + len(history.config_changes) - 1,
        ),
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


class Confidence(StrEnum):
    """Best first."""

    WELL = "well"
    ROUGHLY = "roughly"
    HARDLY = "hardly"


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
    checks = (
        _check_merge_count,
        _check_convergence,
        _check_replay_error,
        _check_spread,
        _check_assumptions,
        _check_flakes,
        _check_broken_bases,
        _check_setting_changes,
    )
    caveats = [caveat for check in checks for caveat in check(findings)]
    return sorted(caveats, key=lambda caveat: -CONFIDENCE_ORDER.index(caveat.confidence))


def overall_confidence(caveats: list[Caveat]) -> Confidence:
    return max((caveat.confidence for caveat in caveats), key=CONFIDENCE_ORDER.index, default=Confidence.WELL)


def compute_replay_error(really: PeriodMetrics, replayed: PeriodMetrics) -> tuple[float, str]:
    """The largest relative error of replaying the actual settings, and the metric it occurs in."""
    pairs = {
        "the median time to merge": (really.median_ms, replayed.median_ms),
        "the 95 % time to merge": (really.p95_ms, replayed.p95_ms),
        "the number of runs": (really.runs, replayed.runs),
        "the number of merges": (really.merged, replayed.merged),
    }
    errors = [
        (abs((replayed_value or 0) - actual_value) / actual_value, name)
        for name, (actual_value, replayed_value) in pairs.items()
        if actual_value
    ]
    return max(errors, default=(0.0, ""))


def _check_merge_count(findings: ReplayFindings) -> Iterator[Caveat]:
    merged = findings.actual.merged
    description = (
        f"Only {_format_count(merged, 'pull request')} merged in this period"
        if merged
        else "Nothing merged in this period"
    )
    if merged < MIN_MERGES:
        yield Caveat(
            Confidence.HARDLY, f"{description}: choose a longer period, or try again when {MIN_MERGES} have merged."
        )
    elif merged < MERGES_FOR_CONFIDENCE:
        yield Caveat(
            Confidence.ROUGHLY,
            f"{description}: {MERGES_FOR_CONFIDENCE} are needed for stable results. Choose a longer period.",
        )


def _check_convergence(findings: ReplayFindings) -> Iterator[Caveat]:
    if findings.baseline is None:
        yield Caveat(
            Confidence.HARDLY, "The replay does not end even with the actual settings: choose a shorter period."
        )
    elif findings.proposed is None:
        yield Caveat(Confidence.HARDLY, "The replay does not end with the change: the queue would not keep up.")


def _check_replay_error(findings: ReplayFindings) -> Iterator[Caveat]:
    if findings.baseline is None:
        return
    error, name = compute_replay_error(findings.actual, findings.baseline)
    if error > SMALL_SHARE:
        message = f"Replayed with the actual settings, {name} is {round(error * 100)} % off: smaller differences mean"
        yield Caveat(Confidence.HARDLY if error > LARGE_SHARE else Confidence.ROUGHLY, f"{message} nothing.")


def _check_spread(findings: ReplayFindings) -> Iterator[Caveat]:
    if findings.proposed is None:
        return
    width, name = _find_widest(findings.proposed)
    if width > LARGE_SHARE:
        message = f"The result depends on chance: over several draws, {name} differs by {round(width * 100)} %."
        yield Caveat(Confidence.HARDLY if width > 2 * LARGE_SHARE else Confidence.ROUGHLY, message)


def _find_widest(spread: MetricsSpread) -> tuple[float, str]:
    metrics = {
        "the median time to merge": "median_ms",
        "the 95 % time to merge": "p95_ms",
        "the number of runs": "runs",
    }
    ranges = [(getattr(spread.minimum, field), getattr(spread.maximum, field), name) for name, field in metrics.items()]
    return max((((most - least) / most, name) for least, most, name in ranges if most), default=(0.0, ""))


def _check_assumptions(findings: ReplayFindings) -> Iterator[Caveat]:
    share = findings.unknown_facts.share
    if share > SMALL_SHARE:
        message = f"The history of {round(share * 100)} % of the pull requests is incomplete, so assumptions are made."
        yield Caveat(Confidence.HARDLY if share > LARGE_SHARE else Confidence.ROUGHLY, message)


def _check_flakes(findings: ReplayFindings) -> Iterator[Caveat]:
    if findings.outcome_model.flake_rate >= HIGH_FLAKE_RATE and findings.unrecorded_share > 0.5:
        flaky = round(findings.outcome_model.flake_rate * 100)
        message = f"{flaky} % of the test runs failed without a cause, and it is unknown which"
        yield Caveat(Confidence.ROUGHLY, f"{message} replayed ones would fail. Fix flaky tests first.")


def _check_broken_bases(findings: ReplayFindings) -> Iterator[Caveat]:
    if findings.outcome_model.broken_base_count:
        times = _format_count(findings.outcome_model.broken_base_count, "time")
        yield Caveat(Confidence.ROUGHLY, f"The target branch itself failed its tests {times}, which is not replayed.")


def _check_setting_changes(findings: ReplayFindings) -> Iterator[Caveat]:
    if findings.history.unreadable_changes:
        yield Caveat(
            Confidence.ROUGHLY, "Settings were changed in this period, and not all earlier values can be read."
        )
    configs = [setting.config for setting in findings.history.config_changes]
    for name in findings.proposed_settings:
        if len({getattr(config, name) for config in configs}) > 1:
            message = (
                f"{name.replace('_', ' ').capitalize()} was changed in this period, so the comparison mixes values"
            )
            yield Caveat(Confidence.ROUGHLY, f"{message}: choose a period without that.")


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
