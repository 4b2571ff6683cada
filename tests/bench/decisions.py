"""Measures decisions in queues of several sizes, alternately, so that noise on the machine affects all of them."""

from collections.abc import Sequence
from statistics import fmean, median

from mergeyard.domain.config import Mode
from tests.bench.busy_queue import KINDS, BusyQueue, Durations


def measure(mode: Mode, sizes: Sequence[int], rounds: int) -> dict[str, float]:
    """Microseconds: the mean decision of the median round, and the medians of each kind and of deriving the tasks."""
    queues = {waiting: BusyQueue(mode, waiting) for waiting in sizes}
    durations = {waiting: list[Durations]() for waiting in sizes}
    for _ in range(rounds):
        for waiting, queue in queues.items():
            durations[waiting].append(queue.run_round())
    numbers = dict[str, float]()
    for waiting in sizes:
        numbers[f"decision_us_{mode}_{waiting}_waiting"] = median(map(_mean_decision, durations[waiting]))
        for kind in (*KINDS, "pending_tasks"):
            times = [time for round_ in durations[waiting] for time in round_[kind]]
            if times:
                numbers[f"{kind}_us_{mode}_{waiting}_waiting"] = median(times)
    most, least = max(sizes), min(sizes)
    slowest, fastest = (numbers[f"decision_us_{mode}_{waiting}_waiting"] for waiting in (most, least))
    return {**numbers, f"decision_ratio_{mode}_{most}_to_{least}": slowest / fastest}


def _mean_decision(durations: Durations) -> float:
    return fmean(time for kind in KINDS for time in durations[kind])
