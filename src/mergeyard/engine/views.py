"""What responses and pages show of the engine's state: why a pull request waits, its position, the queue as text."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

from msgspec import Struct

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import PullRequestNumber, RunId, SubmissionId
from mergeyard.domain.pull_requests import Requirement, Submission
from mergeyard.domain.queue import Batch, Bisection, Obstacle, Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import (
    REQUIREMENT_REASONS,
    CheckState,
    PullRequestState,
    QueueState,
    Reason,
    RunStatus,
)
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import (
    admission,
    batching,
    blame,
    entries,
    lanes,
    run_lifecycle,
    run_validity,
    speculation,
)
from mergeyard.engine.entries import bisection_of

MAX_NAMED = 3
"""Of those whose mergeability is awaited: thousands can wait for the same ones."""
NOT_RUNNING_REASONS = {
    QueueState.PAUSED: Reason.QUEUE_PAUSED,
    QueueState.DRAINING: Reason.QUEUE_DRAINING,
    QueueState.SWITCHING_MODES: Reason.SWITCHING_MODES,
}


class WaitReason(Struct, frozen=True):
    reason: Reason
    prs: tuple[PullRequestNumber, ...] = ()
    checks: tuple[str, ...] = ()
    """The required statuses that have not been reported."""
    paths: tuple[str, ...] = ()
    """The guarded paths that need a maintainer."""
    requirements: tuple[Requirement, ...] = ()
    """What the rules of the Git host require and the pull request lacks."""
    detail: str = ""
    """The message of the Git host about what it refuses."""
    until: Instant | None = None
    """When it goes on, if that is known."""


def wait_reason(queue: Queue, submission: Submission, now: Instant) -> WaitReason:
    if submission.state is PullRequestState.NOT_READY:
        reason = admission.not_ready_reason(queue, submission) or NOT_RUNNING_REASONS.get(queue.state, Reason.READY)
        obstacle = _find_obstacle(queue, submission)
        if reason is Reason.MERGEABILITY_UNKNOWN and obstacle is not None:
            return WaitReason(obstacle.reason, detail=obstacle.detail, until=obstacle.until)
        pull_request = submission.pull_request
        paths = pull_request.guarded_paths if reason is Reason.WAITING_FOR_MAINTAINER else None
        unmet = pull_request.unmet_requirements if reason in REQUIREMENT_REASONS else ()
        return WaitReason(reason, paths=paths or (), requirements=unmet)
    if submission.hold is not None:
        if submission.hold.reason is Reason.BASE_BROKEN and blame.is_base_being_retried(queue):
            return WaitReason(Reason.WAITING_FOR_BASE)
        awaited_ids = admission.awaited_submission_ids(queue, submission.id, submission.hold)
        return WaitReason(submission.hold.reason, _numbers(queue, sorted(awaited_ids)))
    # First: without a read of the Git host it is not known either whether the target branch exists.
    obstacle = _find_obstacle(queue, submission)
    if obstacle is not None:
        return WaitReason(obstacle.reason, detail=obstacle.detail, until=obstacle.until)
    if queue.target_branch.tip is None:
        return WaitReason(Reason.TARGET_BRANCH_MISSING)
    batch = entries.batch_of(queue, submission.id)
    if batch is not None:
        return _explain_active(queue, submission, batch)
    bisection = bisection_of(queue, submission.id)
    if bisection is not None:
        return _explain_bisecting(queue, submission, bisection)
    return _explain_waiting(queue, submission, now)


def _find_obstacle(queue: Queue, submission: Submission) -> Obstacle | None:
    """What keeps this pull request from being read, tested or merged."""
    obstacle = queue.obstacle
    if obstacle is None or obstacle.number not in (None, submission.number):
        return None
    if obstacle.only_waiting and submission.state is not PullRequestState.NOT_READY:
        return None  # it was read, and its run is built as soon as it is its turn
    return obstacle


def _explain_waiting(queue: Queue, submission: Submission, now: Instant) -> WaitReason:
    if not queue.can_start_runs:
        return WaitReason(NOT_RUNNING_REASONS[queue.state])
    if run_validity.lacks_required_statuses(queue):
        return WaitReason(Reason.NO_REQUIRED_STATUSES)
    if not run_lifecycle.free_slots(queue):
        return WaitReason(Reason.WAITING_FOR_SLOT)
    own_targets = lanes.impacted_targets_of(queue, submission)
    deferred = (batch for batch in speculation.deferred_batches(queue) if batch.impacted_targets.overlaps(own_targets))
    deferred_ids = (submission_id for batch in deferred for submission_id in batch.submission_ids)
    unanswered = (each.id for each in islice(batching.unanswered_ahead(queue, (submission,), now), MAX_NAMED))
    ahead = _numbers(queue, (*deferred_ids, *unanswered))
    if not ahead and not queue.config.batch:
        before = _waiting_before(queue, submission, now)
        own_lane = (each.id for each in before if lanes.impacted_targets_of(queue, each).overlaps(own_targets))
        ahead = _numbers(queue, islice(own_lane, MAX_NAMED))
    if not ahead and not queue.config.batch:
        # Only the first ones are considered for a slot, and those wait for an answer of the Git host.
        ahead = _numbers(queue, (each.id for each in islice(_waiting_before(queue, submission, now), MAX_NAMED)))
    return WaitReason(Reason.WAITING_FOR_PRS_AHEAD, ahead) if ahead else WaitReason(Reason.WAITING_FOR_BATCH)


def _waiting_before(queue: Queue, submission: Submission, now: Instant) -> Iterator[Submission]:
    """Those that wait and go first."""
    return takewhile(lambda other: other.id != submission.id, batching.waiting_in_order(queue, now))


def _explain_active(queue: Queue, submission: Submission, batch: Batch) -> WaitReason:
    ahead = _numbers(queue, run_validity.submission_ids_ahead(queue, batch))
    run = run_validity.current_run(queue, batch)
    if submission.state is PullRequestState.TESTS_PASSED:
        return _explain_passed(queue, submission, ahead)
    if run is not None and run.status is RunStatus.PREPARING and queue.is_paused:
        return WaitReason(Reason.QUEUE_PAUSED)
    if run is not None and run.is_active:
        return _explain_under_test(run)
    if not queue.can_start_runs:
        return WaitReason(NOT_RUNNING_REASONS[queue.state])
    if (run is None or run_validity.must_be_repeated(queue, run)) and not (ahead and run_lifecycle.free_slots(queue)):
        return WaitReason(Reason.WAITING_FOR_SLOT)
    if ahead:
        return WaitReason(Reason.WAITING_FOR_PRS_AHEAD, ahead)
    successors = blame.awaited_successors(queue, batch)
    if successors:
        behind = (submission_id for other in successors for submission_id in other.submission_ids)
        return WaitReason(Reason.WAITING_FOR_PRS_BEHIND, _numbers(queue, behind))
    return WaitReason(Reason.WAITING_FOR_BASE)


def _explain_passed(queue: Queue, submission: Submission, ahead: tuple[PullRequestNumber, ...]) -> WaitReason:
    if queue.is_paused:
        return WaitReason(Reason.QUEUE_PAUSED)
    landing = () if queue.landing is None else queue.landing.submission_ids
    if submission.id in landing:
        return WaitReason(submission.reason)
    blockers = ahead or _numbers(queue, landing)
    return WaitReason(Reason.WAITING_FOR_PRS_AHEAD, blockers) if blockers else WaitReason(submission.reason)


def _explain_under_test(run: Run) -> WaitReason:
    unreported = tuple(
        name for name in run.required_statuses if run.checks.get(name, CheckState.PENDING) is CheckState.PENDING
    )
    return WaitReason(Reason.WAITING_FOR_CHECKS, checks=unreported)


def _explain_bisecting(queue: Queue, submission: Submission, bisection: Bisection) -> WaitReason:
    runs = run_validity.active_runs(queue, bisection.runs)
    for run in runs:
        if any(member.submission_id == submission.id for member in run.tested_members):
            return _explain_under_test(run)
    if not queue.can_start_runs:
        return WaitReason(NOT_RUNNING_REASONS[queue.state])
    if bisection.is_searching:
        under_test = (member.submission_id for run in runs for member in run.tested_members)
        return (
            WaitReason(Reason.BISECTION, _numbers(queue, under_test)) if runs else WaitReason(Reason.WAITING_FOR_SLOT)
        )
    unmerged = _numbers(
        queue,
        (submission_id for submission_id in bisection.prefix if submission_id not in bisection.merged_submission_ids),
    )
    if unmerged:
        return WaitReason(Reason.WAITING_FOR_PRS_AHEAD, unmerged)
    is_blamed = any(submission.id in blamed.submission_ids for blamed in blame.all_blames(queue))
    return WaitReason(Reason.WAITING_FOR_BASE if is_blamed else Reason.WAITING_FOR_SLOT)


def _numbers(queue: Queue, submission_ids: Iterable[SubmissionId]) -> tuple[PullRequestNumber, ...]:
    live = dict.fromkeys(submission_id for submission_id in submission_ids if submission_id in queue.submissions)
    return tuple(queue.submissions[submission_id].number for submission_id in live)


def enqueued_submissions(queue: Queue, now: Instant) -> Iterator[Submission]:
    """All submissions: active batches, bisections, waiting, held, not ready."""
    for submission_id in queue.submission_ids_under_test:
        yield queue.submissions[submission_id]
    yield from batching.waiting_in_order(queue, now)
    for submission_id in queue.held:
        yield queue.submissions[submission_id]
    for _, submission_id in queue.not_ready:
        yield queue.submissions[submission_id]


def position(queue: Queue, submission: Submission, now: Instant) -> int | None:
    """Its 1-based position among all admitted submissions, without iterating over the waiting ones."""
    if submission.state is PullRequestState.NOT_READY:
        return None
    under_test = queue.submission_ids_under_test
    if submission.id in under_test:
        return under_test.index(submission.id) + 1
    if submission.id in queue.held:
        waiting = sum(len(bucket) for bucket in queue.waiting.values())
        return len(under_test) + waiting + queue.held.rank(submission.id) + 1
    return len(under_test) + _count_waiting_before(queue, submission, now) + 1


def displayed_run(queue: Queue, submission: Submission) -> RunId | None:
    """Its own run, or the base run that it waits for."""
    if submission.state is not PullRequestState.PENDING_FAILURE:
        return submission.run
    for blamed in blame.all_blames(queue):
        if submission.id in blamed.submission_ids:
            base_run = blame.base_runs(queue).get(blamed.run.base)
            return base_run.id if base_run is not None and base_run.pushed else submission.run
    return submission.run


def _count_waiting_before(queue: Queue, submission: Submission, now: Instant) -> int:
    """Each priority is sorted, so a binary search in each counts those before it."""
    rank = batching.priority_rank(submission, now)
    return sum(
        bisect_left(
            range(len(bucket)),
            rank,
            key=lambda index: batching.priority_rank(queue.submissions[bucket.nth(index)], now),
        )
        for bucket in queue.waiting.values()
    )


def render_text(queue: Queue) -> str:
    text = _render_single(queue) if queue.mode is Mode.SINGLE else _render_parallel(queue)
    base_mark = " ?" if any(run.is_active for run in blame.base_runs(queue).values()) else ""
    return text + base_mark + "".join(_render_bisection(queue, each) for each in queue.bisections)


def _render_single(queue: Queue) -> str:
    return " ← ".join([queue.target_branch.name, *(_render_batch(queue, batch) for batch in queue.active.batches)])


def _render_parallel(queue: Queue) -> str:
    parts = [f"{_render_dependencies(queue, batch)} ← {_render_batch(queue, batch)}" for batch in queue.active.batches]
    return " ∥ ".join(parts) or queue.target_branch.name


def _render_dependencies(queue: Queue, batch: Batch) -> str:
    ahead = run_validity.batches_ahead(queue, batch)
    return ", ".join(_render_numbers(queue, other.submission_ids) for other in ahead) or queue.target_branch.name


def _render_batch(queue: Queue, batch: Batch) -> str:
    return _render_numbers(queue, batch.submission_ids) + _batch_mark(queue, batch)


def _batch_mark(queue: Queue, batch: Batch) -> str:
    run = run_validity.current_run(queue, batch)
    if run_validity.has_passed_or_is_cleared(queue, batch):
        return "✓"
    if run is None or run.restart_requested:
        return ""
    return "✗" if run_validity.has_failed_finally(queue, run) else "…"


def _render_bisection(queue: Queue, bisection: Bisection) -> str:
    runs = queue.runs_of(bisection)
    prefixes = [
        _render_numbers(queue, (member.submission_id for member in run.tested_members)) + "…"
        for run in sorted(runs, key=lambda run: run.tested_count)
        if run.status is not RunStatus.FAILED
    ]
    return " ".join([f" ⋔ {_render_numbers(queue, bisection.members)}", *([":", *prefixes] if prefixes else [])])


def _render_numbers(queue: Queue, submission_ids: Iterable[SubmissionId]) -> str:
    numbers = {
        submission_id: submission.number
        for submission_id in submission_ids
        if (submission := queue.submissions.get(submission_id))
    }
    return "+".join(map(str, numbers.values()))
