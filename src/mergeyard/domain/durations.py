"""How long a run took, in milliseconds. Of one that was stopped it is only known that it would have taken longer."""

from collections.abc import Iterable

from msgspec import Struct


class LongerThan(Struct, frozen=True):
    milliseconds: int


Duration = int | LongerThan


def whole(durations: Iterable[Duration]) -> list[int]:
    """Of those that came to their end."""
    return [took for took in durations if isinstance(took, int)]


def cut_short(durations: Iterable[Duration]) -> list[int]:
    """How long those took that were stopped."""
    return [took.milliseconds for took in durations if isinstance(took, LongerThan)]
