"""Figures over several seeds: their mean, the least and the most."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import fields

from mergeyard.sim.racing.figures import Figures


class Range(Struct, frozen=True):
    mean: float
    least: float
    most: float


def range_of(values: Sequence[float]) -> Range:
    return Range(sum(values) / len(values), min(values), max(values))


def over_seeds(seeds: Sequence[Figures]) -> dict[str, Range]:
    """By the name of the figure."""
    names = [field.name for field in fields(Figures)]
    return {name: range_of([getattr(each, name) for each in seeds]) for name in names}


def spelled_out(ranges: dict[str, Range]) -> dict[str, float]:
    """As programs read it: the mean under its own name, with `_min` and `_max` beside it."""
    spelled = dict[str, float]()
    for name, found in ranges.items():
        spelled |= {name: found.mean, f"{name}_min": found.least, f"{name}_max": found.most}
    return {name: round(value, 4) for name, value in spelled.items()}
