"""Queues of which it is known what they will believe, and a foreteller that is asked and answers within the test."""

from random import Random

from msgspec.structs import replace

from mergeyard.domain.expected import Expected
from mergeyard.domain.experience import Experience
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.queue import Queue
from mergeyard.engine.learning import ANYBODY
from mergeyard.ports.foretelling import Forecast, ForetellingTrouble
from mergeyard.sim.foretelling.forecast import FEWEST, foretell

SURE = 50.0
"""Odds that no dice ever beat."""
CROOK = "mallory"


def certain(queue: Queue, *bad: int, minutes: int = 10) -> Queue:
    """Every run takes this long, these are surely bad, and everybody else is surely good."""
    for number in bad:
        queue = by(CROOK, queue, number)
    weights = {ANYBODY: SURE, f"author {CROOK}": -2 * SURE}
    return replace(queue, durations=(minutes * MINUTE,) * 10_000, experience=Experience(weights))


def by(author: str, queue: Queue, number: int) -> Queue:
    stay = queue.submissions[queue.tickets[PrNumber(number)]]
    theirs = replace(stay, pull=replace(stay.pull, author=author))
    return replace(queue, submissions=queue.submissions.put(stay.ticket, theirs))


class PatientForeteller:
    """In this process, as no server would: whoever waits for it waits for all of it."""

    def __init__(self) -> None:
        self.asked: list[Queue] = []
        self.closed = False
        self.trouble: ForetellingTrouble | None = None

    async def foretell(self, queue: Queue, now: Instant) -> Forecast:
        self.asked.append(queue)
        if self.trouble is not None:
            raise self.trouble
        expected = foretell(queue, now, map(Random, range(FEWEST)))
        return {ticket: each and Expected(each.middle, each.late) for ticket, each in expected.items()}

    async def close(self) -> None:
        self.closed = True
