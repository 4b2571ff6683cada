"""The figures of a period: as it was, or as a replay gives it, over the same pull requests and by the same rules."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median_low

from msgspec import Struct, convert
from msgspec.structs import fields

from mergeyard.sim.racing.figures import percentile
from mergeyard.sim.replaying.history import End, History
from mergeyard.sim.replaying.replay import Outcome, Replayed


class Figures(Struct, frozen=True, kw_only=True):
    merged: int
    failed: int
    left: int
    median: int | None
    """Milliseconds from admission to the merge, of those that merged; so is the next, for 95 of 100."""
    slow: int | None
    runs: int
    runs_per_merge: float | None
    spent: int
    """Milliseconds of CI, from the start of each run to its end."""


class Spread(Struct, frozen=True):
    """Of several draws of the same, figure by figure."""

    middle: Figures
    least: Figures
    most: Figures


def spread(draws: Sequence[Figures]) -> Spread:
    return Spread(_each(draws, median_low), _each(draws, min), _each(draws, max))


def really(history: History) -> Figures:
    ends = [Outcome(each.at, each.ended_at, each.end) for each in history.arrivals if each.counted]
    lengths = [run.length for run in history.runs if history.counts(run.tested, run.started_at)]
    return _figures(ends, lengths)


def replayed(history: History, replay: Replayed) -> Figures:
    ends = [outcome for place, outcome in replay.outcomes.items() if history.arrivals[place].counted]
    counted = (run for run in replay.runs if history.counts(run.tested, run.started_at))
    return _figures(ends, [run.ended_at - run.started_at for run in counted])


def _figures(ends: Iterable[Outcome], lengths: Sequence[int]) -> Figures:
    ended = tuple(ends)
    counts = Counter(each.end for each in ended)
    waits = sorted(each.ended_at - each.came_at for each in ended if each.end is End.MERGED)
    return Figures(
        merged=counts[End.MERGED],
        failed=counts[End.FAILED],
        left=counts[End.LEFT] + counts[End.BESIDE],
        median=round(percentile(waits, 0.50)) if waits else None,
        slow=round(percentile(waits, 0.95)) if waits else None,
        runs=len(lengths),
        runs_per_merge=len(lengths) / counts[End.MERGED] if counts[End.MERGED] else None,
        spent=sum(lengths),
    )


def _each(draws: Sequence[Figures], choose: Callable[[Sequence[float]], float]) -> Figures:
    """Where nothing merged in any of them, nobody knows how long it takes."""
    values = {field.name: [getattr(draw, field.name) for draw in draws] for field in fields(Figures)}
    return convert({name: None if None in each else choose(each) for name, each in values.items()}, Figures)
