"""The page of one queue: the line as a track, who waits, who is not ready, and who left."""

from collections.abc import Iterable, Sequence
from itertools import chain, islice

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.domain.journal import QueueChanged
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import QueueState
from mergeyard.domain.transitions import FOUND_WRONG
from mergeyard.engine import estimating, order
from mergeyard.service import recent
from mergeyard.service.journaling import name_of
from mergeyard.service.views import PullView, Viewpoint, sentence
from mergeyard.web.hall import Hall
from mergeyard.web.track import Track, track

MOST_ROWS = 20

STATES = {
    QueueState.RUNNING: "Pull requests enter, are tested and merge.",
    QueueState.PAUSED: "Nothing enters, starts or merges. Tests that run finish, and everybody keeps their place.",
    QueueState.DRAINING: "What is in the queue is tested and merges. Nothing new enters.",
    QueueState.SWITCHING_MODES: "Running tests finish first; then the queue goes on in its new mode by itself.",
}


class Some(Struct, frozen=True):
    """The first of those that stand somewhere, and how many there are."""

    first: Sequence[PullView]
    count: int

    @property
    def more(self) -> int:
        return self.count - len(self.first)


class Ended(Struct, frozen=True):
    stay: Submission
    words: str
    moves: bool
    """Whether this is the only place on the page where the pull request is seen."""


class Picture(Struct, frozen=True, kw_only=True):
    """All that the page shows of a queue."""

    key: QueueKey
    queue: Queue
    meaning: str
    pause: QueueChanged | None
    track: Track
    waiting: Some
    not_ready: Some
    ended: Sequence[Ended]
    slots_taken: int
    usual: int | None
    next_merge: Instant | None

    @property
    def paused_by(self) -> str:
        return "" if self.pause is None else name_of(self.pause.actor)

    @property
    def alarm(self) -> str:
        """What the queue paused itself for."""
        return sentence(self.pause.reason) if self.pause is not None and self.pause.reason in FOUND_WRONG else ""


class QueuePage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def routes(self) -> Sequence[Route]:
        return (Route("/queues/{queue:path}", self.show),)

    async def show(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request)
        key = self._hall.queue(visitor, request.path_params["queue"])
        service = self._hall.service
        keeper = await service.yard.keeper(key)
        queue, forecast = keeper.queue, keeper.forecast
        ended = await recent.concluded(service.store, queue, MOST_ROWS)
        paused = await recent.pause(service.store, queue)
        now = service.clock.now()
        seen = picture(key, queue, ended, paused, Viewpoint(queue, now, forecast), now)
        warnings = service.branch_warnings.of(key)
        return self._hall.page(request, "queue.html", visitor, key=key, seen=seen, warnings=warnings)


def picture(
    key: QueueKey,
    queue: Queue,
    ended: Iterable[Submission],
    pause: QueueChanged | None,
    viewpoint: Viewpoint,
    now: Instant,
) -> Picture:
    return Picture(
        key=key,
        queue=queue,
        meaning=STATES[queue.state],
        pause=pause,
        track=track(queue, now),
        waiting=waiting(queue, viewpoint, now),
        not_ready=not_ready(queue, viewpoint),
        ended=concluded(queue, ended),
        slots_taken=sum(run.active and run.kind is not RunKind.BISECTION for run in queue.runs.values()),
        usual=estimating.usual(queue),
        next_merge=_next_merge(queue, viewpoint),
    )


def waiting(queue: Queue, viewpoint: Viewpoint, now: Instant) -> Some:
    """In the order in which they will go into the line; those that are held back last."""
    held = (queue.submissions[ticket] for ticket in queue.held)
    stays = chain(order.in_order(queue, now), held)
    return _some(viewpoint, stays, sum(map(len, queue.waiting.values())) + len(queue.held))


def not_ready(queue: Queue, viewpoint: Viewpoint) -> Some:
    stays = (queue.submissions[ticket] for _, ticket in queue.not_ready)
    return _some(viewpoint, stays, len(queue.not_ready))


def concluded(queue: Queue, ended: Iterable[Submission]) -> list[Ended]:
    seen, rows = set[PrNumber](), list[Ended]()
    for stay in ended:
        alone = stay.number not in seen and stay.number not in queue.tickets
        rows.append(Ended(stay, sentence(stay.reason, stay.words, upon=stay.upon), moves=alone))
        seen.add(stay.number)
    return rows


def _some(viewpoint: Viewpoint, stays: Iterable[Submission], count: int) -> Some:
    return Some(list(map(viewpoint.of, islice(stays, MOST_ROWS))), count)


def _next_merge(queue: Queue, viewpoint: Viewpoint) -> Instant | None:
    """When the first of the line is expected to merge."""
    if not queue.line.batches:
        return None
    return viewpoint.of(queue.submissions[queue.line.batches[0].tickets[0]]).merges_at
