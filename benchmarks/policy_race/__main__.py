"""`make race`: compares merge queue policies on the same simulated workload."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import to_builtins
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.policy_race.plot import ResultsByPolicy, draw_svg
from benchmarks.policy_race.policies import POLICIES
from benchmarks.policy_race.report import MetricRange, RaceMetrics, summarize_seeds, to_json_members
from benchmarks.policy_race.rounds import list_rounds, run_rounds
from benchmarks.policy_race.workload import Workload
from mergeyard.cli.output import ExitCode, encode_json, exit_with_message, plain_text, print_output
from mergeyard.simulation.engine_driver import SimulationDiverged

MAX_CHANGES = 100_000
INTERRUPTED_EXIT_CODE = 130
COLUMNS = {
    "P50 ÷ Oracle": ("p50_over_oracle", 2),
    "P95 ÷ Oracle": ("p95_over_oracle", 2),
    "P99 ÷ Oracle": ("p99_over_oracle", 2),
    "runs per merge": ("runs_per_merge", 2),
    "wasted runs": ("wasted_runs", 0),
    "merges per hour": ("merges_per_hour", 0),
    "wrongly failed": ("innocent_ejections", 0),
    "longest wait, min": ("longest_wait_minutes", 0),
}


def simulate(
    rate: Annotated[float, typer.Option("--rate", min=0.1, max=10_000, help="Changes per hour.")] = 100,
    hours: Annotated[float, typer.Option("--hours", min=0.1, max=1000, help="For how long changes arrive.")] = 6,
    workers: Annotated[int, typer.Option("--workers", min=2, max=1000, help="How many runs at a time.")] = 100,
    success: Annotated[
        float, typer.Option("--success", min=0, max=1, help="The share of changes that pass alone.")
    ] = 0.9,
    conflict: Annotated[
        float, typer.Option("--conflict", min=0, max=1, help="The share of neighbors that fail together.")
    ] = 0.01,
    flakes: Annotated[
        float, typer.Option("--flakes", min=0, max=0.9, help="The share of runs that fail without a cause.")
    ] = 0,
    parts: Annotated[int, typer.Option("--parts", min=1, max=100_000, help="The number of parts of the code.")] = 100,
    wide: Annotated[float, typer.Option("--wide", min=0, max=1, help="The share of changes that touch two parts.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=1000, help="The number of seeds.")] = 3,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The first seed.")] = 1,
    policies: Annotated[str, typer.Option("--policies", help="Only these policies, separated by commas.")] = "",
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the result into this SVG file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result for programs.")] = False,
) -> None:
    """Compare merge queue policies by simulation.

    Changes arrive at random at the given rate. Each touches one part of the code, or two; builds take 30 minutes at the
    median, 5 to 120. Neighbors are two changes that touch a common part and arrive within 30 minutes of each other:
    some of them pass alone and fail together. A run fails if it contains a bad change or two that fail together, and
    takes as long as the longest build of the changes it tests. Every policy gets the same changes and sees only what a
    queue would see; oracle knows all outcomes in advance. Turnaround is the time from submission to decision. The
    mergeyard policies are the production engine.
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
    names = parse_policies(policies)
    check_plot_path(plot)
    if rate * hours > MAX_CHANGES:
        message = f"--rate and --hours give {rate * hours:,.0f} changes: reduce them to {MAX_CHANGES:,} at most."
        exit_with_message(message, ExitCode.USAGE_ERROR)
    results = run_all_rounds(workload, range(seed, seed + seeds), names)
    if plot is not None:
        plot.write_text(draw_svg(results, describe_workload(workload, seeds)))
    if as_json:
        typer.echo(
            encode_json({"workload": workload_members(workload, seeds, seed), "policies": result_members(results)})
        )
    else:
        print_output(plain_text(describe_workload(workload, seeds), "bold"), build_table(results))


def parse_policies(text: str) -> list[str]:
    """In the order of POLICIES."""
    requested = {name.strip() for name in text.split(",") if name.strip()}
    for name in sorted(requested - POLICIES.keys()):
        exit_with_message(f"{name} is not a policy: choose from {', '.join(POLICIES)}.", ExitCode.USAGE_ERROR)
    return [name for name in POLICIES if name in requested or not requested]


def check_plot_path(plot: Path | None) -> None:
    """Checked before the simulation starts, which can take an hour."""
    if plot is None:
        return
    if plot.suffix != ".svg":
        exit_with_message(f"{plot} is not an SVG file: choose a file name that ends in .svg.", ExitCode.USAGE_ERROR)
    if not plot.absolute().parent.is_dir():
        exit_with_message(
            f"The folder {plot.absolute().parent} does not exist: create it, or choose another one.",
            ExitCode.USAGE_ERROR,
        )


def run_all_rounds(workload: Workload, seeds: Sequence[int], names: Sequence[str]) -> ResultsByPolicy:
    metrics_by_policy = defaultdict[str, dict[int, RaceMetrics]](dict)
    rounds = list_rounds(workload, seeds, names)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task("Simulating", total=len(rounds))
            for finished in run_rounds(rounds):
                metrics_by_policy[finished.round.policy][finished.round.seed] = finished.metrics
                progress.update(bar, advance=1, description=f"{finished.round.policy}, seed {finished.round.seed}")
    except SimulationDiverged as error:
        exit_with_message(f"{error} Exclude the policy with --policies, or reduce --hours.")
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    return {name: summarize_seeds([metrics_by_policy[name][seed] for seed in seeds]) for name in names}


def build_table(results: ResultsByPolicy) -> Table:
    rendered = Table("policy", box=None, header_style="dim", pad_edge=False)
    for heading in COLUMNS:
        rendered.add_column(heading, justify="right")
    for policy, figures in results.items():
        cells = (format_range(figures[figure], digits) for figure, digits in COLUMNS.values())
        rendered.add_row(plain_text(policy, "bold" if policy.startswith("mergeyard") else ""), *cells)
    return rendered


def format_range(values: MetricRange, digits: int) -> str:
    """The mean, and in parentheses the minimum and maximum if they differ."""
    mean, least, most = (f"{value:,.{digits}f}" for value in (values.mean, values.minimum, values.maximum))
    return mean if least == most else f"{mean} ({least}–{most})"


def describe_workload(workload: Workload, seeds: int) -> str:
    seed_count = "1 seed" if seeds == 1 else f"{seeds} seeds"
    return (
        f"{workload.rate:g} changes per hour for {workload.hours:g} h, {workload.workers} workers, "
        f"success {workload.success:g}, conflict {workload.conflict:g}, {workload.parts} parts, {seed_count}"
    )


def workload_members(workload: Workload, seeds: int, seed: int) -> dict[str, Any]:
    return {**to_builtins(workload), "seeds": seeds, "seed": seed}


def result_members(results: ResultsByPolicy) -> dict[str, dict[str, float]]:
    return {name: to_json_members(dict(figures)) for name, figures in results.items()}


if __name__ == "__main__":
    typer.run(simulate)
