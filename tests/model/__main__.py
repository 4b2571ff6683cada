"""`python -m tests.model --worlds 100000` plays many worlds; `--seed 7` plays one again and prints every decision."""

from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from mergeyard.domain.journal import PullRequestChanged
from mergeyard.engine.views import render_text
from tests.model.campaign import Outcome, play_many, replay_command
from tests.model.world import RandomWorld
from tests.support.violations import record_violation

MAX_BROKEN_SHOWN = 10
console = Console()


def main(
    worlds: Annotated[int, typer.Option(help="How many worlds to play.")] = 10_000,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    seed: Annotated[int | None, typer.Option(help="Play only this world and print every decision.")] = None,
) -> None:
    if seed is not None:
        print_world(seed)
        return
    outcomes = play_with_progress(range(first, first + worlds))
    broken = [outcome for outcome in outcomes if outcome.broken]
    show_summary(outcomes)
    for outcome in broken[:MAX_BROKEN_SHOWN]:
        console.print(f"[red]seed {outcome.seed}[/]: {outcome.broken}\n  {replay_command(outcome.seed)}")
    console.print(f"{len(outcomes) - len(broken)} passed, {len(broken)} failed")
    raise typer.Exit(1 if broken else 0)


def play_with_progress(seeds: range) -> list[Outcome]:
    columns = (TextColumn("worlds"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    outcomes = list[Outcome]()
    with Progress(*columns, console=console) as progress:
        for outcome in progress.track(play_many(seeds), total=len(seeds)):
            outcomes.append(outcome)
            if outcome.broken:
                record_violation(f"{outcome.broken}\n  {replay_command(outcome.seed)}")
    return outcomes


def show_summary(outcomes: list[Outcome]) -> None:
    ends = Counter[str]()
    for outcome in outcomes:
        ends.update(outcome.ends)
    table = Table(
        "how submissions ended", "times", title=f"{sum(outcome.decisions for outcome in outcomes):,} decisions"
    )
    for end, times in ends.most_common():
        table.add_row(end, f"{times:,}")
    console.print(table)


def print_world(seed: int) -> None:
    random_world = RandomWorld(seed)
    console.print(random_world.faults, random_world.world.queue.config)

    def print_decision(_: object, events: object, _decision: object) -> None:
        queue = random_world.world.queue
        console.print(f"[dim]{queue.counters.revision}[/] {render_text(queue)}", events, highlight=False)

    random_world.world.listeners.insert(0, print_decision)
    try:
        random_world.run()
    finally:
        for entry in random_world.world.journal:
            console.print(format_entry(entry), highlight=False)


def format_entry(entry: PullRequestChanged) -> str:
    return f"#{entry.number} {entry.source} → {entry.to}: {entry.reason}"


if __name__ == "__main__":
    typer.run(main)
