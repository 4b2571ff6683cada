"""The what-if page: its form, as query parameters, and the comparison."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from mergeyard.domain.config import Config
from mergeyard.domain.ids import QueueId
from mergeyard.domain.timestamps import MINUTE, later
from mergeyard.service.service import Service
from mergeyard.service.whatif import Replay
from mergeyard.simulation.report import Confidence, PeriodMetrics
from mergeyard.web import charts, settings
from mergeyard.web.charts import DEFAULT_LENGTH, PERIOD_LENGTHS, Goal, NumberFormat
from mergeyard.web.formats import format_duration, pluralize
from mergeyard.web.rendering import PageRequest, TimedCache
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
FIGURES: dict[str, tuple[GetValue, NumberFormat, Goal]] = {
    "Merged": (lambda figures: figures.merged, charts.format_count, Goal.MORE),
    "Failed": (lambda figures: figures.failed, charts.format_count, Goal.NEITHER),
    "Half merged within": (lambda figures: figures.median_ms, format_duration, Goal.LESS),
    "95 % merged within": (lambda figures: figures.p95_ms, format_duration, Goal.LESS),
    "Runs": (lambda figures: figures.runs, charts.format_count, Goal.LESS),
    "Runs per merged": (lambda figures: figures.runs_per_merge, charts.format_ratio, Goal.LESS),
    "CI minutes spent": (lambda figures: figures.ci_ms, charts.format_minutes, Goal.LESS),
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


def describe_replay(replay: Replay) -> dict[str, object]:
    """What the template shows of a replay, in addition to the replay itself."""
    answer = replay.answer
    latest = "" if replay.limit is None else f", the latest {replay.limit:,} of them"
    predicted = f"The effect of this change is {answer.confidence} known"
    return {
        "finding": _describe_finding(replay),
        "sample": f"{pluralize(replay.pull_request_count, 'pull request')}{latest}",
        "rows": [_build_row(replay, name) for name in FIGURES],
        "reliability": predicted if replay.changed_settings else f"The history is {answer.confidence} reproduced",
        "tone": TONES[answer.confidence],
        "own_error": _describe_own_error(replay),
    }


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
    medians = (replay.answer.baseline.median_ms, replay.answer.actual.median_ms)
    replayed, actual = map(format_duration, medians)
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


def _compare(replay: Replay, get_value: GetValue, goal: Goal) -> tuple[str, str]:
    """The difference and the verdict. Compares two replays, not a replay with reality, so that the replay's own error
    is on both sides."""
    was, changed = replay.answer.baseline, replay.answer.proposed
    before, after = None if was is None else get_value(was), None if changed is None else get_value(changed.median)
    if not before or after is None:
        return charts.UNKNOWN_NUMBER, ""
    return charts.compare(after, before, goal) if round((after - before) / before * 100) else ("none", "")


ReplayCacheKey = tuple[QueueId, str, tuple[tuple[str, Any], ...]]
"""Queue, length of the period, changed settings. The current time is not part of it: a replay can be a minute old."""


class WhatIfPage:
    def __init__(self, service: Service) -> None:
        self._cache = TimedCache[ReplayCacheKey, Replay](service.clock, MINUTE)

    async def show(self, page: PageRequest) -> Response:
        key = page.resolve_queue()
        queue_actor = await page.service.registry.get(key)
        length = PERIOD_LENGTHS.get(page.query.get("period", ""), PERIOD_LENGTHS[DEFAULT_LENGTH])
        form, replay = parse_form(page.query, queue_actor.queue.config), None
        if (changes := form.changes) is not None:

            async def compute() -> Replay:
                await page.require_connected()
                since = later(page.service.clock.now(), -length.length_ms)
                return await page.service.replays.replay(key, since, changes)

            cache_key = (queue_actor.id, length.name, tuple(sorted(changes.items())))
            replay = await self._cache.get_or_compute(cache_key, compute)
        return page.render_form(
            "whatif.html",
            form.invalid_fields,
            key=key,
            length=length,
            lengths=PERIOD_LENGTHS,
            form=form,
            slider_maximum=slider_maximum,
            replay=replay,
            view={} if replay is None else describe_replay(replay),
        )
