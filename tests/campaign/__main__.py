"""`python -m tests.campaign --landings 1000` checks this many per merge method; `--round 7` runs one round again.

The same seed gives the same pull requests, changes and interference. Commit SHAs differ, as they contain the time.
"""

from time import monotonic
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.campaign.campaign import replay_command, run_round, run_rounds
from tests.campaign.report import CampaignReport
from tests.campaign.round import METHODS, Outcome
from tests.support.violations import record_violation

SHOWN_FAULTS = 20
COUNTS_INTERVAL = 100
"""After so many landings the counts are written to a log, so that a run that is stopped leaves figures."""
console = Console()


def main(
    landings: Annotated[int, typer.Option(help="How many landings to check with each merge method.")] = 1000,
    seed: Annotated[int, typer.Option(help="The first round.")] = 0,
    only: Annotated[int | None, typer.Option("--round", help="Run only this round, and print its outcome.")] = None,
) -> None:
    if only is not None:
        show(run_round(only))
        return
    tally, wrong, started_at = CampaignReport(), list[Outcome](), monotonic()
    columns = (TextColumn("landings"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=landings * len(METHODS))
        for outcome in run_rounds(landings, seed):
            before = tally.total
            tally.add(outcome)
            progress.update(bar, completed=tally.total)
            if not console.is_terminal and tally.total // COUNTS_INTERVAL > before // COUNTS_INTERVAL:
                print(f"{tally.rounds:,} rounds, landings: {tally.describe_counts()}", flush=True)
            if outcome.faults:
                wrong.append(outcome)
                record_violation(f"{outcome.faults[0]}\n  {replay_command(outcome.seed)}")
                show_faults(outcome)
    for table in tally.tables():
        console.print(table)
    seconds = monotonic() - started_at
    summary = f"{tally.total:,} landings of {tally.merged:,} pull requests in {tally.rounds:,} rounds"
    console.print(f"{summary}, {tally.total / seconds:.1f} a second; {len(wrong)} rounds with faults")
    raise typer.Exit(1 if wrong else 0)


def show_faults(outcome: Outcome) -> None:
    console.print(f"[red]round {outcome.seed}[/] ({outcome.plan.method}): {replay_command(outcome.seed)}")
    for fault in outcome.faults[:SHOWN_FAULTS]:
        console.print(f"  {fault}", markup=False, highlight=False)


def show(outcome: Outcome) -> None:
    console.print(outcome)
    if outcome.faults:
        show_faults(outcome)
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
