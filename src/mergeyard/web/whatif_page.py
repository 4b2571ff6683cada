"""The what-if page: its form, as query parameters, and the comparison."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.config import Config
from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.domain.timestamps import MINUTE, later
from mergeyard.service.whatif import Replay
from mergeyard.simulation.report import Confidence, PeriodMetrics
from mergeyard.web import charts, settings
from mergeyard.web.charts import DEFAULT_LENGTH, PERIOD_LENGTHS, NumberFormat, PeriodLength
from mergeyard.web.formats import format_duration, pluralize
from mergeyard.web.rendering import PageContext, TimedCache
from mergeyard.web.settings import FieldKind, SettingField
from mergeyard.web.user_sessions import Form

SLIDER_MAXIMA = {"concurrency": 50, "batching_min_size": 20, "batching_max_wait_time_minutes": 60}
"""The maximum of each slider; larger values can be typed."""
OFFERED_SETTINGS = (
    "concurrency",
    "batch",
    "batching_min_size",
    "batching_max_wait_time_minutes",
    "speculation",
    "can_optimistically_merge",
    "mode",
)


class WhatIfForm(Struct, frozen=True):
    fields: tuple[SettingField, ...]
    changes: Mapping[str, Any] | None
    """The changed settings; None if the form was not sent yet, or has errors."""

    @property
    def invalid_fields(self) -> list[SettingField]:
        return [field for field in self.fields if field.error]


def parse_form(query: Mapping[str, str], config: Config) -> WhatIfForm:
    if not any(name in query for name in OFFERED_SETTINGS):
        return WhatIfForm(_select_offered(settings.fields_from_config(config)), None)
    current = [(f"was_{name}", settings.encode_value(getattr(config, name))) for name in OFFERED_SETTINGS]
    fields = _select_offered(settings.fields_from_form(Form([*query.items(), *current])))
    has_errors = any(field.error for field in fields)
    return WhatIfForm(fields, None if has_errors else settings.collect_changes(list(fields)))


def slider_maximum(field: SettingField) -> int | None:
    """The maximum of a number's slider; never below the chosen value."""
    if field.setting.kind is not FieldKind.NUMBER:
        return None
    chosen = [int(text) for text in (field.value, field.previous) if text.isdecimal() and not field.error]
    return min(max(SLIDER_MAXIMA[field.setting.name], *chosen, 0), field.setting.maximum or 0)


def _select_offered(fields: list[SettingField]) -> tuple[SettingField, ...]:
    by_name = {field.setting.name: field for field in fields}
    return tuple(by_name[name] for name in OFFERED_SETTINGS)


TONES = {Confidence.WELL: "succeeded", Confidence.ROUGHLY: "pending_failure", Confidence.HARDLY: "failed"}
"""CSS classes of states, for the color."""

GetValue = Callable[[PeriodMetrics], float | None]
FIGURES: dict[str, tuple[GetValue, NumberFormat, str]] = {
    "Merged": (lambda figures: figures.merged, charts.format_count, "more"),
    "Failed": (lambda figures: figures.failed, charts.format_count, ""),
    "Half merged within": (lambda figures: figures.median_ms, format_duration, "less"),
    "95 % merged within": (lambda figures: figures.p95_ms, format_duration, "less"),
    "Runs": (lambda figures: figures.runs, charts.format_count, "less"),
    "Runs per merged": (lambda figures: figures.runs_per_merge, charts.format_ratio, "less"),
    "CI minutes spent": (lambda figures: figures.ci_ms, charts.format_minutes, "less"),
}
"""By name: the value, its format, and whether more or less of it is better."""


class FigureRow(Struct, frozen=True, kw_only=True):
    name: str
    actual: str
    replayed: str
    changed: str
    spread: str
    """From the smallest to the largest value of all random draws, if they differ."""
    difference: str
    verdict: str
    """`better`, `worse`, or empty if neither direction is better."""


class ReplayView(Struct, frozen=True, kw_only=True):
    finding: str
    sample: str
    """The number of replayed pull requests."""
    rows: tuple[FigureRow, ...]
    reliability: str
    tone: str
    own_error: str
    reasons: tuple[str, ...]
    guesses: tuple[str, ...]


def build_replay_view(replay: Replay) -> ReplayView:
    answer = replay.answer
    latest = "" if replay.limit is None else f", the latest {replay.limit:,} of them"
    predicted = f"The effect of this change is {answer.confidence} known"
    return ReplayView(
        finding=_describe_finding(replay),
        sample=f"{pluralize(replay.pull_request_count, 'pull request')}{latest}",
        rows=tuple(_build_row(replay, name) for name in FIGURES),
        reliability=predicted if replay.changed_settings else f"The history is {answer.confidence} reproduced",
        tone=TONES[answer.confidence],
        own_error=_describe_own_error(replay),
        reasons=answer.reasons,
        guesses=tuple(guess.message for guess in answer.assumptions),
    )


def _describe_finding(replay: Replay) -> str:
    was, now = replay.answer.baseline, None if replay.answer.proposed is None else replay.answer.proposed.median
    if was is None or now is None or was.median_ms is None or now.median_ms is None:
        return "The time to merge cannot be predicted"
    if not replay.changed_settings:
        return f"Without a change, half merge within {format_duration(was.median_ms)}"
    waits = f"Half merge within {format_duration(now.median_ms)} instead of {format_duration(was.median_ms)}"
    percent = round((now.ci_ms - was.ci_ms) / was.ci_ms * 100) if was.ci_ms else 0
    costs = f"{abs(percent)} % {'more' if percent > 0 else 'fewer'} CI minutes" if percent else "as many CI minutes"
    return f"{waits}, for {costs}"


def _describe_own_error(replay: Replay) -> str:
    if replay.answer.baseline is None:
        return "The replay without a change did not finish."
    replayed, actual = (
        format_duration(replay.answer.baseline.median_ms),
        format_duration(replay.answer.actual.median_ms),
    )
    return f"Replayed without a change, half merged within {replayed}; in reality within {actual}."


def _build_row(replay: Replay, name: str) -> FigureRow:
    get_value, format_value, goal = FIGURES[name]
    changed = replay.answer.proposed

    def cell(figures: PeriodMetrics | None) -> str:
        return charts.UNKNOWN_NUMBER if figures is None else format_value(get_value(figures))

    smallest, largest = (cell(changed.minimum), cell(changed.maximum)) if changed is not None else ("", "")
    difference, verdict = _compare(replay, get_value, goal)
    return FigureRow(
        name=name,
        actual=cell(replay.answer.actual),
        replayed=cell(replay.answer.baseline),
        changed=cell(None if changed is None else changed.median),
        spread="" if smallest == largest else f"{smallest} to {largest}",
        difference=difference,
        verdict=verdict,
    )


def _compare(replay: Replay, get_value: GetValue, goal: str) -> tuple[str, str]:
    """The difference and the verdict. Compares two replays, not a replay with reality, so that the replay's own error
    is on both sides."""
    was, changed = replay.answer.baseline, replay.answer.proposed
    before, after = None if was is None else get_value(was), None if changed is None else get_value(changed.median)
    if not before or after is None:
        return charts.UNKNOWN_NUMBER, ""
    percent = round((after - before) / before * 100)
    if not percent:
        return "none", ""
    verdict = "better" if (percent > 0) == (goal == "more") else "worse"
    return _format_percent_change(percent), verdict if goal else ""


def _format_percent_change(percent: int) -> str:
    return "▲ many times" if percent >= 1000 else f"{'▲' if percent > 0 else '▼'} {abs(percent)} %"


ReplayCacheKey = tuple[QueueId, str, tuple[tuple[str, Any], ...]]
"""Queue, length of the period, changed settings. The current time is not part of it: a replay can be a minute old."""


class WhatIfPage:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._cache = TimedCache[ReplayCacheKey, Replay](context.service.clock, MINUTE)

    def routes(self) -> Sequence[Route]:
        return (Route("/whatif/{queue:path}", self.show),)

    async def show(self, request: Request) -> Response:
        user = await self._context.authenticate(request)
        key = self._context.resolve_queue(user, request.path_params["queue"])
        queue_actor = await self._context.service.registry.get(key)
        length = PERIOD_LENGTHS.get(request.query_params.get("period", ""), PERIOD_LENGTHS[DEFAULT_LENGTH])
        form = parse_form(request.query_params, queue_actor.queue.config)
        replay = None
        if form.changes is not None:
            try:
                replay = await self._replay(request, key, queue_actor.id, length, form.changes)
            except ClientDisconnect:
                return Response(status_code=204)  # the client is gone, so the response reaches no one
        return self._context.render_form(
            request,
            "whatif.html",
            user,
            form.invalid_fields,
            key=key,
            length=length,
            lengths=PERIOD_LENGTHS,
            form=form,
            slider_maximum=slider_maximum,
            replay=replay,
            view=None if replay is None else build_replay_view(replay),
        )

    async def _replay(
        self, request: Request, key: QueueKey, queue: QueueId, length: PeriodLength, changes: Mapping[str, Any]
    ) -> Replay:
        async def compute() -> Replay:
            """Other requests wait while this one computes, so nothing is replayed for a disconnected client."""
            if await request.is_disconnected():
                raise ClientDisconnect
            since = later(self._context.service.clock.now(), -length.length_ms)
            return await self._context.service.replays.replay(key, since, changes)

        return await self._cache.get_or_compute((queue, length.name, tuple(sorted(changes.items()))), compute)
