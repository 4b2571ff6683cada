"""Fuzzes at length: `python -m tests.fuzz --requests 50000 --seed 1`; 0 of something leaves that part out.

The seed chooses everything that is drawn, so the same numbers try the same again; what fails is told as small as it
could be made, and the exit code is 1.
"""

import shutil
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from tests.fuzz.flood.flooding import flood
from tests.fuzz.flood.target import a_target
from tests.fuzz.flood.toll import Toll
from tests.fuzz.laws import Law, all_laws
from tests.fuzz.machine.playing import STORES, Played, play

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
    clients: Annotated[int, typer.Option(help="How many stories of clients to play, on each store.")] = 200,
    examples: Annotated[int, typer.Option(help="How many to try every law of reading on.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Draws everything.")] = 1,
) -> None:
    failed = [
        *(name for name in STORES if clients and not _played(name, clients, seed)),
        *(law.name for law in all_laws() if examples and not _held(law, examples, seed)),
        *(["the flood"] if requests and not _flooded(requests, seed) else []),
    ]
    for name in failed:
        console.print(f"[red]broken[/]: {name} (seed {seed})")
    raise typer.Exit(1 if failed else 0)


def _flooded(requests: int, seed: int) -> bool:
    """What the server leaves behind is kept only when something is wrong with it."""
    folder = Path(mkdtemp(prefix="mergeyard-fuzz-"))
    with Progress(*COLUMNS, console=console) as progress, a_target(folder, seed) as target:
        bar = progress.add_task("requests", total=requests)
        try:
            toll = flood(target, requests, seed, lambda so_far: progress.update(bar, completed=so_far.requests))
        except Exception:
            console.print_exception(max_frames=5)
            console.print(f"The server's log and files are in {folder}.")
            return False
    shutil.rmtree(folder)
    _show(toll)
    return True


def _show(toll: Toll) -> None:
    rate, first, last = toll.requests / toll.seconds, toll.memory[0], toll.memory[-1]
    words = f"{toll.requests:,} requests, {rate:.0f} a second; the server took {first:.0f} MiB, at last {last:.0f} MiB"
    statuses = sorted({status for _, status in toll.answers})
    table = Table("endpoint", *map(str, statuses), title=words)
    for endpoint in sorted({endpoint for endpoint, _ in toll.answers}):
        table.add_row(endpoint, *(f"{toll.answers[endpoint, status] or '–'}" for status in statuses))
    console.print(table)
    console.print(
        "Refused with:", ", ".join(f"{code} {times:,}" for code, times in toll.codes.most_common()), soft_wrap=True
    )


def _held(law: Law, examples: int, seed: int) -> bool:
    begun = monotonic()
    try:
        tried = law.try_on(examples, seed)
    except Exception:
        console.print_exception(max_frames=5)
        return False
    console.print(f"{tried:6,} examples in {monotonic() - begun:5.1f} s: {law.name}", highlight=False, soft_wrap=True)
    return True


def _played(store: str, clients: int, seed: int) -> bool:
    played = Played()
    with Progress(*COLUMNS, console=console) as progress:
        bar = progress.add_task(f"clients on {store}", total=clients)
        try:
            play(store, clients, seed, played, lambda: progress.update(bar, completed=played.clients))
        except Exception:
            console.print_exception(max_frames=5)
            return False
    console.print(f"{played} on {store}")
    return True


if __name__ == "__main__":
    typer.run(main)
