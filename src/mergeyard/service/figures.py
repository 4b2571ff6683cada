"""Counts what a queue has done in the last hour, and what stands in it now, along the line and beside it."""

from msgspec import Struct, field

from mergeyard.domain.instants import HOUR, Instant, later
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.states import TERMINAL, PrState
from mergeyard.domain.tokens import Token
from mergeyard.ports.store import Figure
from mergeyard.service.turn import Keeper
from mergeyard.service.yard import Yard


class Figures(Struct, kw_only=True):
    """Of one track of a queue: what stands in it now, and what happened in the last hour."""

    depth: int = 0
    awaiting: int = 0
    slots: int = 0
    conclusions: dict[str, int] = field(default_factory=dict[str, int])
    restarts: int = 0
    waits: list[float] = field(default_factory=list[float])
    """Seconds, as are the next two."""
    tests: list[float] = field(default_factory=list[float])
    stays: list[float] = field(default_factory=list[float])


class QueueFigures(Struct, frozen=True):
    key: QueueKey
    main: Figures = field(default_factory=Figures)
    bisection: Figures = field(default_factory=Figures)


class Counting:
    def __init__(self, yard: Yard) -> None:
        self._yard = yard

    async def of_queues(self, token: Token, repo: Repo | None) -> list[QueueFigures]:
        """Of all queues that the token may see, or of those of one repository."""
        keepers = await self._yard.seen_by(token)
        if repo is not None:
            keepers = [keeper for keeper in keepers if keeper.key.repo == repo]
        counted = {keeper.id: _standing(keeper) for keeper in keepers}
        now = self._yard.clock.now()
        for event in await self._yard.store.figures(list(counted), Instant(now - HOUR), later(now, 1)):
            queue = counted[event.queue]
            _count(queue.bisection if event.bisecting else queue.main, event)
        return list(counted.values())


def _standing(keeper: Keeper) -> QueueFigures:
    figures = QueueFigures(keeper.key)
    beside = set(keeper.queue.bisected)
    for stay in keeper.queue.submissions.values():
        track = figures.bisection if stay.ticket in beside else figures.main
        track.awaiting += stay.state is PrState.NOT_READY
        track.depth += stay.state is not PrState.NOT_READY
        track.slots += stay.state is PrState.TESTING
    return figures


def _count(track: Figures, event: Figure) -> None:
    if event.source == PrState.TESTING:
        track.restarts += event.to == PrState.PENDING
        _add(track.tests, event.in_state)
    if event.first_run:
        _add(track.waits, event.in_queue)
    if event.to in TERMINAL:
        track.conclusions[event.to] = track.conclusions.get(event.to, 0) + 1
        _add(track.stays, event.in_queue)


def _add(seconds: list[float], milliseconds: int | None) -> None:
    if milliseconds is not None:
        seconds.append(milliseconds / 1000)
