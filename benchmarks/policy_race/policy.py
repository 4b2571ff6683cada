"""The interface of a policy: it gets observations and returns actions."""

from typing import Protocol

from msgspec import Struct

from mergeyard.simulation.engine_driver import Actions, ChangeNumber, SimulatedRun


class Change(Struct, frozen=True, kw_only=True):
    """A pull request as policies see it."""

    number: ChangeNumber
    arrived_at: int
    """Arrival time in milliseconds."""
    parts: frozenset[int] = frozenset({0})
    author: str = ""
    size: int = 1
    """In lines."""


class Observations(Struct, frozen=True):
    arrived: tuple[Change, ...] = ()
    finished: tuple[tuple[SimulatedRun, bool], ...] = ()
    """Finished runs, and whether they passed."""


class Policy(Protocol):
    def react(self, news: Observations, now: int, /) -> Actions: ...
