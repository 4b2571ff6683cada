"""Records what was seen of the world: pull requests, the target, checks. An outdated look is asked for again."""

from msgspec.structs import replace

from mergeyard.domain.events import ChecksSeen, PullSeen, TargetSeen
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.instants import Instant
from mergeyard.domain.landing import Landed
from mergeyard.domain.pulls import PullRequest, Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import CheckState, Mergeability, PrState, RunStatus
from mergeyard.domain.targets import Targets
from mergeyard.engine import clock, directing, holding, leaving, places, proving, readiness, reconsidering, running


def ask_for_pull(queue: Queue, number: PrNumber) -> Queue:
    submission = queue.submission_of(number)
    if submission is None or queue.looks.get(submission.ticket) == queue.counters.turns:
        return queue
    return replace(queue, looks=queue.looks.put(submission.ticket, queue.counters.turns))


def ask_for_the_unknown(queue: Queue) -> Queue:
    """Somebody was to look at them, and may have forgotten."""
    for _, ticket in queue.not_ready:
        pull = queue.submissions[ticket].pull
        if pull.mergeability is Mergeability.CHECKING:
            queue = ask_for_pull(queue, pull.number)
    return queue


def ask_for_target(queue: Queue) -> Queue:
    return queue if queue.target.look else replace(queue, target=replace(queue.target, look=True))


def see_pull(queue: Queue, event: PullSeen, now: Instant) -> Queue:
    submission = queue.submission_of(event.pull.number)
    if submission is None:
        return queue
    if event.as_of < submission.seen:
        return ask_for_pull(queue, event.pull.number)
    return record_pull(queue, event.pull, event.as_of, now, event.targets)


def record_pull(queue: Queue, pull: PullRequest, as_of: int, now: Instant, targets: Targets | None = None) -> Queue:
    submission = queue.submission_of(pull.number)
    if submission is None:
        return queue
    if holding.bound_by_landing(queue, submission.ticket):
        return ask_for_pull(queue, pull.number)
    end = _end_of_stay(queue, submission, pull)
    if end is not None:
        state, reason = end
        queue = leaving.leave(queue, submission.ticket, state, reason, now)
        return ask_for_target(queue) if state is PrState.MERGED else queue
    asked = queue.looks.get(submission.ticket)
    if asked is not None and asked <= as_of:
        queue = replace(queue, looks=queue.looks.drop(submission.ticket))
    submission = _refreshed(queue, submission, pull, targets)
    queue = places.update(queue, submission)
    # The target branch can guard other paths than when the pull request was admitted.
    if submission.state is not PrState.NOT_READY and readiness.awaits_maintainer(submission):
        return readiness.demote(queue, submission.ticket, Reason.WAITING_FOR_MAINTAINER, now)
    return readiness.admit(queue, submission.ticket, now)


def see_target(queue: Queue, event: TargetSeen) -> Queue:
    landing = queue.landing
    if event.as_of < queue.target.seen or (landing is not None and landing.intended):
        return ask_for_target(queue)
    target = replace(
        queue.target,
        required=event.required,
        removed=(queue.target.removed | event.removed) - event.restored,
    )
    if event.tip != target.tip:
        history = () if event.tip is None else (Landed(event.tip, None),)
        target = replace(target, tip=event.tip, lost=None if event.tip else target.last_tip, history=history)
    if target != queue.target:
        target = replace(target, seen=queue.counters.turns)
    if not queue.target.look and target == queue.target:
        return queue
    if event.removed:
        queue = directing.forget_exam(_distrust_runs(queue))
    return reconsidering.reconsider(queue, replace(queue, target=replace(target, look=False)))


def _distrust_runs(queue: Queue) -> Queue:
    """Something was taken off the target: a run that was built before may hold it, even if its base is back."""
    for run in queue.runs.values():
        if run.kind is RunKind.LINE:
            queue = running.put(queue, replace(run, void=Reason.TARGET_BRANCH_MOVED))
    return queue


def see_checks(queue: Queue, event: ChecksSeen, now: Instant) -> Queue:
    """A decided run never changes, and checks count only for the run whose tip they were reported on."""
    run = queue.runs.get(event.run)
    if run is None or run.status is not RunStatus.IN_PROGRESS or event.as_of < run.seen:
        return queue
    if dict(event.checks) != run.checks:
        run = replace(run, checks=dict(event.checks), seen=queue.counters.turns)
        queue = running.put(queue, run)
    states = [event.checks.get(name, CheckState.PENDING) for name in run.required]
    if CheckState.FAILED in states:
        return _fail(queue, run, now)
    if states and CheckState.PENDING not in states:
        return running.decide(queue, run, RunStatus.SUCCEEDED, now)
    if run.overdue_since is None or event.told or event.as_of < run.overdue_since:
        return queue
    if clock.is_overdue(run, now):
        return _fail(queue, replace(run, timed_out=True), now)
    return running.put(queue, replace(run, overdue_since=None))


def _fail(queue: Queue, run: Run, now: Instant) -> Queue:
    queue = running.decide(queue, run, RunStatus.FAILED, now)
    if run.kind is RunKind.BARE and not queue.paused and holding.failed_for_good(queue, queue.runs[run.id]):
        return proving.record_broken(queue, run.base)
    return queue


def _end_of_stay(queue: Queue, submission: Submission, pull: PullRequest) -> tuple[PrState, Reason] | None:
    if pull.contained or pull.merged_into == queue.target.name:
        return PrState.MERGED, Reason.MERGED_MANUALLY
    if not pull.is_open:
        return PrState.CANCELLED, Reason.PR_CLOSED
    admitted = submission.state is not PrState.NOT_READY
    if pull.head != submission.pull.head and (admitted or pull.fork or submission.pinned):
        return PrState.CANCELLED, Reason.PR_PUSHED
    if admitted and pull.base != queue.target.name:
        return PrState.CANCELLED, Reason.PR_BASE_CHANGED
    if admitted and pull.draft:
        return PrState.CANCELLED, Reason.PR_CONVERTED_TO_DRAFT
    return None


def _refreshed(queue: Queue, submission: Submission, pull: PullRequest, targets: Targets | None) -> Submission:
    if pull.head != submission.pull.head:
        submission = replace(submission, targets=None, exam=None, by_maintainer=False)
    seen = submission.seen if pull == submission.pull else queue.counters.turns
    return replace(submission, pull=pull, targets=targets or submission.targets, seen=seen)
