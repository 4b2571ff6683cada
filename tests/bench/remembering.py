"""Counts the bytes that one more pull request takes while it waits."""

import gc
import tracemalloc

from mergeyard.domain.config import Mode
from tests.bench.yard import Yard


def measure(few: int, many: int) -> dict[str, float]:
    """Without what it impacts, and with: the set of twenty targets takes more than all the rest."""
    return {
        "bytes_per_waiting_pull": _bytes_of_one_more(Untargeted, few, many),
        "bytes_per_waiting_pull_with_20_targets": _bytes_of_one_more(Yard, few, many),
    }


class Untargeted(Yard):
    def _targets(self) -> None:
        return None


def _bytes_of_one_more(kind: type[Yard], few: int, many: int) -> float:
    return (_bytes_of(kind, many) - _bytes_of(kind, few)) / (many - few)


def _bytes_of(kind: type[Yard], waiting: int) -> int:
    gc.collect()
    tracemalloc.start()
    yard = kind(Mode.SINGLE, waiting)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert yard.waiting == waiting
    return taken
