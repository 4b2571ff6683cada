"""All races of a comparison: every policy on the trace of every seed, on all cores."""

import os
import signal
from collections.abc import Iterable, Iterator
from functools import cache
from multiprocessing import get_context

from msgspec import Struct

from mergeyard.sim.racing.figures import Figures, figures
from mergeyard.sim.racing.policies import ORACLE, POLICIES
from mergeyard.sim.racing.race import Diverged, Record, race
from mergeyard.sim.racing.trace import Trace, draw
from mergeyard.sim.racing.workload import Workload

WORTH_PROCESSES = 3000
"""Changes times races: fewer are raced sooner than other processes would start."""


class Heat(Struct, frozen=True):
    """One policy on one seed's trace."""

    workload: Workload
    seed: int
    policy: str


class Finish(Struct, frozen=True):
    heat: Heat
    figures: Figures


def heats(workload: Workload, seeds: Iterable[int], policies: Iterable[str]) -> list[Heat]:
    """The production engine races last in the list, and takes longest, so it starts first."""
    return [Heat(workload, seed, policy) for policy in reversed(list(policies)) for seed in seeds]


def hold(coming: list[Heat]) -> Iterator[Finish]:
    """Each as soon as it is over."""
    changes = sum(heat.workload.rate * heat.workload.hours for heat in coming)
    cores = min(os.cpu_count() or 1, len(coming))
    if changes < WORTH_PROCESSES or cores == 1:
        yield from map(run, coming)
        return
    with get_context("spawn").Pool(cores, initializer=_leave_interrupts_to_the_first) as pool:
        yield from pool.imap_unordered(run, coming)


def run(heat: Heat) -> Finish:
    trace, oracle = _course(heat.workload, heat.seed)
    try:
        record = oracle if heat.policy == ORACLE else race(trace, POLICIES[heat.policy](trace))
    except Diverged as trouble:
        raise Diverged(f"{heat.policy}, seed {heat.seed}: {trouble}.") from None
    return Finish(heat, figures(trace, record, oracle))


@cache
def _course(workload: Workload, seed: int) -> tuple[Trace, Record]:
    trace = draw(workload, seed)
    return trace, race(trace, POLICIES[ORACLE](trace))


def _leave_interrupts_to_the_first() -> None:
    """It ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
