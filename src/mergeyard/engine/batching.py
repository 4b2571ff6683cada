"""Orders the waiting submissions, which age by waiting, and forms the next batches: which go together, and how long to
wait for more."""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice

from msgspec import Struct

from mergeyard.domain.config import MIN_AGED_PRIORITY, URGENT, HeadBranchFallback
from mergeyard.domain.ids import SubmissionId
from mergeyard.domain.pull_requests import ImpactedTargets, Submission
from mergeyard.domain.queue import Batch, Queue
from mergeyard.domain.states import QueueState, Reason
from mergeyard.domain.timestamps import HOUR, MINUTE, SECOND, Instant, earliest, later
from mergeyard.engine import admission, entries, lanes, merging

PROVIDER_MERGE = HeadBranchFallback.PROVIDER_MERGE

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


MAX_BATCHES_SCANNED = 4
"""How many batches' worth of waiting submissions are scanned per decision. Only neighbors in order share a batch."""
MAX_ANSWER_WAIT_MS = 10 * SECOND
MAX_UNANSWERED_SCANNED = 100
"""The oldest of them: they come first within their priority."""
EXTRA_SCANNED_WHEN_DEFERRED = 100
"""How many more are scanned when a lane is deferred, to find submissions of other lanes behind its own."""


class FormingBatch:
    """A batch being formed. It exists only during one decision."""

    def __init__(self, blocked: bool) -> None:
        self.members: list[Submission] = []
        self.blocked = blocked
        """A submission of another group, or a deferred batch, has to go first."""
        self.closed = False
        self.awaits_answer: bool | None = None
        """None until the group is complete."""


class FormedBatches(Struct, frozen=True):
    ready: tuple[tuple[SubmissionId, ...], ...]
    """The batches to start now, in order."""
    next_ready_at: Instant | None
    """When the first of the other batches will have waited long enough."""


def form_batches(queue: Queue, now: Instant, deferred: Sequence[Batch] = ()) -> FormedBatches:
    """Excludes submissions that depend on a deferred batch."""
    size = queue.config.batch_size
    ready = list[tuple[SubmissionId, ...]]()
    next_ready_at = None
    for group in _groups(queue, size, now, deferred):
        if group.blocked:
            continue
        ready_at = _ready_at(queue, group, size, now)
        for unanswered in unanswered_ahead(queue, group.members, now) if ready_at <= now else ():
            ready_at = max(ready_at, _answer_due_at(queue, unanswered, now))
        if ready_at <= now:
            ready.append(_ordered_members(group))
        else:
            next_ready_at = earliest(next_ready_at, ready_at)
    return FormedBatches(tuple(ready), next_ready_at)


def _ordered_members(group: FormingBatch) -> tuple[SubmissionId, ...]:
    """Members that must stay together keep their former order."""
    submission_ids = [each.id for each in group.members]
    keep_together = group.members[0].keep_together
    return tuple(sorted(submission_ids, key=keep_together.index) if keep_together else submission_ids)


def _groups(queue: Queue, size: int, now: Instant, deferred: Sequence[Batch]) -> list[FormingBatch]:
    groups = list[FormingBatch]()
    claims = _Claims()
    for submission in islice(
        waiting_in_order(queue, now),
        MAX_BATCHES_SCANNED * size + (EXTRA_SCANNED_WHEN_DEFERRED if deferred else 0),
    ):
        impacted_targets = lanes.impacted_targets_of(queue, submission)
        is_deferred = any(batch.impacted_targets.overlaps(impacted_targets) for batch in deferred)
        overlapping = claims.find_overlapping(impacted_targets)
        group = groups[next(iter(overlapping))] if len(overlapping) == 1 else None
        is_alone = submission.no_batch or merging.fallback_of(queue.config, submission.pull_request) is PROVIDER_MERGE
        if group is None or is_deferred or is_alone or not _can_join(submission, group, size):
            if is_alone or submission.keep_together:
                for other in overlapping:
                    groups[other].closed = True
            group = FormingBatch(blocked=is_deferred or bool(overlapping))
            groups.append(group)
        group.members.append(submission)
        group.closed = group.closed or is_alone
        claims.add(impacted_targets, groups.index(group))
        first = next((each for each in groups if not each.blocked), None)
        if first is not None and (len(first.members) == size or first.closed) and not _awaits_answer(queue, first, now):
            break
    return groups


def _awaits_answer(queue: Queue, group: FormingBatch, now: Instant) -> bool:
    """A complete group that waits for an answer of the Git host leaves its slot to those behind it that do not."""
    if group.awaits_answer is None:
        group.awaits_answer = next(unanswered_ahead(queue, group.members, now), None) is not None
    return group.awaits_answer


def _can_join(submission: Submission, group: FormingBatch, size: int) -> bool:
    if group.closed or len(group.members) == size:
        return False
    return submission.keep_together == group.members[0].keep_together


def _ready_at(queue: Queue, group: FormingBatch, size: int, now: Instant) -> Instant:
    if len(group.members) == size or group.closed or any(each.was_in_run for each in group.members):
        return now
    if queue.state is not QueueState.RUNNING:
        return now  # the queue admits no pull request that could join
    oldest = min(each.admitted_at or now for each in group.members)
    return later(oldest, queue.config.batching_max_wait_time_minutes * MINUTE)


def unanswered_ahead(queue: Queue, members: Sequence[Submission], now: Instant) -> Iterator[Submission]:
    """Submissions that come before one of the members and only lack the host's first answer about their mergeability:
    answers arrive in any order. A free slot waits for them, but no longer than `MAX_ANSWER_WAIT_MS`."""
    last = max(priority_rank(member, now) for member in members)
    impacted_targets = [lanes.impacted_targets_of(queue, member) for member in members]
    for submission in _unanswered(queue, now):
        targets = lanes.impacted_targets_of(queue, submission)
        if priority_rank(submission, now) < last and any(map(targets.overlaps, impacted_targets)):
            yield submission


def _unanswered(queue: Queue, now: Instant) -> Iterator[Submission]:
    if queue.state is not QueueState.RUNNING:
        return
    oldest = entries.running_time_ms(queue, now) - MAX_ANSWER_WAIT_MS
    first = queue.not_ready.rank((oldest + 1, SubmissionId(0)))
    for index in range(first, min(len(queue.not_ready), first + MAX_UNANSWERED_SCANNED)):
        submission = queue.submissions[queue.not_ready.nth(index)[1]]
        is_new = submission.reason is Reason.SUBMITTED
        if is_new and admission.not_ready_reason(queue, submission) is Reason.MERGEABILITY_UNKNOWN:
            yield submission


def _answer_due_at(queue: Queue, submission: Submission, now: Instant) -> Instant:
    waited_ms = entries.running_time_ms(queue, now) - submission.not_ready_at_running_ms
    return later(now, MAX_ANSWER_WAIT_MS - waited_ms)


class _Claims:
    """Which of the forming groups overlap with given impacted targets."""

    def __init__(self) -> None:
        self.by_name: dict[str, set[int]] = {}
        self.impacting_all: set[int] = set()
        self.groups: set[int] = set()

    def find_overlapping(self, impacted_targets: ImpactedTargets) -> set[int]:
        if impacted_targets.everything:
            return self.groups
        empty = set[int]()
        return self.impacting_all.union(*(self.by_name.get(name, empty) for name in impacted_targets.names))

    def add(self, impacted_targets: ImpactedTargets, group: int) -> None:
        self.groups = self.groups | {group}
        if impacted_targets.everything:
            self.impacting_all = self.impacting_all | {group}
        for name in impacted_targets.names:
            self.by_name.setdefault(name, set()).add(group)
