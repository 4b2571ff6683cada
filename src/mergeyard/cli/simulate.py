"""The command that races policies of merging against each other, on the same simulated days."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import to_builtins
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mergeyard.cli.exits import Ends, stop_with
from mergeyard.cli.plainly import in_json, plain
from mergeyard.cli.terminal import put
from mergeyard.sim.racing.figures import Figures
from mergeyard.sim.racing.plot import Results, draw_svg
from mergeyard.sim.racing.policies import POLICIES
from mergeyard.sim.racing.race import Diverged
from mergeyard.sim.racing.ranges import Range, over_seeds, spelled_out
from mergeyard.sim.racing.season import heats, hold
from mergeyard.sim.racing.workload import Workload

MOST_CHANGES = 100_000
INTERRUPTED = 130
COLUMNS = {
    "P50 ÷ Oracle": ("p50_over_oracle", 2),
    "P95 ÷ Oracle": ("p95_over_oracle", 2),
    "P99 ÷ Oracle": ("p99_over_oracle", 2),
    "runs per merge": ("runs_per_merge", 2),
    "wasted runs": ("wasted_runs", 0),
    "merges per hour": ("merges_per_hour", 0),
    "innocent ejections": ("innocent_ejections", 0),
    "longest wait, min": ("longest_wait_minutes", 0),
}


def simulate(
    rate: Annotated[float, typer.Option("--rate", min=0.1, max=10_000, help="Changes per hour.")] = 100,
    hours: Annotated[float, typer.Option("--hours", min=0.1, max=1000, help="How long changes come.")] = 6,
    workers: Annotated[int, typer.Option("--workers", min=2, max=1000, help="How many runs at once.")] = 100,
    success: Annotated[float, typer.Option("--success", min=0, max=1, help="The share that is good alone.")] = 0.9,
    conflict: Annotated[
        float, typer.Option("--conflict", min=0, max=1, help="The share of neighbours that break together.")
    ] = 0.01,
    flakes: Annotated[
        float, typer.Option("--flakes", min=0, max=0.9, help="The share of runs that are red for no reason.")
    ] = 0,
    parts: Annotated[int, typer.Option("--parts", min=1, max=100_000, help="Into how many parts code falls.")] = 100,
    wide: Annotated[float, typer.Option("--wide", min=0, max=1, help="The share that touches two parts.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=1000, help="How many days to draw.")] = 3,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The first of them.")] = 1,
    policies: Annotated[str, typer.Option("--policies", help="Only these, with commas between them.")] = "",
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the result into this file, as SVG.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> None:
    """Race policies of merging against each other.

    Changes arrive by chance, as many an hour as you say. Each touches one part of the code, or two; builds take 30
    minutes at the median, 5 to 120. Neighbours are two changes that touch a common part and arrive within 30 minutes:
    some of them are good alone and break together. A run is red if it holds a bad one or two that break together, and
    takes as long as the longest of those that it tests. Every policy gets the same changes, and hears only what a queue
    would; oracle knows all beforehand. Turnaround is the time from submission to decision. The mergeyard policies are
    the production engine.
    """
    workload = Workload(
        rate=rate,
        hours=hours,
        workers=workers,
        success=success,
        conflict=conflict,
        flakes=flakes,
        parts=parts,
        wide=wide,
    )
    names = chosen(policies)
    may_be_written(plot)
    if rate * hours > MOST_CHANGES:
        words = f"That is {rate * hours:,.0f} changes: choose --rate and --hours for {MOST_CHANGES:,} at most."
        stop_with(words, Ends.WRONG_USE)
    results = raced(workload, range(seed, seed + seeds), names)
    if plot is not None:
        plot.write_text(draw_svg(results, in_words(workload, seeds)))
    if as_json:
        typer.echo(in_json({"workload": described(workload, seeds, seed), "policies": spelled(results)}))
    else:
        put(plain(in_words(workload, seeds), "bold"), table(results))


def chosen(text: str) -> list[str]:
    """In the order of the list of all."""
    wanted = {name.strip() for name in text.split(",") if name.strip()}
    for name in sorted(wanted - POLICIES.keys()):
        stop_with(f"{name} is no policy: write some of {', '.join(POLICIES)}.", Ends.WRONG_USE)
    return [name for name in POLICIES if name in wanted or not wanted]


def may_be_written(plot: Path | None) -> None:
    """Told before the race, and not after an hour."""
    if plot is None:
        return
    if plot.suffix != ".svg":
        stop_with(f"{plot} is no picture that can be drawn: name a file that ends in .svg.", Ends.WRONG_USE)
    if not plot.absolute().parent.is_dir():
        stop_with(f"There is no folder {plot.absolute().parent}: make it, or name another.", Ends.WRONG_USE)


def raced(workload: Workload, seeds: Sequence[int], names: Sequence[str]) -> Results:
    found = defaultdict[str, dict[int, Figures]](dict)
    coming = heats(workload, seeds, names)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task("Racing", total=len(coming))
            for finish in hold(coming):
                found[finish.heat.policy][finish.heat.seed] = finish.figures
                progress.update(bar, advance=1, description=f"{finish.heat.policy}, seed {finish.heat.seed}")
    except Diverged as trouble:
        stop_with(f"{trouble} Leave it out with --policies, or take fewer --hours.")
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    return {name: over_seeds([found[name][seed] for seed in seeds]) for name in names}


def table(results: Results) -> Table:
    drawn = Table("policy", box=None, header_style="dim", pad_edge=False)
    for heading in COLUMNS:
        drawn.add_column(heading, justify="right")
    for policy, figures in results.items():
        cells = (shown(figures[figure], digits) for figure, digits in COLUMNS.values())
        drawn.add_row(plain(policy, "bold" if policy.startswith("mergeyard") else ""), *cells)
    return drawn


def shown(found: Range, digits: int) -> str:
    """The mean, and in brackets from the least to the most if they differ."""
    mean, least, most = (f"{value:,.{digits}f}" for value in (found.mean, found.least, found.most))
    return mean if least == most else f"{mean} ({least}–{most})"


def in_words(workload: Workload, seeds: int) -> str:
    days = "1 seed" if seeds == 1 else f"{seeds} seeds"
    return (
        f"{workload.rate:g} changes per hour for {workload.hours:g} h, {workload.workers} workers, "
        f"success {workload.success:g}, conflict {workload.conflict:g}, {workload.parts} parts, {days}"
    )


def described(workload: Workload, seeds: int, seed: int) -> dict[str, Any]:
    return {**to_builtins(workload), "seeds": seeds, "seed": seed}


def spelled(results: Results) -> dict[str, dict[str, float]]:
    return {name: spelled_out(dict(figures)) for name, figures in results.items()}
