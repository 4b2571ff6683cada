"""Counts why stays ended, and why tests were given up."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from mergeyard.domain.states import TERMINAL
from mergeyard.ports.store import Figure
from mergeyard.service.history.past import is_restart


class Why(Struct, frozen=True):
    state: str
    reason: str
    count: int


def of_conclusions(figures: Iterable[Figure]) -> list[Why]:
    return _counted(figure for figure in figures if figure.to in TERMINAL)


def of_restarts(figures: Iterable[Figure]) -> list[Why]:
    return _counted(figure for figure in figures if is_restart(figure))


def _counted(figures: Iterable[Figure]) -> list[Why]:
    """The most frequent first; among equals, by their names."""
    counts = Counter((figure.to, figure.reason) for figure in figures)
    return [Why(*which, count) for which, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
