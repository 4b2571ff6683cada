"""Carries out what people ask of a pull request: submit, cancel, restart, let it pass others, say what it impacts."""

from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.events import (
    CancelRequested,
    PriorityRequested,
    PrSubmitted,
    PullSeen,
    RestartRequested,
    TargetsUploaded,
)
from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.priorities import URGENT, USUAL
from mergeyard.domain.pulls import PullRequest, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason, Refusal
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.engine import (
    clock,
    dissolving,
    holding,
    leaving,
    looking,
    naming,
    places,
    readiness,
    running,
    urgency,
)


def submit(queue: Queue, event: PrSubmitted, now: Instant) -> Queue | Refusal:
    """The host's view comes first: it may end the stay that there is, and then a new one begins, if it can."""
    known = queue.submission_of(event.pull.number)
    if known is None:
        return _closed(event.pull) or _enter(queue, event, now)
    queue = looking.see_pull(queue, PullSeen(pull=event.pull, as_of=event.as_of, targets=event.targets), now)
    known = queue.submission_of(event.pull.number)
    if known is not None:
        return _amend(queue, known, event, now)
    return queue if _closed(event.pull) else _enter(queue, event, now)


def cancel(queue: Queue, event: CancelRequested, now: Instant) -> Queue | Refusal:
    submission = queue.submission_of(event.number)
    if submission is None:
        return Refusal.PR_NOT_SUBMITTED
    if holding.bound_by_landing(queue, submission.ticket):
        return Refusal.MERGE_IN_PROGRESS
    reason = Reason.CANCELLED_BY_USER
    return leaving.leave(queue, submission.ticket, PrState.CANCELLED, reason, now, actor=event.actor)


def restart(queue: Queue, event: RestartRequested, now: Instant) -> Queue | Refusal:
    """Its batch gets a new run in the same place; the runs behind it go on."""
    submission = queue.submission_of(event.number)
    if submission is None:
        return Refusal.PR_NOT_SUBMITTED
    if submission.state not in (PrState.TESTING, PrState.PENDING_FAILURE):
        return Refusal.TESTS_NOT_RUNNING
    bisection = dissolving.bisection_of(queue, submission.ticket)
    if bisection is not None:
        for ticket in bisection.members:
            queue = naming.set_back(queue, ticket, Reason.TESTS_RESTARTED, now, actor=event.actor)
        return dissolving.dissolve(queue, bisection, bisection.members, Reason.TESTS_RESTARTED, now)
    batch = next(batch for batch in queue.line.batches if submission.ticket in batch.tickets)
    for run in queue.runs_of(batch):
        if run.active:
            queue = running.decide(queue, run, RunStatus.CANCELLED, now)
        queue = running.put(queue, replace(queue.runs[run.id], restarted=True))
    for ticket in batch.tickets:
        queue = naming.set_back(queue, ticket, Reason.TESTS_RESTARTED, now, actor=event.actor)
    return queue


def prioritise(queue: Queue, event: PriorityRequested, now: Instant) -> Queue | Refusal:
    submission = queue.submission_of(event.number)
    if submission is None:
        return Refusal.PR_NOT_SUBMITTED
    if holding.bound_by_landing(queue, submission.ticket):
        return Refusal.MERGE_IN_PROGRESS
    return _change_priority(queue, submission, event.priority, now)


def upload_targets(queue: Queue, event: TargetsUploaded, now: Instant) -> Queue:
    """Whoever began to look before may have found what was said before."""
    submission = queue.submission_of(event.number)
    if submission is None or submission.pull.head != event.head or event.targets == submission.targets:
        return queue
    queue = places.update(queue, replace(submission, targets=event.targets, seen=queue.counters.turns))
    return readiness.admit(queue, submission.ticket, now)


def _closed(pull: PullRequest) -> Refusal | None:
    if pull.contained or pull.merged_into is not None:
        return Refusal.PR_ALREADY_MERGED
    return None if pull.is_open else Refusal.PR_CLOSED


def _enter(queue: Queue, event: PrSubmitted, now: Instant) -> Queue:
    count, mark = queue.counters.tickets + 1, clock.running_time(queue, now)
    submission = Submission(
        ticket=Ticket(count),
        pull=event.pull,
        priority=USUAL if event.priority is None else event.priority,
        priority_is_default=event.priority is None,
        no_batch=bool(event.no_batch),
        forced=bool(event.forced),
        pinned=event.pinned,
        by_maintainer=event.by_maintainer,
        targets=event.targets,
        submitted_at=now,
        state_changed_at=now,
        not_ready_mark=mark,
        seen=queue.counters.turns,
    )
    queue = replace(queue, counters=replace(queue.counters, tickets=count))
    queue = naming.enter(queue, submission, now, event.actor)
    queue = places.to_not_ready(queue, submission.ticket, mark)
    return readiness.admit(_look_again(queue, submission, event), submission.ticket, now)


def _amend(queue: Queue, known: Submission, event: PrSubmitted, now: Instant) -> Queue:
    """Only what was given changes, and nothing touches one whose merge is being pushed."""
    if holding.bound_by_landing(queue, known.ticket):
        return queue
    amended = replace(
        known,
        no_batch=known.no_batch if event.no_batch is None else event.no_batch,
        forced=known.forced if event.forced is None else event.forced,
        pinned=known.pinned or event.pinned,
        by_maintainer=known.by_maintainer or (event.by_maintainer and event.pull.head == known.pull.head),
        targets=event.targets if event.targets and _are_news(event, known) else known.targets,
    )
    queue = places.update(queue, amended)
    if event.priority is not None:
        queue = _change_priority(queue, amended, event.priority, now)
    return readiness.admit(_look_again(queue, amended, event), known.ticket, now)


def _are_news(event: PrSubmitted, known: Submission) -> bool:
    """Whoever began to look before may have found what was said before."""
    return event.pull.head == known.pull.head and (known.targets is None or event.as_of >= known.seen)


def _look_again(queue: Queue, submission: Submission, event: PrSubmitted) -> Queue:
    """Somebody may be saying just now what it impacts: whoever is served first, a look finds it."""
    awaits_targets = submission.targets is None and queue.config.mode is Mode.PARALLEL
    return looking.ask_for_pull(queue, submission.number) if awaits_targets or not event.complete else queue


def _change_priority(queue: Queue, submission: Submission, priority: int, now: Instant) -> Queue:
    changed = replace(submission, priority=priority, priority_is_default=False)
    bucket = queue.waiting.get(submission.priority, ())
    if submission.ticket in bucket:
        queue = places.update(places.take_out(queue, submission.ticket), changed)
        return places.to_waiting(queue, submission.ticket)
    queue = places.update(queue, changed)
    return urgency.raise_in_line(queue, submission.ticket, now) if priority == URGENT else queue
