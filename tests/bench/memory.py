"""Measures the memory that one more waiting pull request takes."""

import gc
import tracemalloc

from mergeyard.domain.config import Mode
from tests.bench.busy_queue import BusyQueue


def measure(few: int, many: int) -> dict[str, float]:
    """Without and with impacted targets: the set of twenty targets takes more than all the rest."""
    return {
        "bytes_per_waiting_pr": _bytes_per_pr(BusyQueueWithoutTargets, few, many),
        "bytes_per_waiting_pr_with_20_targets": _bytes_per_pr(BusyQueue, few, many),
    }


class BusyQueueWithoutTargets(BusyQueue):
    def _impacted_targets(self) -> None:
        return None


def _bytes_per_pr(kind: type[BusyQueue], few: int, many: int) -> float:
    return (_bytes_of(kind, many) - _bytes_of(kind, few)) / (many - few)


def _bytes_of(kind: type[BusyQueue], waiting: int) -> int:
    gc.collect()
    tracemalloc.start()
    queue = kind(Mode.SINGLE, waiting)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert queue.waiting == waiting
    return taken
