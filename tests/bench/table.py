"""Draws the numbers of the benchmark as one table."""

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table

from mergeyard.domain.config import Mode
from tests.bench.placement import IN_LINE
from tests.bench.promises import DEARER_AT_MOST, FASTER_AT_LEAST
from tests.bench.yard import CONCURRENCY, KINDS


def drawn(numbers: Mapping[str, float], sizes: Sequence[int], targets_each: Sequence[int]) -> Table:
    table = Table(title="Microseconds", show_header=False, expand=True)
    table.add_column()
    for _ in range(5):
        table.add_column(justify="right")
    for mode in Mode:
        _add_turns(table, numbers, mode, sizes)
    _add_placement(table, numbers, targets_each)
    return table


def _add_turns(table: Table, numbers: Mapping[str, float], mode: Mode, sizes: Sequence[int]) -> None:
    most, least = max(sizes), min(sizes)
    title = f"{mode.capitalize()} mode, {CONCURRENCY} under test; waiting:"
    table.add_row(title, *_counts(sizes), f"{most:,} ÷ {least:,}", style="bold")
    for kind in ("turn", *KINDS, "work"):
        times = [numbers.get(f"{kind}_us_{mode}_{waiting}_waiting") for waiting in sizes]
        dearest, cheapest = times[sizes.index(most)], times[sizes.index(least)]
        if dearest is not None and cheapest is not None:
            limit = f" (≤ {DEARER_AT_MOST})" if kind == "turn" else ""
            table.add_row(
                _TITLES.get(kind, kind.replace("_", " ")), *map(_time, times), f"{dearest / cheapest:.2f}{limit}"
            )
    table.add_section()


def _add_placement(table: Table, numbers: Mapping[str, float], targets_each: Sequence[int]) -> None:
    table.add_row(f"One more among {IN_LINE:,} in the line; targets each:", *_counts(targets_each), style="bold")
    for name, title in _PLACEMENT_TITLES.items():
        table.add_row(title, *(_time(numbers[f"{name}_us_{targets}_targets"]) for targets in targets_each))
    speedups = (f"{numbers[f'lane_placement_speedup_{targets}_targets']:,.0f}×" for targets in targets_each)
    table.add_row("times as fast", *speedups, "", f"(≥ {FASTER_AT_LEAST}×)")


_TITLES = {"turn": "a turn of the mix", "work": "(reading off the work, besides)"}
_PLACEMENT_TITLES = {
    "lane_query": "found in the index",
    "lane_placement": "found and claimed in the index",
    "naive_placement": "every pair asked",
}


def _counts(counts: Iterable[int]) -> list[str]:
    return [f"{count:,}" for count in counts]


def _time(microseconds: float | None) -> str:
    return "" if microseconds is None else f"{microseconds:,.0f}"
