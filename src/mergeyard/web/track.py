"""The line as the track that people see: the target's station, the batches upon it as wagons, the sidings beside it.

Only what is shown is built, whatever else the queue holds.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import BatchId, PrNumber, Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.landing import Phase
from mergeyard.domain.line import Batch
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.domain.targets import Targets
from mergeyard.engine import holding, proving
from mergeyard.web import rails
from mergeyard.web.rails import Spot
from mergeyard.web.sidings import Siding, siding
from mergeyard.web.trials import Trial, trial

MOST_WAGONS = 60
MOST_CARS = 10
MOST_NAMES = 3


class Mark(StrEnum):
    LANDING = "landing"
    PASSED = "passed"
    CLEARED = "cleared"
    TESTING = "testing"
    BUILDING = "building"
    RED = "red"
    WAITING = "waiting"


class Car(Struct, frozen=True, kw_only=True):
    number: PrNumber
    title: str
    author: str
    state: PrState
    urgent: bool
    forced: bool


class Shared(Struct, frozen=True):
    """Some of the targets for whose sake one stands upon another, and how many more there are."""

    with_: tuple[PrNumber, ...]
    names: tuple[str, ...]
    more: int
    everything: bool


class Wagon(Struct, frozen=True, kw_only=True):
    id: BatchId
    place: int
    """From 1 in the line."""
    cars: tuple[Car, ...]
    more: int
    mark: Mark
    trial: Trial | None
    urgent: bool
    composed: bool
    upon: tuple[Shared, ...]
    """Empty in single mode, where everybody stands upon all before."""


class Station(Struct, frozen=True, kw_only=True):
    name: str
    tip: Sha | None
    broken: bool
    """The tip fails its own tests."""
    trial: Trial | None
    """Of the target itself."""
    landing: tuple[PrNumber, ...]
    phase: Phase | None


class Track(Struct, frozen=True, kw_only=True):
    station: Station
    lanes: Sequence[Sequence[Spot]]
    wagons: Mapping[BatchId, Wagon]
    hidden: int
    """Batches further behind."""
    sidings: tuple[Siding, ...]

    @property
    def branched(self) -> bool:
        return len(self.lanes) > 1


def track(queue: Queue, now: Instant) -> Track:
    shown = queue.line.batches[:MOST_WAGONS]
    upon = _upon(queue, shown)
    wagons = [_wagon(queue, batch, upon[batch.id], place, now) for place, batch in enumerate(shown, start=1)]
    return Track(
        station=_station(queue, now),
        lanes=rails.laid([batch.id for batch in shown], upon),
        wagons={wagon.id: wagon for wagon in wagons},
        hidden=len(queue.line.batches) - len(shown),
        sidings=tuple(siding(queue, bisection, now) for bisection in queue.bisections),
    )


def _upon(queue: Queue, shown: Sequence[Batch]) -> dict[BatchId, list[BatchId]]:
    """Whom each stands upon, without those that stand beneath another of them."""
    if queue.mode is Mode.SINGLE:
        return {batch.id: [other.id for other in shown[max(0, at - 1) : at]] for at, batch in enumerate(shown)}
    upon = dict[BatchId, list[BatchId]]()
    for batch in shown:
        beneath, direct = set[BatchId](), list[BatchId]()
        for other in reversed(queue.line.ahead[batch.id]):
            if other not in beneath:
                direct.insert(0, other)
                beneath.update(queue.line.ahead[other])
        upon[batch.id] = direct
    return upon


def _wagon(queue: Queue, batch: Batch, upon: Sequence[BatchId], place: int, now: Instant) -> Wagon:
    run = holding.passed_run(queue, batch) or holding.current_run(queue, batch)
    now_is = mark(queue, batch)
    beneath = [other for other in queue.line.batches if other.id in upon] if queue.mode is Mode.PARALLEL else []
    return Wagon(
        id=batch.id,
        place=place,
        cars=tuple(_car(queue.submissions[ticket]) for ticket in batch.tickets[:MOST_CARS]),
        more=max(0, len(batch.tickets) - MOST_CARS),
        mark=now_is,
        trial=None if run is None or run.restarted else trial(queue, run, now),
        urgent=batch.urgent,
        composed=now_is is Mark.LANDING and queue.landing is not None and queue.landing.composed,
        upon=tuple(_shared(queue, batch.targets, other) for other in beneath),
    )


def _car(stay: Submission) -> Car:
    return Car(
        number=stay.number,
        title=stay.pull.title,
        author=stay.pull.author,
        state=stay.state,
        urgent=stay.urgent,
        forced=stay.forced,
    )


def mark(queue: Queue, batch: Batch) -> Mark:
    run = holding.current_run(queue, batch)
    if queue.landing is not None and batch.tickets[0] in queue.landing.tickets:
        return Mark.LANDING
    if holding.passed(queue, batch):
        return Mark.PASSED
    if holding.cleared(queue, batch):
        return Mark.CLEARED
    if run is None or holding.to_be_repeated(queue, run):
        return Mark.WAITING
    if holding.failed_for_good(queue, run):
        return Mark.RED
    return Mark.BUILDING if run.status is RunStatus.PREPARING else Mark.TESTING


def _shared(queue: Queue, targets: Targets, other: Batch) -> Shared:
    numbers = tuple(queue.submissions[ticket].number for ticket in other.tickets[:MOST_CARS])
    if targets.everything or other.targets.everything:
        return Shared(numbers, (), 0, everything=True)
    names = sorted(targets.names & other.targets.names)
    return Shared(numbers, tuple(names[:MOST_NAMES]), max(0, len(names) - MOST_NAMES), everything=False)


def _station(queue: Queue, now: Instant) -> Station:
    landing, target = queue.landing, queue.target
    bare = next((run for run in proving.bare_runs(queue).values() if run.active), None)
    return Station(
        name=target.name,
        tip=target.tip,
        broken=target.tip in target.broken,
        trial=None if bare is None else trial(queue, bare, now),
        landing=() if landing is None else tuple(member.number for member in landing.members[:MOST_CARS]),
        phase=None if landing is None else landing.phase,
    )
