"""Counts the time that CI spent on runs, and what batching saved of it.

Without batching, every pull request needs a green run of its own to merge. So a green run of four stands for four runs,
and three times its length is saved, as long as one pull request takes as long to test as four. What batching costs is
taken off: red batches, and the search for the guilty one. What the guilty one would have cost alone is not counted, so
rather too little is called saved than too much.
"""

from collections.abc import Iterable

from mergeyard.domain.runs import RunKind
from mergeyard.domain.states import RunStatus
from mergeyard.service.history.past import PastRun


def spent(runs: Iterable[PastRun]) -> int:
    """Milliseconds from the start of each run to its verdict, or until it was stopped."""
    return sum(run.length for run in runs)


def saved(runs: Iterable[PastRun]) -> int:
    """Milliseconds; below zero, batching cost more than it saved."""
    return sum(map(_saved_by, runs))


def _saved_by(run: PastRun) -> int:
    if run.in_line and run.status is RunStatus.SUCCEEDED:
        return (run.tests - 1) * run.length
    if run.kind is RunKind.BISECTION or (run.batched and run.status is RunStatus.FAILED):
        return -run.length
    return 0
