"""Moves pull requests between the places of the queue: not ready, waiting, held back, the line, a bisection, out."""

from collections.abc import Iterable

from msgspec.structs import replace

from mergeyard.domain.ids import BatchId, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.line import Batch
from mergeyard.domain.pulls import Hold, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.sorted_map import SortedMap
from mergeyard.engine import lanes, naming


def update(queue: Queue, submission: Submission) -> Queue:
    if queue.submissions.get(submission.ticket) == submission:
        return queue
    return replace(queue, submissions=queue.submissions.put(submission.ticket, submission))


def to_waiting(queue: Queue, ticket: Ticket) -> Queue:
    submission = queue.submissions[ticket]
    bucket: SortedMap[Ticket, None] = queue.waiting.get(submission.priority, SortedMap())
    waiting = {**queue.waiting, submission.priority: bucket.put(ticket, None)}
    return replace(update(queue, replace(submission, hold=None)), waiting=waiting)


def to_held(queue: Queue, ticket: Ticket, hold: Hold) -> Queue:
    queue = update(queue, replace(queue.submissions[ticket], hold=hold))
    return replace(queue, held=queue.held.put(ticket, None))


def to_not_ready(queue: Queue, ticket: Ticket, mark: int) -> Queue:
    queue = update(queue, replace(queue.submissions[ticket], not_ready_mark=mark, admitted_at=None))
    return replace(queue, not_ready=queue.not_ready.put((mark, ticket), None))


def send_back(queue: Queue, tickets: Iterable[Ticket], reason: Reason, now: Instant) -> Queue:
    """From the line or a bisection to the waiting, to be tested again."""
    for ticket in tickets:
        queue = to_waiting(naming.set_back(queue, ticket, reason, now), ticket)
    return queue


def hold_back(queue: Queue, tickets: Iterable[Ticket], hold: Hold, now: Instant) -> Queue:
    """From the line or a bisection to those that must stay out of every stack for now."""
    for ticket in tickets:
        queue = to_held(naming.set_back(queue, ticket, hold.reason, now), ticket, hold)
    return queue


def reunite(queue: Queue, tickets: tuple[Ticket, ...]) -> Queue:
    for ticket in tickets:
        queue = update(queue, replace(queue.submissions[ticket], reunion=tickets))
    return queue


def take_out(queue: Queue, ticket: Ticket) -> Queue:
    """Out of wherever it stands but a bisection, which has its own way of losing a member."""
    submission = queue.submissions[ticket]
    bucket = queue.waiting.get(submission.priority)
    if bucket is not None and ticket in bucket:
        return replace(queue, waiting=_with_bucket(queue, submission.priority, bucket.drop(ticket)))
    batch = batch_of(queue, ticket)
    if batch is not None:
        return _out_of_batch(queue, batch, ticket)
    return replace(
        queue,
        not_ready=queue.not_ready.drop((submission.not_ready_mark, ticket)),
        held=queue.held.drop(ticket),
    )


def new_batch(queue: Queue, tickets: tuple[Ticket, ...]) -> tuple[Queue, Batch]:
    count = queue.counters.batches + 1
    batch = Batch(
        id=BatchId(count),
        tickets=tickets,
        targets=lanes.targets_of_all(queue, tickets),
        behind=lanes.contained_by(queue, tickets),
    )
    return replace(queue, counters=replace(queue.counters, batches=count)), batch


def to_line(queue: Queue, batch: Batch) -> Queue:
    return replace(queue, line=lanes.append(queue.line, batch))


def batch_of(queue: Queue, ticket: Ticket) -> Batch | None:
    return next((batch for batch in queue.line.batches if ticket in batch.tickets), None)


def replace_batch(queue: Queue, batch: Batch) -> Queue:
    """The same batch in the same place with other facts; its lane stays what it was."""
    batches = tuple(batch if other.id == batch.id else other for other in queue.line.batches)
    return replace(queue, line=replace(queue.line, batches=batches))


def renew_lane(queue: Queue, batch: Batch) -> Queue:
    """The same batch in the same place, with its members and targets as they are now."""
    targets, behind = lanes.targets_of_all(queue, batch.tickets), lanes.contained_by(queue, batch.tickets)
    renewed = replace(batch, targets=targets, behind=behind)
    line = lanes.arrange(renewed if other.id == batch.id else other for other in queue.line.batches)
    return replace(queue, line=line)


def remove_batch(queue: Queue, batch: Batch) -> Queue:
    return replace(queue, line=lanes.arrange(other for other in queue.line.batches if other.id != batch.id))


def _with_bucket(queue: Queue, priority: int, bucket: SortedMap[Ticket, None]) -> dict[int, SortedMap[Ticket, None]]:
    waiting = {**queue.waiting, priority: bucket}
    if not bucket:
        del waiting[priority]
    return waiting


def _out_of_batch(queue: Queue, batch: Batch, ticket: Ticket) -> Queue:
    rest = tuple(other for other in batch.tickets if other != ticket)
    return renew_lane(queue, replace(batch, tickets=rest)) if rest else remove_batch(queue, batch)
