"""Finds who may merge without a run: it stands on the very tip, all statuses passed on it, and its lane is empty."""

from msgspec.structs import replace

from mergeyard.domain.config import DirectMergeMode
from mergeyard.domain.instants import Instant
from mergeyard.domain.pulls import HeadExam, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.states import QueueState
from mergeyard.engine import holding, lanes, order, places, requirements


def nominate(queue: Queue, now: Instant) -> Queue:
    """Name the one that is to be examined, or was and may land; the waiting start only when there is none."""
    if queue.direct is not None and holding.bound_by_landing(queue, queue.direct):
        return queue
    nominee = _candidate(queue, now)
    ticket = None if nominee is None else nominee.ticket
    return queue if ticket == queue.direct else replace(forget_exam(queue), direct=ticket)


def forget_exam(queue: Queue) -> Queue:
    """What was found good may not be so any more when its turn comes again. Who was not takes the way of all others."""
    former = None if queue.direct is None else queue.submissions.get(queue.direct)
    if former is None or former.exam is None or not _fit_to_land(queue, former.exam):
        return queue
    return places.update(queue, replace(former, exam=None))


def _candidate(queue: Queue, now: Instant) -> Submission | None:
    if queue.config.direct_merge_mode is DirectMergeMode.OFF or queue.state is not QueueState.RUNNING:
        return None
    first = next(order.in_order(queue, now), None)
    if first is None or not _lane_is_empty(queue, first) or lanes.contained_by(queue, (first.ticket,)):
        return None
    return first if to_be_examined(queue, first) or qualifies(queue, first) else None


def to_be_examined(queue: Queue, submission: Submission) -> bool:
    return submission.exam is None or submission.exam.tip != queue.target.tip


def qualifies(queue: Queue, submission: Submission) -> bool:
    exam = submission.exam
    return exam is not None and exam.tip == queue.target.tip and _fit_to_land(queue, exam)


def _fit_to_land(queue: Queue, exam: HeadExam) -> bool:
    if not exam.contains_tip or exam.holds_removed_commit or not exam.changes_something:
        return False
    wanted = requirements.required(queue).statuses
    return bool(wanted) and exam.passed.issuperset(wanted)


def _lane_is_empty(queue: Queue, submission: Submission) -> bool:
    targets = lanes.targets_of(queue, submission)
    others = (*queue.line.batches, *queue.bisections)
    return not any(other.targets.share_with(targets) for other in others)
