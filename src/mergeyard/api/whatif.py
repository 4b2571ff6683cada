"""The what-if endpoint, which replays a queue's history with other settings: its structs and its handler."""

from typing import Annotated

from msgspec import UNSET, UnsetType, convert

from mergeyard.api import request_schemas
from mergeyard.api.endpoint import Call, Endpoints
from mergeyard.api.fields import format_time
from mergeyard.api.presenting import encode
from mergeyard.api.request_schemas import QueueSettingsRequest, describe
from mergeyard.api.response_schemas import ResponseBody, Timestamp
from mergeyard.domain.timestamps import DAY, MINUTE, SECOND, later
from mergeyard.service.whatif import Replay
from mergeyard.simulation.history import REPLAYABLE_SETTINGS
from mergeyard.simulation.report import AssumptionKind, Confidence, PeriodMetrics

DEFAULT_PERIOD_MS = 14 * DAY


class ReplayQueueBase(QueueSettingsRequest, frozen=True, kw_only=True):
    since: (
        Annotated[request_schemas.Time, describe("Start of the replayed history; default: 14 days ago.")] | UnsetType
    ) = UNSET


ReplayQueue = request_schemas.define_with_settings("ReplayQueue", ReplayQueueBase, REPLAYABLE_SETTINGS)


class ReplayMetrics(ResponseBody, frozen=True, kw_only=True):
    merged: Annotated[int, describe("How many pull requests merged.")]
    failed: Annotated[int, describe("How many failed their tests.")]
    left: Annotated[int, describe("Removed, closed, or failed for another reason than their tests.")]
    p50_seconds: Annotated[float | None, describe("Median time from admission to merge, of the merged pull requests.")]
    p95_seconds: Annotated[float | None, describe("The 95th percentile of the same.")]
    runs: Annotated[int, describe("How many test runs started.")]
    runs_per_merge: Annotated[float | None, describe("`runs` divided by `merged`; null when nothing merged.")]
    ci_minutes: Annotated[float, describe("Sum of the durations of all test runs.")]


class ReplayChange(ResponseBody, frozen=True, kw_only=True):
    setting: Annotated[str, describe("Name of the setting.")]
    now: Annotated[bool | int | str, describe("The current value.")]
    proposed: Annotated[bool | int | str, describe("The value in the replay.")]


class ReplayAssumption(ResponseBody, frozen=True, kw_only=True):
    about: Annotated[AssumptionKind, describe("The unknown that is assumed.")]
    count: Annotated[int, describe("How many of them it is assumed for.")]
    of: Annotated[int, describe("How many there are.")]
    message: Annotated[str, describe("The unknown and the assumption made for it, as a sentence.")]


class QueueReplay(ResponseBody, frozen=True, kw_only=True):
    since: Annotated[Timestamp, describe("Pull requests admitted since then are counted.")]
    until: Annotated[Timestamp, describe("End of the replayed history.")]
    pull_requests: Annotated[int, describe("How many pull requests are counted.")]
    limited_to: Annotated[
        int | None, describe("Set when only this many, the latest, were counted because there were more.")
    ]
    changes: Annotated[tuple[ReplayChange, ...], describe("The settings that differ in the replay.")]
    actual: Annotated[ReplayMetrics, describe("What happened.")]
    baseline: Annotated[
        ReplayMetrics | None, describe("Replay with the settings as they were; null when the replay did not finish.")
    ]
    proposed: Annotated[
        ReplayMetrics | None,
        describe("Median of several replays with random values for the unknowns; null when the replay did not finish."),
    ]
    proposed_min: Annotated[ReplayMetrics | None, describe("Minimum of these replays, per number.")]
    proposed_max: Annotated[ReplayMetrics | None, describe("Maximum of these replays, per number.")]
    confidence: Annotated[Confidence, describe("How reliable the result is.")]
    reasons: Annotated[tuple[str, ...], describe("What limits the reliability, most important first.")]
    assumptions: Annotated[tuple[ReplayAssumption, ...], describe("What the history does not show.")]


class WhatIfEndpoints(Endpoints):
    async def replay(self, call: Call) -> bytes:
        request: ReplayQueueBase = call.request
        default_since = later(self._service.clock.now(), -DEFAULT_PERIOD_MS)
        since = default_since if isinstance(request.since, UnsetType) else request.since
        key, settings = self._resolve_queue(call), request.given_settings
        return encode(_present_replay(await self._service.replays.replay(key, since, settings)))


def _present_replay(replay: Replay) -> QueueReplay:
    answer, draws = replay.answer, replay.answer.proposed
    return QueueReplay(
        since=format_time(replay.since),
        until=format_time(replay.until),
        pull_requests=replay.pull_request_count,
        limited_to=replay.limit,
        changes=tuple(
            ReplayChange(setting=_to_camel_case(name), now=getattr(replay.current_config, name), proposed=proposed)
            for name, proposed in replay.changed_settings.items()
        ),
        actual=_present_figures(answer.actual),
        baseline=None if answer.baseline is None else _present_figures(answer.baseline),
        proposed=None if draws is None else _present_figures(draws.median),
        proposed_min=None if draws is None else _present_figures(draws.minimum),
        proposed_max=None if draws is None else _present_figures(draws.maximum),
        confidence=answer.confidence,
        reasons=answer.reasons,
        assumptions=convert(answer.assumptions, tuple[ReplayAssumption, ...], from_attributes=True),
    )


def _to_camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _present_figures(figures: PeriodMetrics) -> ReplayMetrics:
    return ReplayMetrics(
        merged=figures.merged,
        failed=figures.failed,
        left=figures.removed,
        p50_seconds=_to_seconds(figures.median_ms),
        p95_seconds=_to_seconds(figures.p95_ms),
        runs=figures.runs,
        runs_per_merge=None if figures.runs_per_merge is None else round(figures.runs_per_merge, 3),
        ci_minutes=round(figures.ci_ms / MINUTE, 1),
    )


def _to_seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / SECOND
