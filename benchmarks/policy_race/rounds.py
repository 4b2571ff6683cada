"""All rounds of a comparison: every policy on the trace of every seed, on all cores."""

import os
import signal
from collections.abc import Iterable, Iterator
from functools import cache
from multiprocessing import get_context

from msgspec import Struct

from benchmarks.policy_race.policies import ORACLE, POLICIES
from benchmarks.policy_race.race import RaceResult, run_race
from benchmarks.policy_race.report import RaceMetrics, compute_metrics
from benchmarks.policy_race.workload import Trace, Workload, generate_trace
from mergeyard.simulation.engine_driver import SimulationDiverged

MIN_CHANGES_FOR_PROCESSES = 3000
"""Changes times rounds: below it, running in this process is faster than starting others."""


class Round(Struct, frozen=True):
    """One policy on the trace of one seed."""

    workload: Workload
    seed: int
    policy: str


class RoundResult(Struct, frozen=True):
    round: Round
    metrics: RaceMetrics


def list_rounds(workload: Workload, seeds: Iterable[int], policies: Iterable[str]) -> list[Round]:
    """In reverse order: the production engine is last in the list and slowest, so its rounds start first."""
    return [Round(workload, seed, policy) for policy in reversed(list(policies)) for seed in seeds]


def run_rounds(rounds: list[Round]) -> Iterator[RoundResult]:
    """Yields each result as soon as it is complete."""
    changes = sum(round_.workload.rate * round_.workload.hours for round_ in rounds)
    cores = min(os.cpu_count() or 1, len(rounds))
    if changes < MIN_CHANGES_FOR_PROCESSES or cores == 1:
        yield from map(run_round, rounds)
        return
    with get_context("spawn").Pool(cores, initializer=_ignore_interrupts) as pool:
        yield from pool.imap_unordered(run_round, rounds)


def run_round(round_: Round) -> RoundResult:
    trace, oracle = _prepare_trace(round_.workload, round_.seed)
    try:
        record = oracle if round_.policy == ORACLE else run_race(trace, POLICIES[round_.policy](trace))
    except SimulationDiverged as error:
        raise SimulationDiverged(f"{round_.policy}, seed {round_.seed}: {error}.") from None
    return RoundResult(round_, compute_metrics(trace, record, oracle))


@cache
def _prepare_trace(workload: Workload, seed: int) -> tuple[Trace, RaceResult]:
    trace = generate_trace(workload, seed)
    return trace, run_race(trace, POLICIES[ORACLE](trace))


def _ignore_interrupts() -> None:
    """The main process handles Ctrl-C and terminates the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
