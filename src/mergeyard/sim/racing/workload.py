"""A workload: how many changes come, how good they are, how they hinder each other, and how many runs fit at once."""

from msgspec import Struct

from mergeyard.domain.instants import HOUR, MINUTE

MEDIAN_BUILD = 30 * MINUTE
SIGMA = 0.5
"""Of the logarithm of build times: one in six takes longer than 50 minutes, one in six less than 18."""
SHORTEST_BUILD, LONGEST_BUILD = 5 * MINUTE, 120 * MINUTE


class Workload(Struct, frozen=True, kw_only=True):
    rate: float = 100.0
    """Changes per hour."""
    hours: float = 6.0
    """How long changes come; the race goes on until each of them is decided."""
    workers: int = 100
    """How many runs at once."""
    success: float = 0.9
    """The share of changes that are good by themselves."""
    conflict: float = 0.01
    """Of every two that touch a common part and arrive within one median build: the share that breaks together."""
    flakes: float = 0.0
    """The share of runs that are red for no reason."""
    parts: int = 100
    """Into how many parts the code falls."""
    wide: float = 0.0
    """The share of changes that touch two parts."""

    @property
    def arriving(self) -> int:
        """Milliseconds in which changes come."""
        return round(self.hours * HOUR)
