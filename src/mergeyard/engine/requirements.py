"""Decides which statuses a run must pass: the queue's own word first, then the repository's."""

from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.required import Required, RequiredSource
from mergeyard.domain.runs import Run


def required(queue: Queue) -> Required:
    if queue.config.required_statuses is not None:
        return Required(queue.config.required_statuses, RequiredSource.MERGE_INSTANCE)
    return queue.target.required


def missing(queue: Queue) -> Reason | None:
    """Why nothing can be tested: nothing merges untested."""
    wanted = required(queue)
    if wanted.config_error is not None:
        return Reason.CONFIG_INVALID
    return None if wanted.statuses else Reason.NO_REQUIRED_STATUSES


def outgrown(queue: Queue, run: Run) -> Reason | None:
    """A run keeps the statuses that it started with, unless more are required by now."""
    if set(required(queue).statuses) <= set(run.required):
        return None
    return Reason.REQUIRED_STATUSES_CHANGED
