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


def format_clock(instant: Instant) -> str:
    """The time of the day: 12:40 UTC."""
    minutes = instant // MINUTE % (DAY // MINUTE)
    return f"{minutes // 60:02}:{minutes % 60:02} UTC"


DURATION_UNITS = (
    (DAY, "d", HOUR, "h"),
    (HOUR, "h", MINUTE, "min"),
    (MINUTE, "min", SECOND, "s"),
)
"""Each with the unit that follows it."""


def format_duration(milliseconds: float | None) -> str:
    """Rounded, in at most two units: 2 d 3 h, 1 h 59 min, 1 min 59 s, 41 s, <1 s."""
    if milliseconds is None:
        return "–"
    if milliseconds < SECOND:
        return "<1 s" if milliseconds > 0 else "0 s"
    rounded = round_to(milliseconds, SECOND)
    for unit, name, smaller, smaller_name in DURATION_UNITS:
        if rounded < unit:
            continue
        rounded = round_to(rounded, smaller)
        count, rest = divmod(rounded, unit)
        if name == "h" and count == DAY // HOUR:
            return "1 d"
        return f"{count} {name} {rest // smaller} {smaller_name}" if rest else f"{count} {name}"
    return f"{rounded // SECOND} s"


def round_to(milliseconds: float, unit: int) -> int:
    return int(milliseconds / unit + 0.5) * unit
