"""A pull request and a queue as answers show them: the facts, and what they mean in words."""

from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.expected import Expected
from mergeyard.domain.ids import PrNumber, QueueId, RunId
from mergeyard.domain.instants import Instant
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import MESSAGES, Reason
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.states import TERMINAL, PrState
from mergeyard.engine import estimating, explaining, reading
from mergeyard.engine.estimating import Outlook
from mergeyard.ports.foretelling import NOTHING_FORETOLD, Forecast


class Why(Struct, frozen=True):
    code: Reason
    message: str
    waiting_for: tuple[PrNumber, ...] = ()


class PullView(Struct, frozen=True, kw_only=True):
    queue: QueueId
    target: str
    parallel: bool
    has_targets: bool
    stay: Submission
    why: Why
    run: RunId | None
    position: int | None
    merges_at: Instant | None = None
    """As likely earlier as later."""
    merges_by: Instant | None = None
    """In nine cases of ten."""


class QueueView(Struct, frozen=True, kw_only=True):
    key: QueueKey
    queue: Queue
    pulls: tuple[PullView, ...] = ()


def view(queue: Queue, stay: Submission, now: Instant, forecast: Forecast = NOTHING_FORETOLD) -> PullView:
    return Viewpoint(queue, now, forecast).of(stay)


def view_queue(key: QueueKey, queue: Queue, now: Instant, forecast: Forecast = NOTHING_FORETOLD) -> QueueView:
    """With everybody in it, each counted once from the front."""
    viewpoint = Viewpoint(queue, now, forecast)
    pulls = tuple(
        viewpoint.of_live(stay, None if stay.state is PrState.NOT_READY else place)
        for place, stay in enumerate(reading.enqueued(queue, now), start=1)
    )
    return QueueView(key=key, queue=queue, pulls=pulls)


class Viewpoint:
    """From which several are seen, at the cost of one outlook for all of them."""

    def __init__(self, queue: Queue, now: Instant, forecast: Forecast = NOTHING_FORETOLD) -> None:
        self._queue = queue
        self._now = now
        self._forecast = forecast

    @cached_property
    def _outlook(self) -> Outlook | None:
        return estimating.outlook(self._queue, self._now)

    def of(self, stay: Submission) -> PullView:
        if stay.state in TERMINAL:
            return _view(self._queue, stay, _how_it_ended(stay), stay.run, None)
        return self.of_live(stay, reading.position(self._queue, stay, self._now))

    def of_live(self, stay: Submission, position: int | None) -> PullView:
        why, run = _what_it_waits_for(self._queue, stay), reading.shown_run(self._queue, stay)
        seen = _view(self._queue, stay, why, run, position)
        expected = None if position is None else self._expected(stay, position)
        return seen if expected is None else replace(seen, merges_at=expected.middle, merges_by=expected.late)

    def _expected(self, stay: Submission, position: int) -> Expected | None:
        """As it was foretold, however long ago, or else as far as it can be guessed; nothing while nothing starts."""
        if stay.ticket not in self._forecast or not self._queue.may_start:
            return None if self._outlook is None else self._outlook.of(stay, position)
        foretold = self._forecast[stay.ticket]
        return foretold and Expected(max(self._now, foretold.middle), max(self._now, foretold.late))


def _view(queue: Queue, stay: Submission, why: Why, run: RunId | None, position: int | None) -> PullView:
    return PullView(
        queue=queue.id,
        target=queue.target.name,
        parallel=queue.config.mode is Mode.PARALLEL,
        has_targets=stay.targets is not None,
        stay=stay,
        why=why,
        run=run,
        position=position,
    )


def _how_it_ended(stay: Submission) -> Why:
    return Why(stay.reason, sentence(stay.reason, stay.words, upon=stay.upon))


def _what_it_waits_for(queue: Queue, stay: Submission) -> Why:
    waiting = explaining.explain(queue, stay)
    words = queue.words if waiting.reason is Reason.QUEUE_PAUSED else ""
    if waiting.paths:
        words = f"Changed: {', '.join(waiting.paths)}. To submit it, a maintainer posts: !merge {stay.pull.head}"
    return Why(waiting.reason, sentence(waiting.reason, words, checks=waiting.checks), waiting.prs)


def sentence(reason: Reason, words: str = "", *, upon: tuple[PrNumber, ...] = (), checks: tuple[str, ...] = ()) -> str:
    parts = [MESSAGES[reason]]
    if checks:
        parts.append(f"Not reported: {', '.join(checks)}.")
    if upon:
        parts.append(f"It was tested upon {', '.join(f'#{number}' for number in upon)}.")
    if words:
        parts.append(words)
    return " ".join(parts)
