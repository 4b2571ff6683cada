"""`python -m tests.campaign --landings 1000` judges so many landings; `--round 7` plays one round again.

The same seed brings the same people, changes and meddling. Names of commits differ, for they hold the time of day.
"""

from time import monotonic
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.campaign.campaign import play_once, play_until, replay_command
from tests.campaign.round import Outcome
from tests.campaign.tally import Tally

SHOWN = 20
console = Console()


def main(
    landings: Annotated[int, typer.Option(help="How many landings to judge, at least.")] = 1000,
    seed: Annotated[int, typer.Option(help="The first round.")] = 0,
    only: Annotated[int | None, typer.Option("--round", help="Play only this round, and tell of it.")] = None,
) -> None:
    if only is not None:
        tell(play_once(only))
        return
    tally, wrong, began = Tally(), list[Outcome](), monotonic()
    columns = (TextColumn("landings"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=landings)
        for outcome in play_until(landings, seed):
            tally.add(outcome)
            progress.update(bar, completed=tally.total)
            if outcome.faults:
                wrong.append(outcome)
                tell_faults(outcome)
    for table in tally.tables():
        console.print(table)
    seconds = monotonic() - began
    figures = f"{tally.total:,} landings of {tally.merged:,} pull requests in {tally.rounds:,} rounds"
    console.print(f"{figures}, {tally.total / seconds:.1f} a second; {len(wrong)} rounds with faults")
    raise typer.Exit(1 if wrong else 0)


def tell_faults(outcome: Outcome) -> None:
    console.print(f"[red]round {outcome.seed}[/] ({outcome.plan.method}): {replay_command(outcome.seed)}")
    for fault in outcome.faults[:SHOWN]:
        console.print(f"  {fault}", markup=False, highlight=False)


def tell(outcome: Outcome) -> None:
    console.print(outcome)
    if outcome.faults:
        tell_faults(outcome)
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
