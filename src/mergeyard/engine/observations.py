"""Records observations: pull requests, the target branch, checks. An outdated observation is requested again."""

from collections.abc import Sequence

from msgspec.structs import replace

from mergeyard.domain.events import ChecksObserved, PullRequestObserved, TargetBranchObserved
from mergeyard.domain.ids import PullRequestNumber, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess, ImpactedTargets, MovedHead, PullRequest, Submission
from mergeyard.domain.queue import LandedCommit, Queue
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import CheckState, Mergeability, PullRequestState, Reason, RunStatus
from mergeyard.domain.timestamps import MINUTE, Instant, later
from mergeyard.engine import admission, blame, entries, run_lifecycle, run_validity, timeouts
from mergeyard.engine.entries import conclude_submission


def request_pull_request_refresh(queue: Queue, number: PullRequestNumber) -> Queue:
    submission = queue.submission_of(number)
    if submission is None or queue.refresh_requested.get(submission.id) == queue.counters.revision:
        return queue
    return replace(queue, refresh_requested=queue.refresh_requested.put(submission.id, queue.counters.revision))


def request_refresh_of_unknown_mergeability(queue: Queue) -> Queue:
    """Before a restart a read was due that may not have happened."""
    for _, submission_id in queue.not_ready:
        pull_request = queue.submissions[submission_id].pull_request
        if pull_request.mergeability is Mergeability.CHECKING:
            queue = request_pull_request_refresh(queue, pull_request.number)
    return queue


def request_target_branch_refresh(queue: Queue) -> Queue:
    return (
        queue
        if queue.target_branch.refresh_requested
        else replace(queue, target_branch=replace(queue.target_branch, refresh_requested=True))
    )


def record_pull_request(queue: Queue, event: PullRequestObserved, now: Instant) -> Queue:
    submission = queue.submission_of(event.pull_request.number)
    if submission is None:
        return queue
    if event.observed_at_revision < submission.recorded_at_revision:
        return request_pull_request_refresh(queue, event.pull_request.number)
    return apply_pull_request(queue, event.pull_request, event.observed_at_revision, now, event.impacted_targets)


def apply_pull_request(
    queue: Queue,
    pull_request: PullRequest,
    observed_at: int,
    now: Instant,
    impacted_targets: ImpactedTargets | None = None,
) -> Queue:
    submission = queue.submission_of(pull_request.number)
    if submission is None:
        return queue
    if run_validity.is_locked_by_landing(queue, submission.id):
        return request_pull_request_refresh(queue, pull_request.number)
    conclusion = _conclusion_of(queue, submission, pull_request, now)
    if conclusion is not None:
        state, reason = conclusion
        if state is PullRequestState.MERGED:
            return conclude_merged_outside(queue, submission, now)
        head = f"The head was {submission.pull_request.head}." if reason is Reason.HEAD_NOT_MOVED_BACK else ""
        return conclude_submission(queue, submission.id, state, reason, now, detail=head)
    requested_at = queue.refresh_requested.get(submission.id)
    if requested_at is not None and requested_at <= observed_at:
        queue = replace(queue, refresh_requested=queue.refresh_requested.drop(submission.id))
    if is_moved_by_us(queue, pull_request, now):
        return queue  # the head branch is moved back, which is another change
    if pull_request.exceeded_limit:
        return record_exceeded_limit(queue, submission, pull_request, now)
    submission = _merge_observation(queue, submission, pull_request, impacted_targets)
    queue = entries.update_submission(queue, submission)
    withdrawn = admission.withdrawn_reason(submission)
    if withdrawn is None and _conflicts_before_its_turn(queue, submission):
        withdrawn = Reason.NO_LONGER_MERGEABLE
    if submission.state is not PullRequestState.NOT_READY and withdrawn is not None:
        return admission.demote_to_not_ready(queue, submission.id, withdrawn, now)
    return admission.admit_if_ready(queue, submission.id, now)


def _conflicts_before_its_turn(queue: Queue, submission: Submission) -> bool:
    """The author of a pull request that waits is told about a conflict at once, not when a run of it is built. One that
    is in a batch can be mergeable with those ahead of it: its own run shows that."""
    if submission.forced or submission.pull_request.mergeability is not Mergeability.NOT_MERGEABLE:
        return False
    return submission.id not in queue.submission_ids_under_test


def record_exceeded_limit(queue: Queue, submission: Submission, pull_request: PullRequest, now: Instant) -> Queue:
    """The first time, the machine may have been busy: the pull request is read again, and what was known of it still
    counts. The second time it fails, because git would need as long after every change of the target branch."""
    head = pull_request.head
    if submission.costly_head != head:
        queue = entries.update_submission(queue, replace(submission, costly_head=head))
        return request_pull_request_refresh(queue, submission.number)
    queue = entries.update_submission(queue, replace(submission, pull_request=pull_request))
    detail = pull_request.exceeded_limit
    return conclude_submission(queue, submission.id, PullRequestState.FAILED, Reason.PR_TOO_LARGE, now, detail=detail)


def conclude_merged_outside(queue: Queue, submission: Submission, now: Instant) -> Queue:
    """The target branch contains the pull request, though this queue did not land it."""
    queue = conclude_submission(queue, submission.id, PullRequestState.MERGED, Reason.MERGED_MANUALLY, now)
    return request_target_branch_refresh(queue)


def record_target_branch(queue: Queue, event: TargetBranchObserved, now: Instant) -> Queue:
    landing = queue.landing
    if event.observed_at_revision < queue.target_branch.recorded_at_revision or (
        landing is not None and landing.is_intended
    ):
        return request_target_branch_refresh(queue)
    target_branch = replace(
        queue.target_branch,
        required_statuses=event.required_statuses,
        removed_commits=queue.target_branch.removed_commits | event.removed_commits,
    )
    if event.tip != target_branch.tip:
        history = () if event.tip is None else (LandedCommit(event.tip, None),)
        target_branch = replace(
            target_branch, tip=event.tip, deleted_tip=None if event.tip else target_branch.last_tip, history=history
        )
    if target_branch != queue.target_branch:
        target_branch = replace(target_branch, recorded_at_revision=queue.counters.revision)
    if not queue.target_branch.refresh_requested and target_branch == queue.target_branch:
        return queue
    if event.removed_commits:
        queue = _invalidate_batch_runs(queue)
    return admission.apply_required_statuses(
        queue, replace(queue, target_branch=replace(target_branch, refresh_requested=False)), now
    )


def _invalidate_batch_runs(queue: Queue) -> Queue:
    """Commits were removed from the target branch: a run built before can contain them, even if its
    base is restored."""
    for run in queue.runs.values():
        if run.kind is RunKind.BATCH:
            queue = run_lifecycle.put_run(queue, replace(run, invalidated=Reason.TARGET_BRANCH_MOVED))
    return queue


def record_checks(queue: Queue, event: ChecksObserved, now: Instant) -> Queue:
    """A decided run never changes, and checks count only for the run whose tip they were reported on."""
    run = queue.runs.get(event.run)
    if run is None or run.status is not RunStatus.IN_PROGRESS or event.observed_at_revision < run.recorded_at_revision:
        return queue
    if dict(event.checks) != run.checks:
        run = replace(run, checks=dict(event.checks), recorded_at_revision=queue.counters.revision)
        queue = run_lifecycle.put_run(queue, run)
    if CheckState.FAILED in map(event.checks.get, run.required_statuses):
        return _fail_run(queue, run, now)
    passed = run_lifecycle.pass_if_complete(queue, run, now)
    if passed is not queue:
        return passed
    if run.overdue_at_revision is None or event.pushed or event.observed_at_revision < run.overdue_at_revision:
        return queue
    if timeouts.is_overdue(run, now):
        return _fail_run(queue, timeouts.mark_timed_out(run), now)
    return run_lifecycle.put_run(queue, replace(run, overdue_at_revision=None))


def _fail_run(queue: Queue, run: Run, now: Instant) -> Queue:
    queue = run_lifecycle.finish_run(queue, run, RunStatus.FAILED, now)
    if run.kind is RunKind.BASE and not queue.is_paused and run_validity.has_failed_finally(queue, queue.runs[run.id]):
        return blame.record_broken_base(queue, run.base, now)
    return queue


MOVED_HEAD_SEEN_MS = 2 * MINUTE
"""After a merge that did not happen, the Git host can show for this long that we had moved the head branch."""


def is_moved_by_us(queue: Queue, pull_request: PullRequest, now: Instant) -> bool:
    """Whether the Git host shows a head that we moved for a landing that did not happen, a short time ago."""
    submission = queue.submission_of(pull_request.number)
    moves = () if submission is None else _moves_to(submission, pull_request.head)
    return any(now < later(each.at, MOVED_HEAD_SEEN_MS) for each in moves)


def _moves_to(submission: Submission, head: Sha) -> Sequence[MovedHead]:
    return [each for each in submission.moved_heads if each.commit == head]


def apply_refusal(submission: Submission, pull_request: PullRequest) -> PullRequest:
    """The Git host can refuse to move a head branch although it reports that we can."""
    if pull_request.head != submission.refused_head:
        return pull_request
    return replace(pull_request, head_branch_access=HeadBranchAccess.PROTECTED)


def _conclusion_of(
    queue: Queue, submission: Submission, pull_request: PullRequest, now: Instant
) -> tuple[PullRequestState, Reason] | None:
    if pull_request.is_in_target_branch or pull_request.merged_into == queue.target_branch.name:
        return PullRequestState.MERGED, Reason.MERGED_MANUALLY
    if not pull_request.is_open:
        return PullRequestState.CANCELLED, Reason.PR_CLOSED
    admitted = submission.state is not PullRequestState.NOT_READY
    is_pushed = pull_request.head != submission.pull_request.head and not is_moved_by_us(queue, pull_request, now)
    if is_pushed and _moves_to(submission, pull_request.head):
        return PullRequestState.CANCELLED, Reason.HEAD_NOT_MOVED_BACK
    if is_pushed and (admitted or pull_request.fork or submission.head_pinned):
        return PullRequestState.CANCELLED, Reason.PR_PUSHED
    if admitted and pull_request.base_branch != queue.target_branch.name:
        return PullRequestState.CANCELLED, Reason.PR_BASE_CHANGED
    if admitted and pull_request.draft:
        return PullRequestState.CANCELLED, Reason.PR_CONVERTED_TO_DRAFT
    return None


def _merge_observation(
    queue: Queue, submission: Submission, pull_request: PullRequest, impacted_targets: ImpactedTargets | None
) -> Submission:
    if pull_request.head != submission.pull_request.head:
        submission = replace(submission, impacted_targets=None, by_maintainer=False, forced=False)
    pull_request = apply_refusal(submission, pull_request)
    recorded_at = (
        submission.recorded_at_revision if pull_request == submission.pull_request else queue.counters.revision
    )
    return replace(
        submission,
        pull_request=pull_request,
        impacted_targets=impacted_targets or submission.impacted_targets,
        recorded_at_revision=recorded_at,
    )


def expire_overdue(queue: Queue, now: Instant) -> Queue:
    queue = blame.retry_broken_base(timeouts.mark_overdue_runs(queue, now), now)
    while (due_at := timeouts.next_not_ready_timeout(queue, now)) is not None and due_at <= now:
        _, submission_id = queue.not_ready.chunks[0].keys[0]
        queue = conclude_submission(queue, submission_id, PullRequestState.CANCELLED, Reason.NOT_READY_TIMEOUT, now)
    return queue
