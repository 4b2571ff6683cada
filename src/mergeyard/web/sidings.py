"""The siding beside the line on which a red batch is bisected: who is cleared, who is suspected, what is tested."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.ids import BatchId, PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.domain.line import Bisection
from mergeyard.domain.queue import Queue
from mergeyard.engine import holding
from mergeyard.web.trials import Trial, trial


class Role(StrEnum):
    CLEARED = "cleared"
    """Of a prefix that passed."""
    SUSPECTED = "suspected"
    SUSPECT = "suspect"
    """The only one left."""
    BEHIND = "behind"
    """Behind a red prefix, and so no longer asked."""


class Suspect(Struct, frozen=True):
    number: PrNumber
    title: str
    role: Role
    here: bool
    """Whether it still stands on this siding, and nowhere else."""


class Probe(Struct, frozen=True):
    """A prefix of the batch under test, or the suspect alone, upon those that merged."""

    start: int
    length: int
    trial: Trial


class Siding(Struct, frozen=True, kw_only=True):
    id: BatchId
    suspects: tuple[Suspect, ...]
    green: int
    red: int
    probes: tuple[Probe, ...]
    searching: bool
    suspect: PrNumber
    beneath: tuple[PrNumber, ...]
    """Those that must merge before the suspect is tested once more."""


def siding(queue: Queue, bisection: Bisection, now: Instant) -> Siding:
    numbers = {member.ticket: member.number for member in bisection.failed.tested}
    members = frozenset(bisection.members)
    return Siding(
        id=bisection.id,
        suspects=tuple(
            Suspect(
                numbers[ticket],
                "" if (stay := queue.submissions.get(ticket)) is None else stay.pull.title,
                _role(bisection, at),
                here=ticket in members and stay is not None,
            )
            for at, ticket in enumerate(bisection.tickets, start=1)
        ),
        green=bisection.green,
        red=bisection.red,
        probes=tuple(sorted(_probes(queue, bisection, now), key=lambda probe: probe.length)),
        searching=bisection.searching,
        suspect=numbers[bisection.suspect],
        beneath=tuple(
            numbers[ticket]
            for ticket in bisection.prefix
            if ticket not in bisection.merged and ticket in queue.submissions
        ),
    )


def _probes(queue: Queue, bisection: Bisection, now: Instant) -> list[Probe]:
    active = holding.active_runs(queue, bisection.runs)
    start = bisection.red - 1 if bisection.confirming else 0
    return [Probe(start, run.tests, trial(queue, run, now)) for run in active]


def _role(bisection: Bisection, place: int) -> Role:
    if place <= bisection.green:
        return Role.CLEARED
    if place > bisection.red:
        return Role.BEHIND
    return Role.SUSPECTED if bisection.searching else Role.SUSPECT
