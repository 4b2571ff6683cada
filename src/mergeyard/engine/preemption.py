"""Places urgent pull requests ahead of active batches, except passed, landing and often preempted ones."""

from collections.abc import Iterable

from msgspec.structs import replace

from mergeyard.domain.config import URGENT
from mergeyard.domain.ids import BatchId, SubmissionId
from mergeyard.domain.queue import ActiveBatches, Batch, Queue
from mergeyard.domain.states import Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import admission, entries, lanes, run_validity

MAX_PREEMPTIONS = 3
"""How often a batch can be preempted."""


def place_urgent_batches(queue: Queue, _: Instant) -> Queue:
    if not _can_preempt(queue):
        return queue
    for submission_id in queue.waiting.get(URGENT, ()):
        queue = _preempt(queue, submission_id)
    return queue


def promote_urgent_submissions(queue: Queue, now: Instant) -> Queue:
    """Promotes submissions that became urgent while no batch could be preempted."""
    for submission_id in queue.active.submission_ids:
        if queue.submissions[submission_id].is_urgent:
            queue = promote_submission(queue, submission_id, now)
    return queue


def promote_submission(queue: Queue, submission_id: SubmissionId, now: Instant) -> Queue:
    """A submission that became urgent leaves its batch, unless there is no batch ahead that it could preempt. No other
    one overtook it: those that it overtakes get another reason when their runs are discarded."""
    batch = entries.batch_of(queue, submission_id)
    if batch is None or not _can_preempt(queue):
        return queue
    fixed = _fixed_batches(queue)
    if batch.id in fixed:
        return queue
    if batch.submission_ids == (submission_id,) and fixed.issuperset(queue.active.ahead[batch.id]):
        return entries.replace_batch(queue, replace(batch, urgent=True))
    queue = entries.remove_entry(queue, submission_id)
    actor = queue.submissions[submission_id].priority_set_by
    return entries.return_to_waiting(queue, (submission_id,), Reason.MADE_URGENT, now, actor=actor)


def _can_preempt(queue: Queue) -> bool:
    """While no run can start, or no statuses are required, no batch is preempted."""
    return queue.can_start_runs and run_validity.untestable_reason(queue) is None


def _preempt(queue: Queue, submission_id: SubmissionId) -> Queue:
    held = admission.hold_until_prerequisite_queued(queue, (submission_id,))
    if held is not queue:
        return held
    queue, batch = entries.create_batch(entries.remove_entry(queue, submission_id), (submission_id,))
    active = _insert_urgent(queue.active, replace(batch, urgent=True), _fixed_batches(queue))
    batches = (_count_preemption(other) if batch.id in active.ahead[other.id] else other for other in active.batches)
    return replace(queue, active=replace(active, batches=tuple(batches)))


def _insert_urgent(active: ActiveBatches, urgent: Batch, fixed: frozenset[BatchId]) -> ActiveBatches:
    """As far ahead as possible without preempting a fixed batch, and behind all submissions whose
    commits it contains."""
    prerequisites = lanes.batches_with(active, urgent.prerequisites)
    index = max((at for at, other in enumerate(active.batches, start=1) if other.id in prerequisites), default=0)
    while True:
        candidate = lanes.build_active((*active.batches[:index], urgent, *active.batches[index:]))
        preempted = [at for at, other in enumerate(active.batches) if urgent.id in candidate.ahead[other.id]]
        preempted_fixed = [at for at in preempted if active.batches[at].id in fixed]
        if not preempted_fixed:
            return candidate
        index = preempted_fixed[-1] + 1


def _fixed_batches(queue: Queue) -> frozenset[BatchId]:
    landing = frozenset[SubmissionId]() if queue.landing is None else frozenset(queue.landing.submission_ids)
    return frozenset(
        batch.id
        for batch in queue.active.batches
        if batch.urgent
        or batch.preemptions >= MAX_PREEMPTIONS
        or not landing.isdisjoint(batch.submission_ids)
        or _have_all_passed(queue, (batch, *run_validity.batches_ahead(queue, batch)))
    )


def _have_all_passed(queue: Queue, batches: Iterable[Batch]) -> bool:
    return all(run_validity.has_passed_or_is_cleared(queue, batch) for batch in batches)


def _count_preemption(batch: Batch) -> Batch:
    return replace(batch, preemptions=batch.preemptions + 1) if batch.runs else batch
