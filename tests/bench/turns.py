"""Measures turns in yards of several sizes, side by side, so that noise on the machine meets them all alike."""

from collections.abc import Sequence
from statistics import fmean, median

from mergeyard.domain.config import Mode
from tests.bench.yard import KINDS, Spent, Yard


def measure(mode: Mode, sizes: Sequence[int], rounds: int) -> dict[str, float]:
    """Microseconds: of the mean turn in the median round, of the median turn of each kind, and of reading the work."""
    yards = {waiting: Yard(mode, waiting) for waiting in sizes}
    spent = {waiting: list[Spent]() for waiting in sizes}
    for _ in range(rounds):
        for waiting, yard in yards.items():
            spent[waiting].append(yard.go_round())
    numbers = dict[str, float]()
    for waiting in sizes:
        numbers[f"turn_us_{mode}_{waiting}_waiting"] = median(map(_mean_turn, spent[waiting]))
        for kind in (*KINDS, "work"):
            times = [time for round_ in spent[waiting] for time in round_[kind]]
            if times:
                numbers[f"{kind}_us_{mode}_{waiting}_waiting"] = median(times)
    most, least = max(sizes), min(sizes)
    dearest, cheapest = (numbers[f"turn_us_{mode}_{waiting}_waiting"] for waiting in (most, least))
    return {**numbers, f"turn_ratio_{mode}_{most}_to_{least}": dearest / cheapest}


def _mean_turn(spent: Spent) -> float:
    return fmean(time for kind in KINDS for time in spent[kind])
