"""Points in time as whole milliseconds since 1970. The engine gets them as arguments and never reads a clock."""

from collections.abc import Iterable
from typing import NewType

from msgspec import Struct

Instant = NewType("Instant", int)

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def later(instant: Instant, milliseconds: int) -> Instant:
    return Instant(instant + milliseconds)


def earliest(*instants: Instant | None) -> Instant | None:
    return min((instant for instant in instants if instant is not None), default=None)


class LongerThan(Struct, frozen=True):
    milliseconds: int


Duration = int | LongerThan


def completed_durations(durations: Iterable[Duration]) -> list[int]:
    """The durations of runs that finished."""
    return [duration for duration in durations if isinstance(duration, int)]


def stopped_durations(durations: Iterable[Duration]) -> list[int]:
    """The lower bounds from runs that were stopped."""
    return [duration.milliseconds for duration in durations if isinstance(duration, LongerThan)]


class MergeEstimate(Struct, frozen=True):
    median: Instant
    """Half of the outcomes are earlier."""
    p90: Instant
    """Nine of ten outcomes are earlier."""
