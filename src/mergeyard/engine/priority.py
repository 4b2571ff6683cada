"""The order of waiting submissions, which ages by waiting, and preemption by urgent pull requests."""

from collections.abc import Iterator
from heapq import merge

from mergeyard.domain.config import MIN_AGED_PRIORITY, URGENT
from mergeyard.domain.ids import SubmissionId
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.timestamps import HOUR, Instant

POINTS_PER_HOUR = 10


def priority_rank(submission: Submission, now: Instant) -> tuple[int, SubmissionId]:
    return aged_priority(submission, now), submission.id


def aged_priority(submission: Submission, now: Instant) -> int:
    if submission.priority == URGENT:
        return URGENT
    hours = (now - submission.submitted_at) // HOUR
    return max(MIN_AGED_PRIORITY, submission.waiting_priority - POINTS_PER_HOUR * hours)


def waiting_in_order(queue: Queue, now: Instant) -> Iterator[Submission]:
    """The waiting submissions in order, lazily.

    Within one priority an older submission is never after a younger one, whatever the time, so each priority is already
    sorted and only their heads are compared.
    """
    buckets = (map(queue.submissions.__getitem__, submission_ids) for submission_ids in queue.waiting.values())
    return merge(*buckets, key=lambda submission: priority_rank(submission, now))
