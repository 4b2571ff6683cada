"""Runs the whole benchmark, prints tables, stores the figures in `.bench/latest.json`, and checks the limits.

With `--small` it measures with smaller repositories and loads, for shared machines, and checks only that no ratio
became worse by a third since it was recorded, and the figures that every machine reaches.
"""

import resource
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import msgspec
from rich.console import Console

from mergeyard.domain.config import Mode
from tests.bench import branch_builds, decisions, idle, memory, placement, replication, requests, startup
from tests.bench.busy_server import LoadSize
from tests.bench.limits import exceeded_figures, exceeded_limits, fallen_ratios
from tests.bench.machine import describe_machine, format_machine
from tests.bench.tables import engine_table, service_table

LATEST = Path(__file__).parents[2] / ".bench" / "latest.json"
SIZES = (100, 1000, 10_000, 100_000)
ROUNDS = 120
PLACEMENTS = {80: (2000, 20), 800: (1000, 4), 8000: (400, 1)}
"""By impacted targets per batch: how many batches are placed with the index, and how many by comparing with all."""
REQUEST_ROUNDS = 3
FILES = (20_000, 100_000)
BRANCH_BUILDS = 60
JOURNAL_ENTRIES = 100_000
IDLE_QUEUES, IDLE_SECONDS, IDLE_PERIODS = 1000, 10, 6
FEW_FILES = (20_000, 40_000)
FEW_BRANCH_BUILDS = 20
FEW_IDLE_QUEUES, FEW_IDLE_SECONDS, FEW_IDLE_PERIODS = 100, 5, 3


def main() -> int:
    LATEST.parent.mkdir(exist_ok=True)
    small = "--small" in sys.argv[1:]
    numbers = measure_small() if small else measure_all()
    LATEST.write_bytes(msgspec.json.format(msgspec.json.encode({**describe_machine(), **numbers})) + b"\n")
    console = Console(width=110, highlight=False)
    if not small:
        console.print(engine_table(numbers, SIZES, tuple(PLACEMENTS)))
    console.print(service_table(numbers))
    seconds, mebibytes = numbers["bench_seconds"], numbers["bench_peak_mib"]
    console.print(
        f"Measured in {seconds:.0f} s with at most {mebibytes:,.0f} MiB on {format_machine(describe_machine())}; "
        "the figures are in .bench/latest.json."
    )
    problems = [*fallen_ratios(numbers), *exceeded_figures(numbers)] if small else list(exceeded_limits(numbers))
    for problem in problems:
        console.print(problem, style="bold red")
    return 1 if problems else 0


def measure_all() -> dict[str, float]:
    started = perf_counter()
    numbers = dict[str, float]()
    for mode in Mode:
        numbers.update(decisions.measure(mode, SIZES, ROUNDS))
    for targets_each, counts in PLACEMENTS.items():
        numbers.update(placement.measure(targets_each, *counts))
    numbers.update(memory.measure(1000, 11_000))
    with TemporaryDirectory(dir=LATEST.parent) as folder:
        numbers.update(branch_builds.measure(Path(folder, "branches"), FILES, BRANCH_BUILDS))
        numbers.update(startup.measure(Path(folder, "starting"), JOURNAL_ENTRIES, REQUEST_ROUNDS))
        numbers.update(requests.measure(Path(folder), LoadSize(), REQUEST_ROUNDS))
        numbers.update(idle.measure(Path(folder, "idle"), IDLE_QUEUES, IDLE_SECONDS, IDLE_PERIODS))
        numbers.update(replication.measure(Path(folder, "replicas"), LoadSize(256), REQUEST_ROUNDS))
    return _add_totals(numbers, started)


def measure_small() -> dict[str, float]:
    started = perf_counter()
    with TemporaryDirectory(dir=LATEST.parent) as folder:
        numbers = branch_builds.measure(Path(folder, "branches"), FEW_FILES, FEW_BRANCH_BUILDS)
        numbers |= requests.measure(Path(folder), LoadSize(256), REQUEST_ROUNDS)
        numbers |= idle.measure(Path(folder, "idle"), FEW_IDLE_QUEUES, FEW_IDLE_SECONDS, FEW_IDLE_PERIODS)
    return _add_totals(numbers, started)


def _add_totals(numbers: dict[str, float], started: float) -> dict[str, float]:
    numbers["bench_seconds"] = perf_counter() - started
    numbers["bench_peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {name: round(number, 2) for name, number in numbers.items()}


if __name__ == "__main__":
    sys.exit(main())
