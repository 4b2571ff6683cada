"""Long fuzz run: `python -m tests.fuzz --requests 50000 --seed 1`; the number 0 leaves a part out.

The seed determines everything that is drawn, so the same numbers give the same run. Failures are shown minimized, and
the exit code is 1.
"""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from tests.fuzz.flood.sender import FloodReport, send_requests
from tests.fuzz.flood.target import a_target
from tests.fuzz.machine.environment import STORES
from tests.fuzz.machine.state_machine import RunCounts, run_clients
from tests.fuzz.properties import ParserProperty, all_properties
from tests.support.violations import record_violation

COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)
console = Console()


def main(
    requests: Annotated[int, typer.Option(help="How many to send to a real server.")] = 50_000,
    clients: Annotated[int, typer.Option(help="How many sequences of client requests to run, on each store.")] = 200,
    examples: Annotated[int, typer.Option(help="How many examples to check every property of the parsers on.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Determines everything that is drawn.")] = 1,
) -> None:
    checks: dict[str, Callable[[], bool]] = {}
    if clients:
        checks |= {name: partial(_run_clients, name, clients, seed) for name in STORES}
    if examples:
        checks |= {law.name: partial(_check_property, law, examples, seed) for law in all_properties()}
    if requests:
        checks["random requests"] = partial(_send_requests, requests, seed)
    failed = list[str]()
    for name, passes in checks.items():
        if not passes():
            failed.append(name)
            record_violation(f"fuzz: {name} (seed {seed})")
    for name in failed:
        console.print(f"[red]failed[/]: {name} (seed {seed})")
    raise typer.Exit(1 if failed else 0)


def _send_requests(requests: int, seed: int) -> bool:
    """The server's folder is kept only when a check fails."""
    folder = Path(mkdtemp(prefix="mergeyard-fuzz-"))
    with Progress(*COLUMNS, console=console) as progress, a_target(folder, seed) as target:
        bar = progress.add_task("requests", total=requests)
        try:
            report = send_requests(
                target, requests, seed, lambda so_far: progress.update(bar, completed=so_far.requests)
            )
        except Exception:
            console.print_exception(max_frames=5)
            console.print(f"The server's log and files are in {folder}.")
            return False
    shutil.rmtree(folder)
    _show(report)
    return True


def _show(report: FloodReport) -> None:
    rate, first, last = report.requests / report.seconds, report.memory[0], report.memory[-1]
    title = f"{report.requests:,} requests, {rate:.0f} a second; server memory {first:.0f} → {last:.0f} MiB"
    statuses = sorted({status for _, status in report.responses})
    table = Table("endpoint", *map(str, statuses), title=title)
    for endpoint in sorted({endpoint for endpoint, _ in report.responses}):
        table.add_row(endpoint, *(f"{report.responses[endpoint, status] or '–'}" for status in statuses))
    console.print(table)
    console.print(
        "Refused with:", ", ".join(f"{code} {times:,}" for code, times in report.codes.most_common()), soft_wrap=True
    )


def _check_property(law: ParserProperty, examples: int, seed: int) -> bool:
    started_at = monotonic()
    try:
        count = law.check_examples(examples, seed)
    except Exception:
        console.print_exception(max_frames=5)
        return False
    console.print(
        f"{count:6,} examples in {monotonic() - started_at:5.1f} s: {law.name}", highlight=False, soft_wrap=True
    )
    return True


def _run_clients(store: str, clients: int, seed: int) -> bool:
    played = RunCounts()
    with Progress(*COLUMNS, console=console) as progress:
        bar = progress.add_task(f"clients on {store}", total=clients)
        try:
            run_clients(store, clients, seed, played, lambda: progress.update(bar, completed=played.clients))
        except Exception:
            console.print_exception(max_frames=5)
            return False
    console.print(f"{played} on {store}")
    return True


if __name__ == "__main__":
    typer.run(main)
