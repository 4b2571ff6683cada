"""Counts the outcomes of a campaign, and shows them as tables."""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from rich.table import Table

from tests.campaign.round import METHODS, Outcome

LARGEST_ROW = 5
MORE = f"{LARGEST_ROW + 1}+"


class CampaignReport(Struct):
    rounds: int = 0
    landings: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By merge method and by the number of pull requests that landed together."""
    modes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    ends: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    interference: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    heads: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def add(self, outcome: Outcome) -> None:
        method, plan = outcome.plan.method, outcome.plan
        self.rounds += 1
        self.landings.update((method, str(size) if size <= LARGEST_ROW else MORE) for size in outcome.sizes)
        ways = {
            "in parallel mode" if plan.parallel else "in single mode": len(outcome.sizes),
            "rebased": outcome.rebased,
            "direct": outcome.direct,
            "not comparable with plain git": outcome.not_comparable,
            "signed commits verified": outcome.signed,
        }
        for counter, more in (
            (self.modes, ways),
            (self.kinds, outcome.kinds),
            (self.ends, outcome.ends),
            (self.interference, outcome.interference),
            (self.heads, outcome.heads),
        ):
            counter.update(by_method(method, more))

    @property
    def total(self) -> int:
        return self.landings.total()

    @property
    def merged(self) -> int:
        return sum(count for (_, end), count in self.ends.items() if end.startswith("merged: merged_by_queue"))

    def describe_counts(self) -> str:
        counts = Counter[str]()
        for (method, _), count in self.landings.items():
            counts[method] += count
        return ", ".join(f"{counts[method]:,} {method}" for method in METHODS)

    def tables(self) -> Iterable[Table]:
        yield with_sums(table("landings by number of pull requests", self.landings), self.landings)
        yield table("landings", self.modes)
        yield table("pull requests that landed with", self.kinds)
        yield table("how submissions ended", self.ends)
        yield table("interference on the Git host", self.interference)
        yield table("head branches of merged pull requests", self.heads)


def by_method(method: str, counts: Mapping[str, int]) -> dict[tuple[str, str], int]:
    return {(method, name): count for name, count in counts.items()}


def table(title: str, counts: Counter[tuple[str, str]]) -> Table:
    drawn = Table(title, *METHODS, "all")
    for column in drawn.columns[1:]:
        column.justify = "right"
    for name in sorted({name for _, name in counts}):
        numbers = [counts[method, name] for method in METHODS]
        drawn.add_row(name, *map("{:,}".format, (*numbers, sum(numbers))))
    return drawn


def with_sums(drawn: Table, counts: Counter[tuple[str, str]]) -> Table:
    sums = [sum(count for (other, _), count in counts.items() if other == method) for method in METHODS]
    drawn.add_section()
    drawn.add_row("all", *map("{:,}".format, (*sums, sum(sums))))
    return drawn
