"""The health page of one queue, or of all queues the user can see, over a chosen period."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto

from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.domain.timestamps import MINUTE
from mergeyard.service import analytics
from mergeyard.service.analytics import AnalyticsReader, FlakyCheck, PeriodRecords, Summary, summarize
from mergeyard.service.forecasts import EstimateAccuracy
from mergeyard.service.queue_actor import QueueActor
from mergeyard.web import charts
from mergeyard.web import charts as chart_data
from mergeyard.web.formats import format_duration
from mergeyard.web.rendering import PageContext, TimedCache
from mergeyard.web.user_sessions import CurrentUser


class Goal(Enum):
    MORE = auto()
    LESS = auto()
    NEITHER = auto()


class Headline(Struct, frozen=True, kw_only=True):
    name: str
    value: str
    before: str
    change: str = ""
    verdict: str = ""
    """`better`, `worse`, or empty if the number has no goal."""


def build_headlines(now: Summary, before: Summary) -> list[Headline]:
    def build(
        name: str, get_value: Callable[[Summary], float | None], format_value: chart_data.NumberFormat, goal: Goal
    ) -> Headline:
        return _build_headline(name, get_value(now), get_value(before), format_value, goal)

    return [
        build("Merged", lambda summary: summary.merged, charts.format_count, Goal.MORE),
        build("Success", lambda summary: summary.success_rate, charts.format_share, Goal.MORE),
        build("Median in queue", lambda summary: summary.median_ms, format_duration, Goal.LESS),
        build("95 % merge within", lambda summary: summary.p95_ms, format_duration, Goal.LESS),
        build("Runs per merged", lambda summary: summary.runs_per_merge, charts.format_ratio, Goal.LESS),
        build("CI minutes spent", lambda summary: summary.ci_ms, charts.format_minutes, Goal.NEITHER),
        build("CI minutes saved", lambda summary: summary.saved_ci_ms, charts.format_minutes, Goal.MORE),
    ]


def _build_headline(
    name: str, now: float | None, before: float | None, format_value: chart_data.NumberFormat, goal: Goal
) -> Headline:
    value = format_value(now)
    was = "nothing before" if before is None else f"{format_value(before)} before"
    if now is None or not before:
        return Headline(name=name, value=value, before=was)
    if value == format_value(before):
        return Headline(name=name, value=value, before=was, change="as before")
    verdict = _judge_change(now > before, goal)
    return Headline(name=name, value=value, before=was, change=_format_change(now, before), verdict=verdict)


def _format_change(now: float, before: float) -> str:
    """In percent of the previous value; in words if that is below 1 or too large to be meaningful."""
    percent = abs(now - before) / abs(before) * 100
    size = f"{percent:.0f} %" if 1 <= percent < 1000 else ("a little" if percent < 1 else "many times")
    return f"{'▲' if now > before else '▼'} {size}"


def _judge_change(more: bool, goal: Goal) -> str:
    if goal is Goal.NEITHER:
        return ""
    return "better" if more == (goal is Goal.MORE) else "worse"


MIN_MERGES = 20
"""With fewer merges, a single one would change the shares by more than 5 percentage points."""


class Estimates(Struct, frozen=True):
    finding: str
    note: str


def evaluate_estimates(held: EstimateAccuracy) -> Estimates:
    if not held.merged:
        return Estimates("No estimate can be evaluated yet", "No pull request with an estimate has merged yet.")
    late = f"p90 held for {held.by_p90:,} of {held.merged:,} merged"
    middle = f"p50 for {held.by_median:,}"
    if held.merged < MIN_MERGES:
        return Estimates("Too few merges to evaluate the estimates", f"So far {late}, {middle}.")
    shares = (charts.format_share(by / held.merged) for by in (held.by_p90, held.by_median))
    return Estimates(late, f"That is {', and p50 held for '.join(shares)}. The goals are 90 % and 50 %.")


class HealthView(Struct, frozen=True, kw_only=True):
    headlines: Sequence[Headline]
    charts: chart_data.ChartData
    conclusions: chart_data.BarChart
    restarts: chart_data.BarChart
    flaky_checks: Sequence[FlakyCheck]


class CachedHealth(Struct, frozen=True):
    period: chart_data.Period
    health: HealthView | None
    """None if nothing happened in the period."""


HealthCacheKey = tuple[frozenset[QueueId], str, chart_data.Division]
"""Queues, length of the period, division. The current time is not part of it: a page can be a minute old."""


class HealthPage:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._histories = AnalyticsReader(context.service.store)
        self._cache = TimedCache[HealthCacheKey, CachedHealth](context.service.clock, MINUTE)

    def routes(self) -> Sequence[Route]:
        return (Route("/health", self.show_all), Route("/health/{queue:path}", self.show))

    async def show_all(self, request: Request) -> Response:
        user = await self._context.authenticate(request)
        return await self._render(request, user, await self._context.service.registry.list_visible(user.token), None)

    async def show(self, request: Request) -> Response:
        user = await self._context.authenticate(request)
        key = self._context.resolve_queue(user, request.path_params["queue"])
        return await self._render(request, user, [await self._context.service.registry.get(key)], key)

    async def _render(
        self, request: Request, user: CurrentUser, queue_actors: Sequence[QueueActor], key: QueueKey | None
    ) -> Response:
        query = request.query_params
        period = chart_data.parse_period(
            query.get("period", ""), query.get("by", ""), self._context.service.clock.now()
        )
        keys: Mapping[QueueId, QueueKey] = {queue_actor.id: queue_actor.key for queue_actor in queue_actors}
        cache_key = (frozenset(keys), period.length.name, period.by)
        try:
            cached = await self._cache.get_or_compute(cache_key, lambda: self._compute(request, tuple(keys), period))
        except ClientDisconnect:
            return Response(status_code=204)  # the client is gone, so the response reaches no one
        calibration = self._context.service.calibration.accuracy_of(queue_actors)
        return self._context.render_page(
            request,
            "health.html",
            user,
            key=key,
            lengths=chart_data.PERIOD_LENGTHS,
            queue_keys=keys,
            period=cached.period,
            health=cached.health,
            estimates=evaluate_estimates(calibration),
        )

    async def _compute(self, request: Request, queues: Sequence[QueueId], period: chart_data.Period) -> CachedHealth:
        """Other requests wait while this one computes, so nothing is computed for a client that has disconnected."""
        if await request.is_disconnected():
            raise ClientDisconnect
        past = await self._histories.read(queues, period.before[0], period.until)
        return CachedHealth(period, await asyncio.to_thread(_summarize, past, period))


def _summarize(past: PeriodRecords, period: chart_data.Period) -> HealthView | None:
    now = past.between(period.since, period.until)
    if now.is_empty:
        return None
    whole = summarize(now)
    return HealthView(
        headlines=build_headlines(whole, summarize(past.between(*period.before))),
        charts=charts.build_charts(period, [summarize(part) for part in now.split_at(period.starts)], whole),
        conclusions=chart_data.chart_conclusion_reasons(analytics.count_conclusion_reasons(now.transitions)),
        restarts=chart_data.chart_restart_reasons(analytics.count_restart_reasons(now.transitions)),
        flaky_checks=analytics.find_flaky_checks(now.runs),
    )
