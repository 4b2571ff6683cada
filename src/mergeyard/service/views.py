"""A pull request and a queue as answers show them: the facts, and what they mean in words."""

from msgspec import Struct

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PrNumber, QueueId, RunId
from mergeyard.domain.instants import Instant
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import MESSAGES, Reason
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.states import TERMINAL, PrState
from mergeyard.engine import explaining, reading


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


class QueueView(Struct, frozen=True, kw_only=True):
    key: QueueKey
    queue: Queue
    pulls: tuple[PullView, ...] = ()


def view(queue: Queue, stay: Submission, now: Instant) -> PullView:
    if stay.state in TERMINAL:
        return _view(queue, stay, _how_it_ended(stay), stay.run, None)
    return _view_live(queue, stay, reading.position(queue, stay, now))


def view_queue(key: QueueKey, queue: Queue, now: Instant) -> QueueView:
    """With everybody in it, each counted once from the front."""
    pulls = tuple(
        _view_live(queue, stay, None if stay.state is PrState.NOT_READY else place)
        for place, stay in enumerate(reading.enqueued(queue, now), start=1)
    )
    return QueueView(key=key, queue=queue, pulls=pulls)


def _view_live(queue: Queue, stay: Submission, position: int | None) -> PullView:
    return _view(queue, stay, _what_it_waits_for(queue, stay), reading.shown_run(queue, stay), position)


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
