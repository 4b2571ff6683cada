"""Foretells when those in a queue will merge, which takes longer than anybody here could wait."""

from collections.abc import Mapping
from typing import Protocol

from mergeyard.domain.expected import Expected
from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue


class ForetellingTrouble(Exception):
    """Nothing was foretold, and nobody waits for it: there is always a guess."""


Forecast = Mapping[Ticket, Expected | None]
"""None: to this one nobody should promise a time. Of whoever is not in it nothing is foretold."""
NOTHING_FORETOLD: Forecast = {}


class Foreteller(Protocol):
    async def foretell(self, queue: Queue, now: Instant) -> Forecast:
        """Of all that are in it, if nobody comes; raises `ForetellingTrouble`."""
        ...

    async def close(self) -> None: ...
