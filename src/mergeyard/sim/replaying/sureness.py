"""How sure a replay is, in one word, and why in sentences that say what to do about it."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from mergeyard.sim.replaying.figures import Figures, Spread
from mergeyard.sim.replaying.guesses import Unknown
from mergeyard.sim.replaying.history import History
from mergeyard.sim.replaying.truth import Truth

TOO_FEW, ENOUGH = 20, 100
"""Merges: with fewer than the first a percentile is an accident, with more than the second it hardly moves."""
CLOSE, FAR = 0.10, 0.25
"""Shares, of what is wrong and of what is guessed."""
FLAKY = 0.05


class Sureness(StrEnum):
    """How well it is known; what comes later is worse."""

    WELL = "well"
    ROUGHLY = "roughly"
    HARDLY = "hardly"


WORST_LAST = list(Sureness)


class Doubt(Struct, frozen=True):
    sureness: Sureness
    words: str


class Findings(Struct, frozen=True, kw_only=True):
    """All that a verdict rests on."""

    history: History
    truth: Truth
    unknown: Unknown
    really: Figures
    replayed: Figures | None
    changed: Spread | None
    new_runs: float
    """The share of runs that never really ran."""
    wishes: Mapping[str, Any]


def doubts(found: Findings) -> list[Doubt]:
    """The gravest first."""
    every = (_few_merges, _no_end, _own_error, _accidents, _guesses, _flakes, _broken_bases, _moving_ground)
    listed = [doubt for each in every for doubt in each(found)]
    return sorted(listed, key=lambda doubt: -WORST_LAST.index(doubt.sureness))


def verdict(listed: list[Doubt]) -> Sureness:
    return max((doubt.sureness for doubt in listed), key=WORST_LAST.index, default=Sureness.WELL)


def own_error(really: Figures, replayed: Figures) -> tuple[float, str]:
    """By which share the replay of what was misses what was, and in which figure it does so most."""
    pairs = {
        "the median time to merge": (really.median, replayed.median),
        "the 95 % time to merge": (really.slow, replayed.slow),
        "the number of runs": (really.runs, replayed.runs),
        "the number of merges": (really.merged, replayed.merged),
    }
    errors = [(abs((now or 0) - was) / was, name) for name, (was, now) in pairs.items() if was]
    return max(errors, default=(0.0, ""))


def _few_merges(found: Findings) -> Iterator[Doubt]:
    merged = found.really.merged
    told = f"Only {_count(merged, 'pull request')} merged in this time" if merged else "Nothing merged in this time"
    if merged < TOO_FEW:
        yield Doubt(Sureness.HARDLY, f"{told}: choose a longer period, or ask again when {TOO_FEW} have merged.")
    elif merged < ENOUGH:
        yield Doubt(Sureness.ROUGHLY, f"{told}: from {ENOUGH} on chance matters little. Choose a longer period.")


def _no_end(found: Findings) -> Iterator[Doubt]:
    if found.replayed is None:
        yield Doubt(Sureness.HARDLY, "Even as it was, the replay does not come to an end: choose a shorter period.")
    elif found.changed is None:
        yield Doubt(Sureness.HARDLY, "With the change the replay does not come to an end: the queue would not keep up.")


def _own_error(found: Findings) -> Iterator[Doubt]:
    if found.replayed is None:
        return
    error, name = own_error(found.really, found.replayed)
    if error > CLOSE:
        words = f"Replayed as it was, {name} is {round(error * 100)} % off what it really was: a change that is smaller"
        yield Doubt(Sureness.HARDLY if error > FAR else Sureness.ROUGHLY, f"{words} says nothing.")


def _accidents(found: Findings) -> Iterator[Doubt]:
    if found.changed is None:
        return
    wide, name = _widest(found.changed)
    if wide > FAR:
        words = f"Small accidents change much here: drawn again and again, {name} differs by {round(wide * 100)} %."
        yield Doubt(Sureness.HARDLY if wide > 2 * FAR else Sureness.ROUGHLY, words)


def _widest(drawn: Spread) -> tuple[float, str]:
    figures = {"the median time to merge": "median", "the 95 % time to merge": "slow", "the number of runs": "runs"}
    edges = [(getattr(drawn.least, each), getattr(drawn.most, each), name) for name, each in figures.items()]
    return max((((most - least) / most, name) for least, most, name in edges if most), default=(0.0, ""))


def _guesses(found: Findings) -> Iterator[Doubt]:
    share = found.unknown.share
    if share > CLOSE:
        words = f"Of {round(share * 100)} % of the pull requests history does not tell all, so something is guessed."
        yield Doubt(Sureness.HARDLY if share > FAR else Sureness.ROUGHLY, words)


def _flakes(found: Findings) -> Iterator[Doubt]:
    if found.truth.flakes >= FLAKY and found.new_runs > 0.5:
        words = f"{round(found.truth.flakes * 100)} % of the runs were red for no reason: of runs that never ran nobody"
        yield Doubt(Sureness.ROUGHLY, f"{words} knows which would have been. Repair what flakes first.")


def _broken_bases(found: Findings) -> Iterator[Doubt]:
    if found.truth.broken_bases:
        times = _count(found.truth.broken_bases, "time")
        yield Doubt(Sureness.ROUGHLY, f"The target itself failed its tests {times}, which is not replayed.")


def _moving_ground(found: Findings) -> Iterator[Doubt]:
    if found.history.unread:
        yield Doubt(Sureness.ROUGHLY, "Settings were changed in this time, and not all of what they were can be read.")
    configs = [setting.config for setting in found.history.settings]
    for name in found.wishes:
        if len({getattr(config, name) for config in configs}) > 1:
            words = (
                f"{name.replace('_', ' ').capitalize()} was changed within this time, so it is compared with a mixture"
            )
            yield Doubt(Sureness.ROUGHLY, f"{words}: choose a period without that.")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
