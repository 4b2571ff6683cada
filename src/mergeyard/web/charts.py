"""Charts of the health page: periods, series, titles, and the same numbers as table cells."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import Enum, StrEnum, auto
from itertools import pairwise

from msgspec import Struct

from mergeyard.domain.states import REASON_MESSAGES, PullRequestState, Reason
from mergeyard.domain.timestamps import DAY, HOUR, MINUTE, SECOND, Instant, later
from mergeyard.service.analytics import PeriodRecords, ReasonCount, Summary, summarize
from mergeyard.web.formats import PULL_REQUEST_STATE_LABELS, format_duration, format_reason, pluralize


class Bar(Struct, frozen=True):
    state: str
    label: str
    message: str
    count: int
    percent: float
    """Of the longest bar."""


class BarChart(Struct, frozen=True):
    finding: str
    note: str
    bars: tuple[Bar, ...]


def chart_conclusion_reasons(whys: Sequence[ReasonCount]) -> BarChart:
    note = "Finished pull requests, by state and reason"
    labels = [f"{PULL_REQUEST_STATE_LABELS[why.state]}: {format_reason(why.reason)}" for why in whys]
    return BarChart(_describe_main_obstacle(whys), note, _build_bars(whys, labels))


def chart_restart_reasons(whys: Sequence[ReasonCount]) -> BarChart:
    finding = f"Most common restart: {_format_most_common(whys)}" if whys else "No restarts"
    note = "Tests that were abandoned and started again, by reason"
    labels = [format_reason(why.reason) for why in whys]
    return BarChart(finding, note, _build_bars(whys, [f"{label[:1].upper()}{label[1:]}" for label in labels]))


def _describe_main_obstacle(whys: Sequence[ReasonCount]) -> str:
    not_merged = [why for why in whys if why.state != PullRequestState.MERGED]
    if not_merged:
        return f"Most common reason for not merging: {_format_most_common(not_merged)}"
    return "Every finished pull request merged" if whys else "No pull request finished"


def _format_most_common(whys: Sequence[ReasonCount]) -> str:
    """The first reason is the most frequent one."""
    return f"{format_reason(whys[0].reason)} ({whys[0].count:,} of {sum(why.count for why in whys):,})"


def _build_bars(whys: Sequence[ReasonCount], labels: Sequence[str]) -> tuple[Bar, ...]:
    highest = max((why.count for why in whys), default=0)
    return tuple(
        Bar(why.state, label, _find_message(why.reason), why.count, round(100 * why.count / highest, 1))
        for why, label in zip(whys, labels, strict=True)
    )


def _find_message(reason: str) -> str:
    """Empty for a reason in an old journal entry that no longer exists."""
    return REASON_MESSAGES[Reason(reason)] if reason in REASON_MESSAGES else ""


NumberFormat = Callable[[float | None], str]
UNKNOWN_NUMBER = "–"


def format_count(number: float | None) -> str:
    return UNKNOWN_NUMBER if number is None else f"{round(number):,}"


def format_share(number: float | None) -> str:
    """Rounded down, so that 100 % means all."""
    return UNKNOWN_NUMBER if number is None else f"{int(number * 100)} %"


def format_ratio(number: float | None) -> str:
    return UNKNOWN_NUMBER if number is None else f"{number:,.2f}"


def format_minutes(milliseconds: float | None) -> str:
    """Never in hours or days: CI is billed by the minute."""
    return UNKNOWN_NUMBER if milliseconds is None else f"{round(milliseconds / MINUTE):,}"


class Goal(Enum):
    MORE = auto()
    LESS = auto()
    NEITHER = auto()


def compare(now: float, before: float, goal: Goal) -> tuple[str, str]:
    """The change in percent of the previous value, as a limit if it is too small or too large to be meaningful; and
    `better`, `worse`, or empty if the number has no goal."""
    percent = abs(now - before) / abs(before) * 100
    size = f"{percent:.0f} %" if 1 <= percent < 1000 else ("<1 %" if percent < 1 else ">10×")
    verdict = "better" if (now > before) == (goal is Goal.MORE) else "worse"
    return f"{'▲' if now > before else '▼'} {size}", "" if goal is Goal.NEITHER else verdict


class Division(StrEnum):
    HOUR = "hour"
    DAY = "day"

    @property
    def length_ms(self) -> int:
        return HOUR if self is Division.HOUR else DAY


class PeriodLength(Struct, frozen=True):
    """A length that the user can choose. `by` has the possible divisions; the first is the default."""

    name: str
    label: str
    length_ms: int
    by: tuple[Division, ...]


PERIOD_LENGTHS = {
    length.name: length
    for length in (
        PeriodLength("24h", "24 hours", DAY, (Division.HOUR,)),
        PeriodLength("7d", "7 days", 7 * DAY, (Division.DAY, Division.HOUR)),
        PeriodLength("30d", "30 days", 30 * DAY, (Division.DAY, Division.HOUR)),
        PeriodLength("90d", "90 days", 90 * DAY, (Division.DAY,)),
    )
}
DEFAULT_LENGTH = "7d"


class Period(Struct, frozen=True):
    """Ends now, and is exactly as long as its name says. `before` is the period of the same length before it."""

    length: PeriodLength
    by: Division
    since: Instant
    until: Instant

    @property
    def starts(self) -> tuple[Instant, ...]:
        """Of whole hours or days: the first began before the period, and the last is not over."""
        step = self.by.length_ms
        return tuple(map(Instant, range(self.since // step * step, self.until, step)))

    @property
    def before(self) -> tuple[Instant, Instant]:
        return later(self.since, -self.length.length_ms), later(self.until, -self.length.length_ms)


def parse_period(length: str, by: str, now: Instant) -> Period:
    """Unknown values of the query parameters select the default."""
    chosen_length = PERIOD_LENGTHS.get(length, PERIOD_LENGTHS[DEFAULT_LENGTH])
    chosen_by = Division(by) if by in chosen_length.by else chosen_length.by[0]
    until = later(now, 1)
    return Period(chosen_length, chosen_by, later(until, -chosen_length.length_ms), until)


def format_interval_start(start: Instant, by: Division) -> str:
    form = "%-d %b %H:%M" if by is Division.HOUR else "%a %-d %b"
    return datetime.fromtimestamp(start / 1000, UTC).strftime(form)


UNITS = (("days", DAY), ("hours", HOUR), ("minutes", MINUTE), ("seconds", SECOND))
EMPTY_SUMMARY = summarize(PeriodRecords())


class Series(Struct, frozen=True, kw_only=True):
    label: str
    tone: str
    """CSS class that gives the color."""
    values: tuple[float | None, ...]
    cells: tuple[str, ...]


class Chart(Struct, frozen=True, kw_only=True):
    name: str
    finding: str
    note: str
    unit: str
    form: str
    """`lines`, `bars` (side by side) or `stack` (stacked bars)."""
    series: tuple[Series, ...]


class ChartInterval(Struct, frozen=True):
    """One hour or day on the x axis."""

    name: str
    start: int
    """In seconds since the epoch, as uPlot expects."""
    is_empty: bool


class ChartData(Struct, frozen=True):
    moments: tuple[ChartInterval, ...]
    charts: tuple[Chart, ...]


def build_charts(period: Period, parts: Sequence[Summary], whole: Summary) -> ChartData:
    moments = tuple(
        ChartInterval(format_interval_start(start, period.by), start // SECOND, part == EMPTY_SUMMARY)
        for start, part in zip(period.starts, parts, strict=True)
    )
    builders = (_chart_time_in_queue, _chart_throughput, _chart_runs_per_merge, _chart_repeats, _chart_ci_minutes)
    return ChartData(moments, tuple(build(parts, whole) for build in builders))


def _chart_time_in_queue(parts: Sequence[Summary], whole: Summary) -> Chart:
    unit, size = _choose_unit([part.p95_ms for part in parts])
    finding = "No time in queue: nothing merged"
    if whole.median_ms is not None:
        finding = f"Median {format_duration(whole.median_ms)}, p95 {format_duration(whole.p95_ms)}"
    series = (
        _build_series("Median", "median", parts, lambda part: part.median_ms, format_duration, size),
        _build_series("p95", "slow", parts, lambda part: part.p95_ms, format_duration, size),
    )
    return Chart(
        name="waits",
        finding=finding,
        note="Time in queue of merged pull requests",
        unit=unit,
        form=_choose_form(series),
        series=series,
    )


def _chart_throughput(parts: Sequence[Summary], whole: Summary) -> Chart:
    return Chart(
        name="throughput",
        finding=f"{whole.merged:,} merged, {whole.failed:,} failed, {whole.cancelled:,} removed",
        note="Finished pull requests, by result",
        unit="pull requests",
        form="stack",
        series=(
            _build_series("Merged", "merged", parts, lambda part: part.merged, format_count),
            _build_series("Failed", "failed", parts, lambda part: part.failed, format_count),
            _build_series("Removed", "cancelled", parts, lambda part: part.cancelled, format_count),
        ),
    )


def _chart_runs_per_merge(parts: Sequence[Summary], whole: Summary) -> Chart:
    finding = f"{pluralize(whole.runs, 'run')}, and nothing merged"
    if whole.runs_per_merge is not None:
        finding = f"{format_ratio(whole.runs_per_merge)} runs per merge"
    series = (_build_series("Runs per merge", "runs", parts, lambda part: part.runs_per_merge, format_ratio),)
    return Chart(
        name="efforts",
        finding=finding,
        note="Runs that ended, divided by merged pull requests; batching brings it below 1",
        unit="runs per merge",
        form=_choose_form(series),
        series=series,
    )


def _chart_repeats(parts: Sequence[Summary], whole: Summary) -> Chart:
    failed_batches = pluralize(whole.failed_batches, "failed batch", "failed batches")
    bisections = f"{pluralize(whole.bisection_runs, 'bisection run')} for {failed_batches}"
    finding = f"{pluralize(whole.restarts, 'restart')}, {bisections}"
    if not (whole.restarts or whole.bisection_runs or whole.failed_batches):
        finding = "No restarts, no failed batches"
    return Chart(
        name="repeats",
        finding=finding,
        note="Restart: a test that was abandoned and started again. Bisection runs find culprits in failed batches",
        unit="count",
        form="bars",
        series=(
            _build_series("Restarts", "restarts", parts, lambda part: part.restarts, format_count),
            _build_series("Bisection runs", "bisections", parts, lambda part: part.bisection_runs, format_count),
        ),
    )


def _chart_ci_minutes(parts: Sequence[Summary], whole: Summary) -> Chart:
    saved = f"batching saved {format_minutes(whole.saved_ci_ms)}"
    if whole.saved_ci_ms < 0:
        saved = f"batching cost {format_minutes(-whole.saved_ci_ms)} extra"
    return Chart(
        name="minutes",
        finding=f"{format_minutes(whole.ci_ms)} CI minutes spent, {saved}",
        note="Wall-clock time of test runs; a run on several CI machines counts once",
        unit="CI minutes",
        form="bars",
        series=(
            _build_series("Spent", "spent", parts, lambda part: part.ci_ms, format_minutes, MINUTE),
            _build_series("Saved", "saved", parts, lambda part: part.saved_ci_ms, format_minutes, MINUTE),
        ),
    )


def _build_series(
    label: str,
    tone: str,
    parts: Sequence[Summary],
    get_value: Callable[[Summary], float | None],
    format_value: NumberFormat,
    unit_size: int = 1,
) -> Series:
    values = tuple(map(get_value, parts))
    scaled = tuple(None if value is None else round(value / unit_size, 3) for value in values)
    return Series(label=label, tone=tone, values=scaled, cells=tuple(map(format_value, values)))


def _choose_form(series: Sequence[Series]) -> str:
    """Lines need two neighboring values somewhere; a line through single values would be dots."""
    neighbors = (pair for each in series for pair in pairwise(each.values))
    return "lines" if any(None not in pair for pair in neighbors) else "bars"


def _choose_unit(milliseconds: Sequence[int | None]) -> tuple[str, int]:
    """The largest unit of which the longest time is at least two."""
    longest = max((time for time in milliseconds if time is not None), default=0)
    return next((unit for unit in UNITS if longest >= 2 * unit[1]), UNITS[-1])
