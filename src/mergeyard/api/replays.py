"""The endpoint that replays a queue's past: what it is asked, what it answers, and how."""

from typing import Annotated, Any

from msgspec import UNSET, UnsetType, defstruct

from mergeyard.api import queue_settings, wire
from mergeyard.api.addressing import Addressing
from mergeyard.api.answers import Answer, At
from mergeyard.api.endpoint import Call
from mergeyard.api.presenting import encode
from mergeyard.api.requests import OfQueue
from mergeyard.api.times import written
from mergeyard.api.wire import says
from mergeyard.domain.instants import DAY, MINUTE, SECOND, later
from mergeyard.service.replaying.replays import Replay
from mergeyard.service.service import Service
from mergeyard.sim.replaying.figures import Figures
from mergeyard.sim.replaying.guesses import About
from mergeyard.sim.replaying.replayable import REPLAYABLE
from mergeyard.sim.replaying.sureness import Sureness

USUAL = 14 * DAY


class Replaying(OfQueue, frozen=True, kw_only=True):
    since: Annotated[wire.Time, says("Replay what came since then; without it the last 14 days.")] | UnsetType = UNSET

    @property
    def wishes(self) -> dict[str, Any]:
        """Those that were named, checked, under the names of the domain."""
        named = {name: getattr(self, name) for name in REPLAYABLE}
        return {name: value for name, value in named.items() if value is not UNSET}


ReplayQueue = defstruct(
    "ReplayQueue",
    [setting for setting in queue_settings.GIVEN if setting[0] in REPLAYABLE],
    bases=(Replaying,),
    module=__name__,
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
)


class ReplayFigures(Answer, frozen=True, kw_only=True):
    merged: int
    failed: int
    left: Annotated[int, says("Taken out, closed, or refused for something that no test says.")]
    p50_seconds: Annotated[float | None, says("From admission to the merge, of those that merged.")]
    p95_seconds: Annotated[float | None, says("The same, for 95 of 100.")]
    runs: int
    runs_per_merge: float | None
    ci_minutes: Annotated[float, says("From the start of each run to its end.")]


class ReplayChange(Answer, frozen=True, kw_only=True):
    setting: str
    now: Annotated[bool | int | str, says("What it is at present.")]
    wished: Annotated[bool | int | str, says("What it would have been, all the time.")]


class ReplayGuess(Answer, frozen=True, kw_only=True):
    about: Annotated[About, says("What history does not tell, in one word.")]
    count: int
    of: int
    message: Annotated[str, says("The same for people, with what is taken for true instead.")]


class QueueReplay(Answer, frozen=True, kw_only=True):
    since: Annotated[At, says("Whoever was admitted since then is counted.")]
    until: At
    pull_requests: Annotated[int, says("How many are counted.")]
    most: Annotated[int | None, says("So many are counted at most, the latest, and there were more.")]
    changes: tuple[ReplayChange, ...]
    as_it_was: ReplayFigures
    replayed_as_it_was: Annotated[
        ReplayFigures | None, says("What the replay makes of the settings as they were; null: it came to no end.")
    ]
    with_the_change: Annotated[
        ReplayFigures | None,
        says("The middle of several draws of what history does not tell; null: it came to no end."),
    ]
    with_the_change_at_least: Annotated[ReplayFigures | None, says("The least of them, figure by figure.")]
    with_the_change_at_most: Annotated[ReplayFigures | None, says("The most of them, figure by figure.")]
    sureness: Annotated[Sureness, says("How well it is known what the change would do.")]
    reasons: Annotated[tuple[str, ...], says("Why it is not known better, the gravest first.")]
    guesses: tuple[ReplayGuess, ...]


class ReplayEndpoints:
    def __init__(self, service: Service) -> None:
        self._replays = service.replays
        self._clock = service.clock
        self._addressing = Addressing(service.sites)

    async def replay(self, call: Call) -> bytes:
        asked: Replaying = call.request
        since = later(self._clock.now(), -USUAL) if isinstance(asked.since, UnsetType) else asked.since
        return encode(_shown(await self._replays.replay(self._addressing.queue(call), since, asked.wishes)))


def _shown(replay: Replay) -> QueueReplay:
    answer, drawn = replay.answer, replay.answer.changed
    return QueueReplay(
        since=written(replay.since),
        until=written(replay.until),
        pull_requests=replay.counted,
        most=replay.most,
        changes=tuple(_change(replay, name) for name in replay.wishes),
        as_it_was=_figures(answer.really),
        replayed_as_it_was=None if answer.replayed is None else _figures(answer.replayed),
        with_the_change=None if drawn is None else _figures(drawn.middle),
        with_the_change_at_least=None if drawn is None else _figures(drawn.least),
        with_the_change_at_most=None if drawn is None else _figures(drawn.most),
        sureness=answer.sureness,
        reasons=answer.reasons,
        guesses=tuple(
            ReplayGuess(about=guess.about, count=guess.count, of=guess.of, message=guess.words)
            for guess in answer.guesses
        ),
    )


def _change(replay: Replay, name: str) -> ReplayChange:
    return ReplayChange(setting=_wire_name(name), now=getattr(replay.now, name), wished=replay.wishes[name])


def _wire_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _figures(found: Figures) -> ReplayFigures:
    return ReplayFigures(
        merged=found.merged,
        failed=found.failed,
        left=found.left,
        p50_seconds=_seconds(found.median),
        p95_seconds=_seconds(found.slow),
        runs=found.runs,
        runs_per_merge=None if found.runs_per_merge is None else round(found.runs_per_merge, 3),
        ci_minutes=round(found.spent / MINUTE, 1),
    )


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / SECOND
