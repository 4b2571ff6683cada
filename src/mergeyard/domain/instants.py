"""Time as the engine knows it: whole milliseconds since 1970, handed in, never read."""

from typing import NewType

Instant = NewType("Instant", int)

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def later(instant: Instant, milliseconds: int) -> Instant:
    return Instant(instant + milliseconds)


def earliest(*instants: Instant | None) -> Instant | None:
    return min((instant for instant in instants if instant is not None), default=None)
