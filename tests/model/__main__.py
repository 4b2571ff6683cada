"""`python -m tests.model --worlds 100000` plays many worlds; `--seed 7` plays one again and tells its story."""

from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from mergeyard.domain.journal import PrChanged
from mergeyard.engine.picture import picture
from tests.model.campaign import Outcome, play_many, replay_command
from tests.model.world import RandomWorld

SHOWN = 10
console = Console()


def main(
    worlds: Annotated[int, typer.Option(help="How many worlds to play.")] = 10_000,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    seed: Annotated[int | None, typer.Option(help="Play only this world and tell its story.")] = None,
) -> None:
    if seed is not None:
        tell_story(seed)
        return
    outcomes = play_with_progress(range(first, first + worlds))
    broken = [outcome for outcome in outcomes if outcome.broken]
    show_summary(outcomes)
    for outcome in broken[:SHOWN]:
        console.print(f"[red]seed {outcome.seed}[/]: {outcome.broken}\n  {replay_command(outcome.seed)}")
    console.print(f"{len(outcomes) - len(broken)} passed, {len(broken)} failed")
    raise typer.Exit(1 if broken else 0)


def play_with_progress(seeds: range) -> list[Outcome]:
    columns = (TextColumn("worlds"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        return list(progress.track(play_many(seeds), total=len(seeds)))


def show_summary(outcomes: list[Outcome]) -> None:
    ends = Counter[str]()
    for outcome in outcomes:
        ends.update(outcome.ends)
    table = Table("how stays ended", "times", title=f"{sum(outcome.turns for outcome in outcomes):,} turns")
    for end, times in ends.most_common():
        table.add_row(end, f"{times:,}")
    console.print(table)


def tell_story(seed: int) -> None:
    random_world = RandomWorld(seed)
    console.print(random_world.faults, random_world.world.queue.config)

    def tell(_: object, events: object, _decision: object) -> None:
        queue = random_world.world.queue
        console.print(f"[dim]{queue.counters.turns}[/] {picture(queue)}", events, highlight=False)

    random_world.world.watchers.insert(0, tell)
    try:
        random_world.run()
    finally:
        for entry in random_world.world.journal:
            console.print(tell_entry(entry), highlight=False)


def tell_entry(entry: PrChanged) -> str:
    return f"#{entry.number} {entry.source} → {entry.to}: {entry.reason}"


if __name__ == "__main__":
    typer.run(main)
