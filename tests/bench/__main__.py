"""Runs the whole benchmark, shows one table, keeps the numbers in `.bench/latest.json`, and checks the promises.

With `--small` it measures on smaller grounds, for machines that are shared, and checks only that no ratio fell by a
third since it was recorded.
"""

import resource
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import msgspec
from rich.console import Console

from mergeyard.domain.config import Mode
from tests.bench import branching, placement, remembering, replicating, service_table, serving, starting, turns
from tests.bench.busy_server import Crowd
from tests.bench.machine import in_words, machine
from tests.bench.promises import broken_promises
from tests.bench.recorded import fallen
from tests.bench.table import drawn

LATEST = Path(__file__).parents[2] / ".bench" / "latest.json"
SIZES = (100, 1000, 10_000, 100_000)
ROUNDS = 120
PLACEMENTS = {80: (2000, 20), 800: (1000, 4), 8000: (400, 1)}
"""By the targets that each impacts: how many are placed by the index, and how many by asking everybody."""
ROUNDS_OF_REQUESTS = 3
FILES = (20_000, 100_000)
BRANCHES = 60
ENTRIES = 100_000
FEW_FILES = (20_000, 40_000)
FEW_BRANCHES = 20


def main() -> int:
    LATEST.parent.mkdir(exist_ok=True)
    small = "--small" in sys.argv[1:]
    numbers = measured_small() if small else measured()
    LATEST.write_bytes(msgspec.json.format(msgspec.json.encode({**machine(), **numbers})) + b"\n")
    console = Console(width=110, highlight=False)
    if not small:
        console.print(drawn(numbers, SIZES, tuple(PLACEMENTS)))
    console.print(service_table.drawn(numbers))
    seconds, mebibytes = numbers["bench_seconds"], numbers["bench_peak_mib"]
    console.print(
        f"Measured in {seconds:.0f} s with at most {mebibytes:,.0f} MiB on {in_words(machine())}; "
        "the numbers are in .bench/latest.json."
    )
    broken = list(fallen(numbers) if small else broken_promises(numbers))
    for sentence in broken:
        console.print(sentence, style="bold red")
    return 1 if broken else 0


def measured() -> dict[str, float]:
    begun = perf_counter()
    numbers = dict[str, float]()
    for mode in Mode:
        numbers.update(turns.measure(mode, SIZES, ROUNDS))
    for targets_each, counts in PLACEMENTS.items():
        numbers.update(placement.measure(targets_each, *counts))
    numbers.update(remembering.measure(1000, 11_000))
    with TemporaryDirectory(dir=LATEST.parent) as folder:
        numbers.update(branching.measure(Path(folder, "branches"), FILES, BRANCHES))
        numbers.update(starting.measure(Path(folder, "starting"), ENTRIES, ROUNDS_OF_REQUESTS))
        numbers.update(serving.measure(Path(folder), Crowd(), ROUNDS_OF_REQUESTS))
        numbers.update(replicating.measure(Path(folder, "replicas"), Crowd(256), ROUNDS_OF_REQUESTS))
    return _rounded(numbers, begun)


def measured_small() -> dict[str, float]:
    begun = perf_counter()
    with TemporaryDirectory(dir=LATEST.parent) as folder:
        numbers = branching.measure(Path(folder, "branches"), FEW_FILES, FEW_BRANCHES)
        numbers |= serving.measure(Path(folder), Crowd(256), ROUNDS_OF_REQUESTS)
    return _rounded(numbers, begun)


def _rounded(numbers: dict[str, float], begun: float) -> dict[str, float]:
    numbers["bench_seconds"] = perf_counter() - begun
    numbers["bench_peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {name: round(number, 2) for name, number in numbers.items()}


if __name__ == "__main__":
    sys.exit(main())
