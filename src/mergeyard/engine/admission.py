"""Admits submissions that are ready, demotes those that are not, and holds those that cannot be tested now."""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import Sha, SubmissionId
from mergeyard.domain.journal import Cause
from mergeyard.domain.pull_requests import Hold, PullRequest, Submission
from mergeyard.domain.queue import Batch, Queue
from mergeyard.domain.runs import Member
from mergeyard.domain.states import REVIEW_REASONS, Mergeability, PullRequestState, QueueState, Reason
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import entries, lanes, run_lifecycle, run_validity
from mergeyard.engine.entries import on_member_left, running_time_ms


def not_ready_reason(queue: Queue, submission: Submission) -> Reason | None:
    """What the pull request lacks, or the queue: without required checks nothing can be tested. While the host has not
    reported the mergeability, the pull request waits and does not fail."""
    pull_request = submission.pull_request
    if run_validity.lacks_required_statuses(queue):
        return Reason.NO_REQUIRED_STATUSES
    if pull_request.base_branch != queue.target_branch.name:
        return Reason.BASE_BRANCH_MISMATCH
    if pull_request.draft:
        return Reason.DRAFT
    if pull_request.exceeded_limit:
        return Reason.MERGEABILITY_UNKNOWN
    if needs_maintainer(submission):
        return Reason.WAITING_FOR_MAINTAINER
    if pull_request.fork and pull_request.guarded_paths is None and not submission.by_maintainer:
        return Reason.MERGEABILITY_UNKNOWN
    if queue.config.mode is Mode.PARALLEL and submission.impacted_targets is None:
        return Reason.MISSING_IMPACTED_TARGETS
    if submission.forced:
        return None
    if pull_request.mergeability is Mergeability.NOT_MERGEABLE:
        return Reason.NOT_MERGEABLE
    for requirement in pull_request.unmet_requirements:
        return requirement.reason
    return None if pull_request.mergeability is Mergeability.MERGEABLE else Reason.MERGEABILITY_UNKNOWN


def needs_maintainer(submission: Submission) -> bool:
    return submission.pull_request.fork and bool(submission.pull_request.guarded_paths) and not submission.by_maintainer


def withdrawn_reason(submission: Submission) -> Reason | None:
    """Why an admitted pull request must not stay in the queue: the target branch can guard other paths than before, and
    reviewers can withdraw their approval."""
    if needs_maintainer(submission):
        return Reason.WAITING_FOR_MAINTAINER
    unmet = () if submission.forced else submission.pull_request.unmet_requirements
    return next((requirement.reason for requirement in unmet if requirement.reason in REVIEW_REASONS), None)


def can_no_longer_merge(queue: Queue, member: Member, pull_request: PullRequest) -> bool:
    """Whether the pull request was pushed, closed or changed, or lost an approval, after its landing was decided. Of
    one that is merged already, the worker finds the commit."""
    if pull_request.merged_into is not None:
        return False
    submission = queue.submissions.get(member.submission_id)
    unmet = () if submission is not None and submission.forced else pull_request.unmet_requirements
    is_same = pull_request.head == member.head and pull_request.base_branch == queue.target_branch.name
    return not pull_request.is_open or pull_request.draft or not is_same or bool(unmet)


def admit_if_ready(queue: Queue, submission_id: SubmissionId, now: Instant) -> Queue:
    submission = queue.submissions[submission_id]
    if submission.state is not PullRequestState.NOT_READY or queue.state is not QueueState.RUNNING:
        return queue
    if not_ready_reason(queue, submission) is not None:
        return queue
    queue = entries.set_state(
        entries.remove_entry(queue, submission_id), submission_id, PullRequestState.PENDING, Reason.READY, now
    )
    queue = entries.update_submission(queue, replace(queue.submissions[submission_id], admitted_at=now))
    return entries.move_to_waiting(queue, submission_id)


def update_admitting_mode(queue: Queue, now: Instant) -> Queue:
    """Admits submissions that became ready while admission was closed, and those that another mode requires less of."""
    is_admitting = queue.state is QueueState.RUNNING and not run_validity.lacks_required_statuses(queue)
    admitting_mode = queue.config.mode if is_admitting else None
    if admitting_mode == queue.admitting_mode:
        return queue
    queue = replace(queue, admitting_mode=admitting_mode)
    for _, submission_id in queue.not_ready if admitting_mode is not None else ():
        queue = admit_if_ready(queue, submission_id, now)
    return queue


def demote_to_not_ready(queue: Queue, submission_id: SubmissionId, reason: Reason, now: Instant) -> Queue:
    cause = Cause(queue.submissions[submission_id].number)
    queue = entries.remove_entry(queue, submission_id)
    queue = on_member_left(queue, submission_id, merged=False, now=now, causes=(cause,))
    queue = entries.set_state(queue, submission_id, PullRequestState.NOT_READY, reason, now)
    return entries.move_to_not_ready(queue, submission_id, running_time_ms(queue, now))


PREREQUISITE_HOLD = Hold(Reason.WAITING_FOR_PRS_AHEAD)


def hold_until_prerequisite_queued(queue: Queue, submission_ids: tuple[SubmissionId, ...]) -> Queue:
    """A submission that contains the commits of another one waits until that one is active or in the same batch."""
    for index, submission_id in enumerate(submission_ids):
        if not _missing_prerequisites(queue, lanes.contained_submission_ids(queue, (submission_id,))).issubset(
            submission_ids[:index]
        ):
            queue = entries.move_to_held(entries.remove_entry(queue, submission_id), submission_id, PREREQUISITE_HOLD)
    return queue


def hold_batches_without_prerequisite(queue: Queue, now: Instant) -> Queue:
    """A batch whose members contain the commits of a submission that is no longer active is held until that one is
    active again."""
    for batch in run_validity.unlocked_batches(queue):
        missing = _missing_prerequisites(queue, batch.prerequisites)
        if missing:
            reason, others = _explain_missing(queue, batch, missing)
            return _hold_active(queue, batch.submission_ids, PREREQUISITE_HOLD, reason, others, now)
    return queue


def _explain_missing(
    queue: Queue, batch: Batch, missing: frozenset[SubmissionId]
) -> tuple[Reason, frozenset[SubmissionId]]:
    """Why the batch is tested again, and because of which of the missing submissions."""
    runs = queue.runs_of(batch)
    mates = missing.intersection(member.submission_id for run in runs for member in run.tested_members)
    if mates:
        return Reason.BATCHMATE_REMOVED, mates
    ahead = missing.intersection(member.submission_id for run in runs for member in run.prs_ahead)
    if ahead:
        return Reason.PREREQUISITE_REMOVED, ahead
    return Reason.CONTAINS_WAITING_PR, missing


def hold_for_conflict(
    queue: Queue, submission_ids: tuple[SubmissionId, ...], blockers: tuple[SubmissionId, ...], now: Instant
) -> Queue:
    hold = Hold(Reason.CONFLICTS_WITH_PR_AHEAD, blockers=blockers)
    return _hold_active(queue, submission_ids, hold, hold.reason, blockers, now)


def _hold_active(
    queue: Queue,
    submission_ids: tuple[SubmissionId, ...],
    hold: Hold,
    reason: Reason,
    others: Iterable[SubmissionId],
    now: Instant,
) -> Queue:
    """`others` are the pull requests because of which these are held."""
    live = [each for each in sorted(others) if each in queue.submissions]
    causes = tuple(Cause(queue.submissions[each].number) for each in live)
    for submission_id in submission_ids:
        queue = entries.remove_entry(queue, submission_id)
        queue = entries.requeue(queue, submission_id, reason, now, causes=causes)
        queue = entries.move_to_held(queue, submission_id, hold)
    return queue


def release_holds(queue: Queue, _: Instant) -> Queue:
    for submission_id in queue.held:
        hold = queue.submissions[submission_id].hold
        if hold is not None and not _is_still_held(queue, submission_id, hold):
            queue = entries.move_to_waiting(entries.remove_entry(queue, submission_id), submission_id)
    return queue


def awaited_submission_ids(queue: Queue, submission_id: SubmissionId, hold: Hold) -> frozenset[SubmissionId]:
    """The submissions that a held one waits for now."""
    if hold.reason is Reason.CONFLICTS_WITH_PR_AHEAD:
        return frozenset(queue.active.submission_ids).intersection(hold.blockers)
    if hold.reason is Reason.WAITING_FOR_PRS_AHEAD:
        return _missing_prerequisites(queue, lanes.contained_submission_ids(queue, (submission_id,)))
    return frozenset()


def _is_still_held(queue: Queue, submission_id: SubmissionId, hold: Hold) -> bool:
    if hold.tip is None:
        return bool(awaited_submission_ids(queue, submission_id, hold))
    target_branch = queue.target_branch
    return target_branch.tip == hold.tip and hold.tip not in target_branch.passed_bases


def _missing_prerequisites(queue: Queue, submission_ids: Collection[SubmissionId]) -> frozenset[SubmissionId]:
    """Those that can still become active. One that waits for a fix of the base is excluded: this submission may be the
    fix."""
    if not submission_ids:
        return frozenset()
    live = [queue.submissions[submission_id] for submission_id in submission_ids if submission_id in queue.submissions]
    can_become_active = (each.id for each in live if each.hold is None or each.hold.reason is not Reason.BASE_BROKEN)
    return frozenset(can_become_active).difference(queue.active.submission_ids)


def apply_required_statuses(before: Queue, queue: Queue, now: Instant) -> Queue:
    """Passed bases stay valid if fewer statuses are required. Broken ones do not: the failed status may not be required
    now."""
    required_before, required_now = (set(run_validity.required_statuses(each).statuses) for each in (before, queue))
    if required_before == required_now:
        return queue
    if required_now:
        queue = run_lifecycle.drop_required_statuses(queue, required_before - required_now, now)
    passed_bases = queue.target_branch.passed_bases if required_now <= required_before else frozenset[Sha]()
    target_branch = replace(queue.target_branch, broken_bases=frozenset(), passed_bases=passed_bases)
    return _release_base_holds(replace(queue, target_branch=target_branch))


def _release_base_holds(queue: Queue) -> Queue:
    for submission_id in queue.held:
        hold = queue.submissions[submission_id].hold
        if hold is not None and hold.reason is Reason.BASE_BROKEN:
            queue = entries.move_to_waiting(entries.remove_entry(queue, submission_id), submission_id)
    return queue
