"""Decides who comes first among the waiting: priority, then submission, and nobody starves."""

from collections.abc import Iterator
from heapq import merge

from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import HOUR, Instant
from mergeyard.domain.priorities import URGENT
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue

POINTS_PER_HOUR = 10
HIGHEST_BY_AGE = 1


def rank(submission: Submission, now: Instant) -> tuple[int, Ticket]:
    return aged_priority(submission, now), submission.ticket


def aged_priority(submission: Submission, now: Instant) -> int:
    if submission.priority == URGENT:
        return URGENT
    hours = (now - submission.submitted_at) // HOUR
    return max(HIGHEST_BY_AGE, submission.priority - POINTS_PER_HOUR * hours)


def in_order(queue: Queue, now: Instant) -> Iterator[Submission]:
    """The waiting, first come first, as far as somebody asks.

    Within one priority the older is never behind the younger, whatever the hour, so each priority is already
    sorted and only their heads need comparing.
    """
    sorted_already = (map(queue.submissions.__getitem__, tickets) for tickets in queue.waiting.values())
    return merge(*sorted_already, key=lambda submission: rank(submission, now))
