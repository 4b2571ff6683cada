"""Knows who is on the way into a queue: looked at already, and not in it yet. News of them would reach nobody."""

from types import TracebackType
from typing import Self

from mergeyard.domain.ids import PrNumber


class Arrival:
    def __init__(self, number: PrNumber, under_way: dict[PrNumber, set["Arrival"]]) -> None:
        self.touched = False
        """Whether there was news of it meanwhile."""
        self._number = number
        self._under_way = under_way

    def __enter__(self) -> Self:
        self._under_way.setdefault(self._number, set()).add(self)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        others = self._under_way[self._number]
        others.remove(self)
        if not others:
            del self._under_way[self._number]


class Arrivals:
    def __init__(self) -> None:
        self._under_way: dict[PrNumber, set[Arrival]] = {}

    def of(self, number: PrNumber) -> Arrival:
        """From before it is looked at until it is in the queue."""
        return Arrival(number, self._under_way)

    def touch(self, number: PrNumber) -> None:
        for arrival in self._under_way.get(number, ()):
            arrival.touched = True
