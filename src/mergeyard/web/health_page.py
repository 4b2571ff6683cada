"""The health page of one queue, or of all queues the user can see, over a chosen period."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from starlette.responses import Response

from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.domain.timestamps import MINUTE
from mergeyard.service import analytics
from mergeyard.service.analytics import AnalyticsReader, FlakyCheck, PeriodRecords, Summary, summarize
from mergeyard.service.forecasts import EstimateAccuracy
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.service import Service
from mergeyard.service.submission_queries import StateFilter
from mergeyard.web import charts
from mergeyard.web.charts import BarChart, ChartData, Goal, NumberFormat
from mergeyard.web.formats import format_duration
from mergeyard.web.pull_request_list import PERIODS, pull_requests_url
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


def build_headlines(now: Summary, before: Summary) -> list[Headline]:
    return [
        _build_headline(name, get_value(now), get_value(before), format_value, goal)
        for name, (get_value, format_value, goal) in HEADLINES.items()
    ]


def _build_headline(
    name: str, now: float | None, before: float | None, format_value: NumberFormat, goal: Goal
) -> Headline:
    value = format_value(now)
    was = "no earlier data" if before is None else f"was {format_value(before)}"
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
            return chosen, await asyncio.to_thread(_summarize, past, chosen)

        cache_key = (frozenset(keys), chosen.length.name, chosen.by)
        period, health = await self._cache.get_or_compute(cache_key, compute)
        return page.render(
            "health.html",
            key=key,
            lengths=charts.PERIOD_LENGTHS,
            queue_keys=keys,
            period=period,
            pull_requests_url=build_list_url(key, period.length.name),
            health=health,
            estimates=evaluate_estimates(page.service.calibration.accuracy_of(queue_actors)),
        )


def build_list_url(key: QueueKey | None, length: str) -> str | None:
    """The list of the pull requests that finished in the period; None if the list does not offer that period."""
    finished = pull_requests_url(key, StateFilter.FINISHED)
    return f"{finished}&since={length}" if length in PERIODS else None


def _summarize(past: PeriodRecords, period: charts.Period) -> HealthView | None:
    now = past.between(period.since, period.until)
    if now.is_empty:
        return None
    whole = summarize(now)
    return HealthView(
        headlines=build_headlines(whole, summarize(past.between(*period.before))),
        charts=charts.build_charts(period, [summarize(part) for part in now.split_at(period.starts)], whole),
        conclusions=charts.chart_conclusion_reasons(analytics.count_conclusion_reasons(now.transitions)),
        restarts=charts.chart_restart_reasons(analytics.count_restart_reasons(now.transitions)),
        flaky_checks=analytics.find_flaky_checks(now.runs),
    )
