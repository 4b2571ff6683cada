"""The what-if page: its form, as query parameters, and the comparison."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct
from starlette.responses import Response

from mergeyard.domain.config import Config
from mergeyard.domain.ids import QueueId, QueueKey
from mergeyard.domain.timestamps import MINUTE, SECOND, later
from mergeyard.service.service import Service
from mergeyard.service.whatif import Replay
from mergeyard.simulation.report import Confidence, PeriodMetrics
from mergeyard.web import charts, settings
from mergeyard.web.charts import DEFAULT_LENGTH, PERIOD_LENGTHS, Goal, NumberFormat
from mergeyard.web.formats import format_duration, pluralize, queue_url
from mergeyard.web.rendering import PageRequest, TimedCache
from mergeyard.web.settings import FieldKind, SettingField

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
    """What the address does not name is as it is now, so a link can name a single setting."""
    fields = _select_offered(settings.fields_from_query(query, config))
    is_sent, has_errors = any(name in query for name in OFFERED_SETTINGS), any(field.error for field in fields)
    return WhatIfForm(fields, settings.collect_changes(list(fields)) if is_sent and not has_errors else None)


def build_settings_url(key: QueueKey, fields: Iterable[SettingField]) -> str:
    """The settings page with the changed values filled in. They apply when the administrator saves them there."""
    changed = {field.setting.name: field.value or settings.OFF for field in fields if field.is_changed}
    return f"{queue_url(key, 'settings')}?{urlencode(changed)}"


def slider_maximum(field: SettingField) -> int | None:
    """The maximum of a number's slider; never below the chosen value."""
    if field.setting.kind is not FieldKind.NUMBER:
        return None
    chosen = [int(text) for text in (field.value, field.previous) if text.isdecimal() and not field.error]
    return min(max(SLIDER_MAXIMA[field.setting.name], *chosen, 0), field.setting.maximum or 0)


def _select_offered(fields: list[SettingField]) -> tuple[SettingField, ...]:
    by_name = {field.setting.name: field for field in fields}
    return tuple(by_name[name] for name in OFFERED_SETTINGS)


TONES = {Confidence.HIGH: "succeeded", Confidence.MEDIUM: "pending_failure", Confidence.LOW: "failed"}
"""CSS classes of states, for the color."""


class Figure(Struct, frozen=True):
    get_value: Callable[[PeriodMetrics], float | None]
    format_value: NumberFormat
    goal: Goal
    step: float
    """The smallest difference that the page shows."""
    least: float
    """Of smaller values no percentage is shown: 3 CI minutes instead of 2 are not "50 % more"."""


CI_MINUTES = "CI minutes"
FIGURES = {
    "Merged": Figure(lambda figures: figures.merged, charts.format_count, Goal.MORE, 1, 10),
    "Failed": Figure(lambda figures: figures.failed, charts.format_count, Goal.NEITHER, 1, 10),
    "Median time to merge": Figure(lambda figures: figures.median_ms, format_duration, Goal.LESS, SECOND, MINUTE),
    "p95 time to merge": Figure(lambda figures: figures.p95_ms, format_duration, Goal.LESS, SECOND, MINUTE),
    "Runs": Figure(lambda figures: figures.runs, charts.format_count, Goal.LESS, 1, 10),
    "Runs per merge": Figure(lambda figures: figures.runs_per_merge, charts.format_ratio, Goal.LESS, 0.01, 0.1),
    CI_MINUTES: Figure(lambda figures: figures.ci_ms, charts.format_minutes, Goal.LESS, MINUTE, 10 * MINUTE),
}


class FigureRow(Struct, frozen=True, kw_only=True):
    name: str
    actual: str
    replayed: str
    changed: str
    spread: str
    """From the smallest to the largest value of all random draws, if they differ."""
    difference: str
    verdict: str
    """`better`, `worse`, or empty if neither direction is better, or the replay is not reliable enough to judge."""


def describe_replay(replay: Replay) -> dict[str, object]:
    """What the template shows of a replay, in addition to the replay itself."""
    answer = replay.answer
    latest = "" if replay.limit is None else f", the latest {replay.limit:,} of them"
    return {
        "finding": _describe_finding(replay),
        "sample": f"{pluralize(replay.pull_request_count, 'pull request')}{latest}",
        "rows": [_build_row(replay, name) for name in FIGURES],
        "is_unreliable": answer.confidence is Confidence.LOW,
        "reliability": f"Confidence: {answer.confidence}",
        "tone": TONES[answer.confidence],
        "own_error": _describe_own_error(replay),
    }


def _describe_finding(replay: Replay) -> str:
    was, now = replay.answer.baseline, None if replay.answer.proposed is None else replay.answer.proposed.median
    if was is None or now is None or was.median_ms is None or now.median_ms is None:
        return "Not enough data for the time to merge"
    if not replay.changed_settings:
        return f"Replayed median {format_duration(was.median_ms)} without a change"
    difference, _ = _compare(replay, FIGURES[CI_MINUTES])
    ci_minutes = "unchanged" if difference == NO_CHANGE else difference
    times = f"Replayed median {format_duration(now.median_ms)} instead of {format_duration(was.median_ms)}"
    return f"{times}, CI minutes {ci_minutes}"


def _describe_own_error(replay: Replay) -> str:
    if replay.answer.baseline is None:
        return "The replay with the recorded settings did not finish."
    medians = (replay.answer.baseline.median_ms, replay.answer.actual.median_ms)
    replayed, actual = map(format_duration, medians)
    return f"With the recorded settings, the replay has a median of {replayed}. The actual median was {actual}."


def _build_row(replay: Replay, name: str) -> FigureRow:
    figure, changed = FIGURES[name], replay.answer.proposed

    def cell(figures: PeriodMetrics | None) -> str:
        return charts.UNKNOWN_NUMBER if figures is None else figure.format_value(figure.get_value(figures))

    smallest, largest = (cell(changed.minimum), cell(changed.maximum)) if changed is not None else ("", "")
    difference, verdict = _compare(replay, figure)
    if replay.answer.confidence is Confidence.LOW:
        verdict = ""
    return FigureRow(
        name=name,
        actual=cell(replay.answer.actual),
        replayed=cell(replay.answer.baseline),
        changed=cell(None if changed is None else changed.median),
        spread="" if smallest == largest else f"{smallest} to {largest}",
        difference=difference,
        verdict=verdict,
    )


def _compare(replay: Replay, figure: Figure) -> tuple[str, str]:
    """The difference and the verdict. Compares two replays, not a replay with reality, so that the replay's own error
    is on both sides."""
    was, changed = replay.answer.baseline, replay.answer.proposed
    before = None if was is None else figure.get_value(was)
    after = None if changed is None else figure.get_value(changed.median)
    if before is None or after is None:
        return charts.UNKNOWN_NUMBER, ""
    return describe_difference(before, after, figure)


NO_CHANGE = "no change"


def describe_difference(before: float, after: float, figure: Figure) -> tuple[str, str]:
    """In the unit of the figure, such as `+1 min 2 s`, with the percentage where the earlier value is large enough; and
    `better`, `worse`, or empty."""
    shown_before, shown_after = (round(value / figure.step) * figure.step for value in (before, after))
    if figure.format_value(shown_before) == figure.format_value(shown_after):
        return NO_CHANGE, ""
    sign = "+" if shown_after > shown_before else "−"  # noqa: RUF001
    size = abs(shown_after - shown_before)
    percent = f" ({sign}{size / shown_before * 100:.0f} %)" if shown_before >= figure.least else ""
    verdict = "better" if (shown_after > shown_before) == (figure.goal is Goal.MORE) else "worse"
    return f"{sign}{figure.format_value(size)}{percent}", "" if figure.goal is Goal.NEITHER else verdict


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
            settings_url=build_settings_url(key, form.fields),
            replay=replay,
            view={} if replay is None else describe_replay(replay),
        )
