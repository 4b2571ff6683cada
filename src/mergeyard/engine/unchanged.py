"""Tells what is the same as when the turn before settled, because nothing is left to be done about it.

Values never change in place: a part that is the same object is the same part.
"""

from collections.abc import Iterator, Mapping

from mergeyard.domain.ids import RunId
from mergeyard.domain.line import Batch
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.engine import holding

UNDER_TEST = ("config", "mode", "ordered_state", "line", "bisections", "runs", "target", "landing")
COMMON_FOOTING = ("config", "mode", "target")
"""What decides for all runs alike whether they still fit."""


def all_under_test(queue: Queue) -> bool:
    return _same(queue, UNDER_TEST)


def all_bases(queue: Queue) -> bool:
    """While no run is let go, nobody stands on less than before."""
    return not queue.news.finished and _same(queue, ("bisections", "target"))


def runs_to_check(queue: Queue) -> Iterator[tuple[Batch, Run]]:
    """Those of the line that may fit no more."""
    for batch in holding.free_batches(queue):
        fitted = _fitted(queue, batch)
        for run in queue.runs_of(batch):
            if run.extends is not None or fitted.get(run.id) is not run:
                yield batch, run


def _fitted(queue: Queue, batch: Batch) -> Mapping[RunId, Run]:
    """All, if nothing changed for this batch. While a landing binds it nobody checks it, so then none."""
    settled = queue.news.settled
    if (
        settled is None
        or not _same(queue, COMMON_FOOTING)
        or settled.line.by_id.get(batch.id) is not batch
        or settled.line.ahead[batch.id] is not queue.line.ahead[batch.id]
        or holding.bound_by_landing(settled, batch.tickets[0])
    ):
        return {}
    return settled.runs


def _same(queue: Queue, parts: tuple[str, ...]) -> bool:
    settled = queue.news.settled
    return settled is not None and all(getattr(settled, part) is getattr(queue, part) for part in parts)
