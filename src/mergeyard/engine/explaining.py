"""Says what a pull request waits for, in one of the words of the contract: nothing waits in silence."""

from collections.abc import Iterable

from msgspec import Struct

from mergeyard.domain.ids import PrNumber, Ticket
from mergeyard.domain.line import Batch, Bisection
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run
from mergeyard.domain.states import CheckState, PrState, QueueState
from mergeyard.engine import accusing, dissolving, holding, lanes, places, readiness, retaining, running, speculating

CLOSED = {
    QueueState.PAUSED: Reason.QUEUE_PAUSED,
    QueueState.DRAINING: Reason.QUEUE_DRAINING,
    QueueState.SWITCHING_MODES: Reason.SWITCHING_MODES,
}


class Waiting(Struct, frozen=True):
    reason: Reason
    prs: tuple[PrNumber, ...] = ()
    checks: tuple[str, ...] = ()
    """The required statuses that have not reported."""
    paths: tuple[str, ...] = ()
    """The guarded paths for which a maintainer is needed."""


def explain(queue: Queue, submission: Submission) -> Waiting:
    if submission.state is PrState.NOT_READY:
        reason = readiness.unready(queue, submission) or CLOSED.get(queue.state, Reason.READY)
        paths = submission.pull.guarded if reason is Reason.WAITING_FOR_MAINTAINER else None
        return Waiting(reason, paths=paths or ())
    if submission.hold is not None:
        awaited = retaining.awaited(queue, submission.ticket, submission.hold)
        return Waiting(submission.hold.reason, _numbers(queue, sorted(awaited)))
    if queue.target.tip is None:
        return Waiting(Reason.TARGET_BRANCH_MISSING)
    if queue.host_lost_at is not None:
        return Waiting(Reason.PROVIDER_UNAVAILABLE)
    batch = places.batch_of(queue, submission.ticket)
    if batch is not None:
        return _in_line(queue, submission, batch)
    bisection = dissolving.bisection_of(queue, submission.ticket)
    if bisection is not None:
        return _in_bisection(queue, submission, bisection)
    return _among_the_waiting(queue, submission)


def _among_the_waiting(queue: Queue, submission: Submission) -> Waiting:
    if not queue.may_start:
        return Waiting(CLOSED[queue.state])
    if not running.free_slots(queue):
        return Waiting(Reason.WAITING_FOR_SLOT)
    if queue.direct == submission.ticket:
        return Waiting(Reason.WAITING_FOR_CHECKS)
    if queue.direct is not None:
        return Waiting(Reason.WAITING_FOR_PRS_AHEAD, _numbers(queue, (queue.direct,)))
    mine = lanes.targets_of(queue, submission)
    asleep = (batch for batch in speculating.asleep(queue) if batch.targets.share_with(mine))
    ahead = _numbers(queue, (ticket for batch in asleep for ticket in batch.tickets))
    return Waiting(Reason.WAITING_FOR_PRS_AHEAD, ahead) if ahead else Waiting(Reason.WAITING_FOR_BATCH)


def _in_line(queue: Queue, submission: Submission, batch: Batch) -> Waiting:
    ahead = _numbers(queue, holding.tickets_ahead(queue, batch))
    run = holding.current_run(queue, batch)
    if submission.state is PrState.TESTS_PASSED:
        return _passed(queue, submission, ahead)
    if run is not None and run.active:
        return _under_test(run)
    if not queue.may_start:
        return Waiting(CLOSED[queue.state])
    if (run is None or holding.to_be_repeated(queue, run)) and not (ahead and running.free_slots(queue)):
        return Waiting(Reason.WAITING_FOR_SLOT)
    if ahead:
        return Waiting(Reason.WAITING_FOR_PRS_AHEAD, ahead)
    awaited = accusing.successors_awaited(queue, batch)
    if awaited:
        behind = (ticket for other in awaited for ticket in other.tickets)
        return Waiting(Reason.WAITING_FOR_PRS_BEHIND, _numbers(queue, behind))
    return Waiting(Reason.WAITING_FOR_BASE)


def _passed(queue: Queue, submission: Submission, ahead: tuple[PrNumber, ...]) -> Waiting:
    if queue.paused:
        return Waiting(Reason.QUEUE_PAUSED)
    landing = () if queue.landing is None else queue.landing.tickets
    if submission.ticket in landing:
        return Waiting(submission.reason)
    blockers = ahead or _numbers(queue, landing)
    return Waiting(Reason.WAITING_FOR_PRS_AHEAD, blockers) if blockers else Waiting(submission.reason)


def _under_test(run: Run) -> Waiting:
    silent = tuple(name for name in run.required if run.checks.get(name, CheckState.PENDING) is CheckState.PENDING)
    return Waiting(Reason.WAITING_FOR_CHECKS, checks=silent)


def _in_bisection(queue: Queue, submission: Submission, bisection: Bisection) -> Waiting:
    runs = holding.active_runs(queue, bisection.runs)
    for run in runs:
        if any(member.ticket == submission.ticket for member in run.tested):
            return _under_test(run)
    if not queue.may_start:
        return Waiting(CLOSED[queue.state])
    if bisection.searching:
        under_test = (member.ticket for run in runs for member in run.tested)
        return Waiting(Reason.BISECTION, _numbers(queue, under_test)) if runs else Waiting(Reason.WAITING_FOR_SLOT)
    unmerged = _numbers(queue, (ticket for ticket in bisection.prefix if ticket not in bisection.merged))
    if unmerged:
        return Waiting(Reason.WAITING_FOR_PRS_AHEAD, unmerged)
    accused = any(submission.ticket in accusation.accused for accusation in accusing.accusations(queue))
    return Waiting(Reason.WAITING_FOR_BASE if accused else Reason.WAITING_FOR_SLOT)


def _numbers(queue: Queue, tickets: Iterable[Ticket]) -> tuple[PrNumber, ...]:
    live = dict.fromkeys(ticket for ticket in tickets if ticket in queue.submissions)
    return tuple(queue.submissions[ticket].number for ticket in live)
