"""`python -m tests.simulation --worlds 100000` plays many worlds; `--seed 7` plays one again and shrinks it."""

from collections import Counter
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from tests.simulation.campaign import Outcome, as_test, play, play_many, replay_command, shrink_script
from tests.simulation.faults import Family
from tests.simulation.generator import PAIRS, draw
from tests.support.violations import record_violation

MAX_BROKEN_SHOWN = 10
PHASES = ("idle", "waiting", "building", "testing", "bisecting", "landing", "starting")
console = Console()


def main(
    worlds: Annotated[int, typer.Option(help="How many worlds to play.")] = 2000,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    seed: Annotated[int | None, typer.Option(help="Play only this world; if it breaks a promise, shrink it.")] = None,
    reviews: Annotated[bool, typer.Option(help="The Git host of every world requires approvals.")] = False,
    heads: Annotated[bool, typer.Option(help="Pull requests of every world have head branches that move.")] = False,
) -> None:
    if seed is not None:
        print_world(seed, with_reviews=reviews, with_heads=heads)
        return
    begun = perf_counter()
    outcomes = play_with_progress(range(first, first + worlds), with_reviews=reviews, with_heads=heads)
    seconds = perf_counter() - begun
    broken = [outcome for outcome in outcomes if outcome.broken]
    show_ends(outcomes)
    show_faults(outcomes)
    if heads:
        show_head_pushes(outcomes)
    show_withdrawals(outcomes)
    for outcome in broken[:MAX_BROKEN_SHOWN]:
        command = replay_command(outcome.seed, with_reviews=reviews, with_heads=heads)
        console.print(f"[red]seed {outcome.seed}[/]: {outcome.broken[0]}\n  {command}")
    rate = f"{worlds / seconds:.1f} seeds per second"
    console.print(f"{len(outcomes) - len(broken)} passed, {len(broken)} failed, {rate}")
    raise typer.Exit(1 if broken else 0)


def play_with_progress(seeds: range, *, with_reviews: bool, with_heads: bool) -> list[Outcome]:
    columns = (TextColumn("worlds"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    outcomes = list[Outcome]()
    with Progress(*columns, console=console) as progress:
        played = play_many(seeds, with_reviews=with_reviews, with_heads=with_heads)
        for outcome in progress.track(played, total=len(seeds)):
            outcomes.append(outcome)
            if outcome.broken:
                command = replay_command(outcome.seed, with_reviews=with_reviews, with_heads=with_heads)
                record_violation(f"{outcome.broken[0]}\n  {command}")
    return outcomes


def show_ends(outcomes: list[Outcome]) -> None:
    ends = Counter[str]()
    for outcome in outcomes:
        ends.update(outcome.ends)
    landings = sum(outcome.landings for outcome in outcomes)
    table = Table("how submissions ended", "times", title=f"{landings:,} landings")
    for end, times in ends.most_common():
        table.add_row(end, f"{times:,}")
    console.print(table)


def show_faults(outcomes: list[Outcome]) -> None:
    """How often each family of faults occurred in each phase of the queue."""
    occurrences = Counter[tuple[Family, str]]()
    for outcome in outcomes:
        occurrences.update(outcome.occurrences)
    on = Counter(family for outcome in outcomes for family in outcome.families)
    table = Table("faults", "worlds", *PHASES, title="How often faults occurred, by phase of the queue")
    for family in Family:
        table.add_row(family, f"{on[family]:,}", *(f"{occurrences[family, phase]:,}" for phase in PHASES))
    console.print(table)
    together = sum(any({*pair} <= outcome.families for outcome in outcomes) for pair in PAIRS)
    console.print(f"{together} of {len(PAIRS)} pairs of families were enabled together.")


def show_withdrawals(outcomes: list[Outcome]) -> None:
    withdrawals = Counter[str]()
    for outcome in outcomes:
        withdrawals.update(outcome.withdrawals)
    worlds = sum(bool(outcome.withdrawals) for outcome in outcomes)
    table = Table("an approval was withdrawn while the pull request was", "times", title=f"{worlds:,} worlds")
    for moment, times in withdrawals.most_common():
        table.add_row(moment, f"{times:,}")
    console.print(table)


def show_head_pushes(outcomes: list[Outcome]) -> None:
    pushes = Counter[str]()
    for outcome in outcomes:
        pushes.update(outcome.head_pushes)
    table = Table("a head branch was", "times")
    for what, times in pushes.most_common():
        table.add_row(what, f"{times:,}")
    console.print(table)


def print_world(seed: int, *, with_reviews: bool, with_heads: bool) -> None:
    outcome = play(seed, with_reviews=with_reviews, with_heads=with_heads)
    if not outcome.broken:
        console.print(f"seed {seed} keeps every promise")
        return
    for broken in outcome.broken:
        console.print(f"[red]{broken}[/]", highlight=False)
    console.print(as_test(shrink_script(draw(seed, with_reviews=with_reviews, with_heads=with_heads))), highlight=False)
    raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
