"""The health page of one queue, or of all queues the user can see, over a chosen period."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlencode

from msgspec import Struct
from starlette.responses import Response

from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.domain.timestamps import DAY, HOUR, MINUTE, Instant, later
from mergeyard.service import analytics
from mergeyard.service.analytics import AnalyticsReader, FlakyCheck, PeriodRecords, Summary, summarize
from mergeyard.service.forecasts import EstimateAccuracy
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.service import Service
from mergeyard.service.submission_queries import StateFilter
from mergeyard.web import charts
from mergeyard.web.charts import BarChart, ChartData, Goal, NumberFormat
from mergeyard.web.formats import format_duration
from mergeyard.web.pull_request_list import format_exact_time, pull_requests_url
from mergeyard.web.rendering import PageRequest, TimedCache


class Headline(Struct, frozen=True, kw_only=True):
    name: str
    value: str
    before: str
    change: str = ""
    verdict: str = ""
    """`better`, `worse`, or empty if the number has no goal."""


HEADLINES: dict[str, tuple[Callable[[Summary], float | None], NumberFormat, Goal]] = {
    "Merged": (lambda summary: summary.merged, charts.format_count, Goal.MORE),
    "Success rate": (lambda summary: summary.success_rate, charts.format_share, Goal.MORE),
    "Median time to merge": (lambda summary: summary.median_ms, format_duration, Goal.LESS),
    "p95 time to merge": (lambda summary: summary.p95_ms, format_duration, Goal.LESS),
    "Runs per merge": (lambda summary: summary.runs_per_merge, charts.format_ratio, Goal.LESS),
    "CI minutes spent": (lambda summary: summary.ci_ms, charts.format_minutes, Goal.NEITHER),
    "CI minutes saved": (lambda summary: summary.saved_ci_ms, charts.format_minutes, Goal.MORE),
}


def build_headlines(now: Summary, before: Summary | None, gap: str = "") -> list[Headline]:
    """`before` is None without data of the previous period. `gap` says how much of it has data, if not all: then the
    numbers are not compared, because they belong to periods of different lengths."""
    return [
        _build_headline(name, get_value(now), None if before is None else get_value(before), gap, format_value, goal)
        for name, (get_value, format_value, goal) in HEADLINES.items()
    ]


def _build_headline(
    name: str, now: float | None, before: float | None, gap: str, format_value: NumberFormat, goal: Goal
) -> Headline:
    value = format_value(now)
    was = "no earlier data" if before is None else f"was {format_value(before)}"
    if gap and before is not None:
        return Headline(name=name, value=value, before=f"{was} ({gap})")
    change, verdict = "", ""
    if now is not None and before:
        change, verdict = charts.compare(now, before, goal) if value != format_value(before) else ("no change", "")
    return Headline(name=name, value=value, before=was, change=change, verdict=verdict)


MIN_MERGES = 20
"""With fewer merges, a single one would change the shares by more than 5 percentage points."""


class Estimates(Struct, frozen=True):
    finding: str
    note: str


def evaluate_estimates(held: EstimateAccuracy) -> Estimates:
    if not held.merged:
        return Estimates("No estimates to evaluate yet", "No pull request with an estimate has merged yet.")
    late = f"{held.by_p90:,} of {held.merged:,} merged within the p90 estimate"
    if held.merged < MIN_MERGES:
        counts = f"So far {late}, and {held.by_median:,} within the p50 estimate."
        return Estimates("Too few merges to evaluate the estimates", counts)
    p90, p50 = (charts.format_share(by / held.merged) for by in (held.by_p90, held.by_median))
    return Estimates(late, f"That is {p90} (target: 90 %). {p50} merged within the p50 estimate (target: 50 %).")


class HealthView(Struct, frozen=True, kw_only=True):
    headlines: Sequence[Headline]
    charts: ChartData
    conclusions: BarChart
    restarts: BarChart
    flaky_checks: Sequence[FlakyCheck]


HealthCacheKey = tuple[frozenset[QueueId], str, charts.Division]
"""Queues, length of the period, division. The current time is not part of it: a page can be a minute old."""
CachedHealth = tuple[charts.Period, HealthView | None]
"""None if nothing happened in the period."""


class HealthPage:
    def __init__(self, service: Service) -> None:
        self._histories = AnalyticsReader(service.store)
        self._cache = TimedCache[HealthCacheKey, CachedHealth](service.clock, MINUTE)

    async def show_all(self, page: PageRequest) -> Response:
        return await self._render(page, await page.service.registry.list_visible(page.user.token), None)

    async def show(self, page: PageRequest) -> Response:
        key = page.resolve_queue()
        return await self._render(page, [await page.service.registry.get(key)], key)

    async def _render(self, page: PageRequest, queue_actors: Sequence[QueueActor], key: QueueKey | None) -> Response:
        chosen = charts.parse_period(page.query.get("period", ""), page.query.get("by", ""), page.service.clock.now())
        keys: Mapping[QueueId, QueueKey] = {queue_actor.id: queue_actor.key for queue_actor in queue_actors}

        async def compute() -> CachedHealth:
            await page.require_connected()
            past = await self._histories.read(tuple(keys), chosen.before[0], chosen.until)
            begin = await self._read_begin(page, tuple(keys), past)
            return chosen, await asyncio.to_thread(_summarize, past, chosen, begin)

        cache_key = (frozenset(keys), chosen.length.name, chosen.by)
        period, health = await self._cache.get_or_compute(cache_key, compute)
        return page.render(
            "health.html",
            key=key,
            lengths=charts.PERIOD_LENGTHS,
            queue_keys=keys,
            period=period,
            finished_url=build_list_url(key, period, StateFilter.FINISHED),
            merged_url=build_list_url(key, period, StateFilter.MERGED),
            queues_without_retries=[actor.key for actor in queue_actors if not actor.queue.config.test_retries],
            health=health,
            estimates=evaluate_estimates(page.service.calibration.accuracy_of(queue_actors)),
        )

    async def _read_begin(self, page: PageRequest, queues: Sequence[QueueId], past: PeriodRecords) -> Instant:
        """Since when there are data: the creation of the oldest queue, unless older records were deleted."""
        begin = min((change.at for change in past.transitions), default=page.service.clock.now())
        created = await self._histories.read_creation(queues)
        if created is not None:
            begin = min(begin, created)
        kept_ms = page.service.retention.history_days * DAY
        if kept_ms:
            begin = max(begin, later(page.service.clock.now(), -kept_ms))
        return begin


def build_list_url(key: QueueKey | None, period: charts.Period, state: StateFilter) -> str:
    """The list of exactly the pull requests that the page counts."""
    times = {"from": format_exact_time(period.since), "to": format_exact_time(period.until)}
    return f"{pull_requests_url(key, state)}&{urlencode(times, safe=':')}"


def describe_gap(period: charts.Period, begin: Instant) -> str:
    """`only 15 of 30 days`; empty if all of the previous period has data."""
    since, until = period.before
    if begin <= since:
        return ""
    unit = DAY if period.length.length_ms > DAY else HOUR
    count = period.length.length_ms // unit
    noun = "days" if unit == DAY else "hours"
    return f"only {max(0, until - begin) // unit} of {count} {noun}"


def _summarize(past: PeriodRecords, period: charts.Period, begin: Instant) -> HealthView | None:
    now = past.between(period.since, period.until)
    if now.is_empty:
        return None
    whole = summarize(now)
    before = None
    if begin < period.before[1]:
        before = summarize(past.between(*period.before))
    return HealthView(
        headlines=build_headlines(whole, before, describe_gap(period, begin)),
        charts=charts.build_charts(period, [summarize(part) for part in now.split_at(period.starts)], whole),
        conclusions=charts.chart_conclusion_reasons(analytics.count_conclusion_reasons(now.transitions)),
        restarts=charts.chart_restart_reasons(analytics.count_restart_reasons(now.transitions)),
        flaky_checks=analytics.find_flaky_checks(now.runs),
    )
