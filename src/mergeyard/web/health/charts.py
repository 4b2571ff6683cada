"""What each chart shows: its finding as a title, its lines or bars, and the same in a table."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from mergeyard.domain.instants import DAY, HOUR, MINUTE, SECOND
from mergeyard.service.history.past import Past
from mergeyard.service.history.summing import Summary, sum_up
from mergeyard.web.health import numbers
from mergeyard.web.health.numbers import Writing
from mergeyard.web.health.periods import Period, name_of
from mergeyard.web.words import count

UNITS = (("days", DAY), ("hours", HOUR), ("minutes", MINUTE), ("seconds", SECOND))
NOTHING = sum_up(Past())


class Series(Struct, frozen=True, kw_only=True):
    label: str
    tone: str
    """Which colour of the style sheet it has."""
    values: tuple[float | None, ...]
    cells: tuple[str, ...]


class Chart(Struct, frozen=True, kw_only=True):
    name: str
    finding: str
    note: str
    unit: str
    form: str
    """How it is drawn: `lines`, `bars` side by side, or a `stack` of them."""
    series: tuple[Series, ...]


class Moment(Struct, frozen=True):
    """One hour or day of a chart."""

    name: str
    start: int
    """Seconds, as charts count."""
    quiet: bool


class Drawn(Struct, frozen=True):
    moments: tuple[Moment, ...]
    charts: tuple[Chart, ...]


def draw(period: Period, parts: Sequence[Summary], whole: Summary) -> Drawn:
    moments = tuple(
        Moment(name_of(start, period.by), start // SECOND, part == NOTHING)
        for start, part in zip(period.starts, parts, strict=True)
    )
    charts = tuple(make(parts, whole) for make in (_waits, _throughput, _efforts, _repeats, _minutes))
    return Drawn(moments, charts)


def _waits(parts: Sequence[Summary], whole: Summary) -> Chart:
    unit, size = _unit([part.slow for part in parts])
    finding = "Nothing merged, so nobody can tell how long it takes"
    if whole.median is not None:
        finding = f"Half merged within {numbers.time(whole.median)}, 95 % within {numbers.time(whole.slow)}"
    return Chart(
        name="waits",
        finding=finding,
        note="Time from admission to the merge, of pull requests that merged",
        unit=unit,
        form="lines",
        series=(
            _series("Half within", "median", parts, lambda part: part.median, numbers.time, size),
            _series("95 % within", "slow", parts, lambda part: part.slow, numbers.time, size),
        ),
    )


def _throughput(parts: Sequence[Summary], whole: Summary) -> Chart:
    return Chart(
        name="throughput",
        finding=f"{whole.merged:,} merged, {whole.failed:,} failed, {whole.cancelled:,} cancelled",
        note="Pull requests that left the queue, by how they left it",
        unit="pull requests",
        form="stack",
        series=(
            _series("Merged", "merged", parts, lambda part: part.merged, numbers.count),
            _series("Failed", "failed", parts, lambda part: part.failed, numbers.count),
            _series("Cancelled", "cancelled", parts, lambda part: part.cancelled, numbers.count),
        ),
    )


def _efforts(parts: Sequence[Summary], whole: Summary) -> Chart:
    finding = f"{count(whole.runs, 'run')}, and nothing merged"
    if whole.runs_per_merged is not None:
        finding = f"{numbers.ratio(whole.runs_per_merged)} runs for each pull request that merged"
    return Chart(
        name="efforts",
        finding=finding,
        note="Runs that ended, divided by pull requests that merged; batches bring it below 1",
        unit="runs per merged pull request",
        form="lines",
        series=(_series("Runs per merged", "runs", parts, lambda part: part.runs_per_merged, numbers.ratio),),
    )


def _repeats(parts: Sequence[Summary], whole: Summary) -> Chart:
    searched = (
        f"{count(whole.bisection_runs, 'bisection run')} for {count(whole.red_batches, 'red batch', 'red batches')}"
    )
    finding = f"{count(whole.restarts, 'restart')}, {searched}"
    if not (whole.restarts or whole.bisection_runs or whole.red_batches):
        finding = "No restart, no red batch"
    return Chart(
        name="repeats",
        finding=finding,
        note="A restart is a test that was given up for another one; bisection runs search red batches",
        unit="how often",
        form="bars",
        series=(
            _series("Restarts", "restarts", parts, lambda part: part.restarts, numbers.count),
            _series("Bisection runs", "bisections", parts, lambda part: part.bisection_runs, numbers.count),
        ),
    )


def _minutes(parts: Sequence[Summary], whole: Summary) -> Chart:
    saved = f"batching saved {numbers.minutes(whole.saved)}"
    if whole.saved < 0:
        saved = f"batching cost {numbers.minutes(-whole.saved)} more than it saved"
    return Chart(
        name="minutes",
        finding=f"{numbers.minutes(whole.spent)} CI minutes spent, {saved}",
        note="A run counts once, however many machines your CI gives it",
        unit="CI minutes",
        form="bars",
        series=(
            _series("Spent", "spent", parts, lambda part: part.spent, numbers.minutes, MINUTE),
            _series("Saved", "saved", parts, lambda part: part.saved, numbers.minutes, MINUTE),
        ),
    )


def _series(
    label: str,
    tone: str,
    parts: Sequence[Summary],
    what: Callable[[Summary], float | None],
    written: Writing,
    size: int = 1,
) -> Series:
    values = tuple(map(what, parts))
    drawn = tuple(None if value is None else round(value / size, 3) for value in values)
    return Series(label=label, tone=tone, values=drawn, cells=tuple(map(written, values)))


def _unit(milliseconds: Sequence[int | None]) -> tuple[str, int]:
    """The largest one that the longest of them holds twice."""
    longest = max((time for time in milliseconds if time is not None), default=0)
    return next((unit for unit in UNITS if longest >= 2 * unit[1]), UNITS[-1])
