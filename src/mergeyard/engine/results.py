"""Records what the worker reports: test branches, landings and mismatches of the merge audit."""

from collections.abc import Collection, Sequence
from itertools import takewhile

from msgspec.structs import replace

from mergeyard.domain import events
from mergeyard.domain.config import LandingMethod, MergeMethod
from mergeyard.domain.ids import BatchId, PullRequestNumber, Sha, SubmissionId
from mergeyard.domain.journal import Cause
from mergeyard.domain.pull_requests import ImpactedTargets, MovedHead, PullRequest, RequiredSource
from mergeyard.domain.queue import LandedCommit, Landing, LandingPhase, Queue
from mergeyard.domain.runs import Member, Run, RunKind, Step
from mergeyard.domain.states import (
    Mergeability,
    PullRequestState,
    QueueState,
    Reason,
    RunStatus,
    check_run_transition,
)
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import (
    admission,
    blame,
    entries,
    lanes,
    merging,
    observations,
    queue_state,
    run_lifecycle,
    run_validity,
)
from mergeyard.engine.entries import abort_bisection, conclude_submission


def record_run_built(queue: Queue, event: events.RunBuilt, now: Instant) -> Queue:
    run = queue.runs.get(event.run)
    if run is None:
        return queue
    if run.status is not RunStatus.PREPARING:
        return (
            run_lifecycle.put_run(queue, replace(run, pushed=True)) if not run.pushed and not run.is_active else queue
        )
    check_run_transition(run.status, RunStatus.IN_PROGRESS)
    built = replace(run, status=RunStatus.IN_PROGRESS, chain=(*run.chain, *event.steps), pushed=True, started_at=now)
    if run.required_statuses_source is not RequiredSource.MERGE_INSTANCE:
        added = tuple(name for name in event.statuses_ahead if name not in run.required_statuses)
        built = replace(built, required_statuses=(*run.required_statuses, *added))
    queue = _share_chain(run_lifecycle.put_run(queue, built), built)
    queue = _forget_costly_heads(queue, run)
    if event.head_checks is None or not run_lifecycle.is_satisfied_by(built, event.head_checks):
        return queue
    passed = replace(built, checks=dict(event.head_checks), used_head_checks=True)
    return run_lifecycle.finish_run(queue, passed, RunStatus.SUCCEEDED, now)


def _forget_costly_heads(queue: Queue, run: Run) -> Queue:
    """Git merged them within its limits, so that an earlier attempt met a busy machine: the next one that exceeds a
    limit, perhaps days later, is a first one again."""
    for member in run.tested_members:
        submission = queue.submissions.get(member.submission_id)
        if submission is not None and submission.costly_head is not None:
            queue = entries.update_submission(queue, replace(submission, costly_head=None))
    return queue


def record_run_build_refused(queue: Queue, event: events.RunBuildRefused, now: Instant) -> Queue:
    run = queue.runs.get(event.run)
    if run is None or run.status is not RunStatus.PREPARING:
        return queue
    if any(run_validity.is_locked_by_landing(queue, member.submission_id) for member in run.tested_members):
        return queue
    if run.kind is RunKind.BISECTION:
        return _abort_bisection_of(queue, run, now)
    if event.refusal is events.BuildRefusal.CONFLICTS_WITH_STACK or event.submission_id not in _submission_ids(
        run.tested_members
    ):
        return _hold_for_conflict(queue, run, event, now)
    if entries.batch_of(queue, event.submission_id) is None:
        return queue
    submission = queue.submissions[event.submission_id]
    member = next(each for each in run.tested_members if each.submission_id == submission.id)
    if event.refusal is events.BuildRefusal.LIMIT_EXCEEDED and submission.costly_head != member.head:
        # The machine may have been busy: the run is still to be built.
        return entries.update_submission(queue, replace(submission, costly_head=member.head))
    if event.refusal is events.BuildRefusal.ALREADY_CONTAINED:
        return observations.conclude_merged_outside(queue, queue.submissions[event.submission_id], now)
    queue = entries.requeue(queue, event.submission_id, Reason.TEST_BRANCH_NOT_BUILT, now)
    reason = events.BUILD_REFUSAL_REASONS[event.refusal]
    return conclude_submission(queue, event.submission_id, PullRequestState.FAILED, reason, now, detail=event.detail)


def record_run_start_refused(queue: Queue, event: events.RunStartRefused, now: Instant) -> Queue:
    """The run is built when the queue is resumed: until then no run can start."""
    run = queue.runs.get(event.run)
    if run is None or run.status is not RunStatus.PREPARING:
        return queue
    return queue_state.set_queue_state(queue, QueueState.PAUSED, Reason.TEST_BRANCH_REFUSED, now, detail=event.detail)


def record_base_commit_missing(queue: Queue, event: events.BaseCommitMissing, now: Instant) -> Queue:
    """The run is built again from its base: other commits, but the same contents. If the base itself is missing,
    results on that base are no longer evidence."""
    run = queue.runs.get(event.run)
    if run is None or run.status is not RunStatus.PREPARING:
        return queue
    if run.chain:
        return run_lifecycle.put_run(queue, replace(run, chain=()))
    for bisection in queue.bisections:
        if run.base in {
            bisection.base,
            bisection.failed_run.base,
            *(queue.runs[prefix_run].base for prefix_run in bisection.runs),
        }:
            queue = abort_bisection(queue, bisection, bisection.members, Reason.BASE_COMMIT_MISSING, now)
    return observations.request_target_branch_refresh(queue)


def record_branch_deleted(queue: Queue, event: events.BranchDeleted) -> Queue:
    run = queue.runs.get(event.run)
    return queue if run is None or not run.pushed else run_lifecycle.put_run(queue, replace(run, pushed=False))


def _share_chain(queue: Queue, run: Run) -> Queue:
    """Runs that extend this chain can be built now, and runs that extend those know the steps ahead of them."""
    updated = [run]
    for known in updated:
        for other in queue.runs.values():
            if other.extends == known.id and other.status is RunStatus.PREPARING:
                steps_ahead = known.chain[known.stack.index(other.stack[0]) :]
                extends = known.id if known.status is RunStatus.PREPARING else None
                updated.append(replace(other, chain=steps_ahead, extends=extends))
                queue = run_lifecycle.put_run(queue, updated[-1])
    return queue


def _abort_bisection_of(queue: Queue, run: Run, now: Instant) -> Queue:
    """The failed batch cannot be rebuilt. Its members are tested again as an active batch, whose own build shows what
    is wrong."""
    bisection = next((each for each in queue.bisections if run.id in each.runs), None)
    if bisection is None:
        return queue
    return abort_bisection(queue, bisection, bisection.members, Reason.TEST_BRANCH_NOT_BUILT, now)


def _hold_for_conflict(queue: Queue, run: Run, event: events.RunBuildRefused, now: Instant) -> Queue:
    """Holds the conflicting members until the pull requests ahead are gone. If one of those is the problem, its own run
    shows it, and everything stacked on it waits."""
    submission_ids, tested = _submission_ids(run.stack), _submission_ids(run.tested_members)
    conflicting = (event.submission_id,) if event.submission_id in tested else tested
    held = tuple(submission_id for submission_id in conflicting if submission_id in queue.active.submission_ids)
    blockers = event.blockers or submission_ids[: submission_ids.index(conflicting[0])]
    return admission.hold_for_conflict(queue, held, blockers, now)


def _submission_ids(members: tuple[Member, ...]) -> tuple[SubmissionId, ...]:
    return tuple(member.submission_id for member in members)


def record_landing_rebased(queue: Queue, landing: Landing, event: events.LandingRebased) -> Queue:
    if landing.phase is not LandingPhase.REBASING:
        return queue
    run = queue.runs[landing.run]
    steps = merging.prefer_reused_steps(queue, landing.members, event.steps, run.merge_method)
    return replace(queue, landing=replace(landing, phase=LandingPhase.READING, steps=steps))


def record_landing_rebase_refused(queue: Queue, landing: Landing, _: events.LandingRebaseRefused) -> Queue:
    """A pull request that landed since changed the same paths: the batch is tested again on the new tip."""
    if landing.phase is not LandingPhase.REBASING:
        return queue
    return replace(_invalidate_run(queue, landing, Reason.TARGET_BRANCH_MOVED), landing=None)


def record_landing_pull_requests_read(
    queue: Queue, landing: Landing, event: events.LandingPullRequestsRead, now: Instant
) -> Queue:
    """Applies the fresh state of every pull request. A change ends or demotes its submission, and the landing is chosen
    again."""
    if landing.phase is not LandingPhase.READING or {
        pull_request.number for pull_request in event.pull_requests
    } != _numbers(landing):
        return queue
    if any(
        queue.submissions[submission_id].recorded_at_revision > event.observed_at_revision
        or (queue.refresh_requested.get(submission_id) or 0) > event.observed_at_revision
        for submission_id in landing.submission_ids
        if submission_id in queue.submissions
    ):
        return queue  # something changed during the read, which is repeated
    if any(observations.is_moved_by_us(queue, pull_request, now) for pull_request in event.pull_requests):
        return queue  # the Git host does not show yet that the head branch was moved back: the read is repeated
    for pull_request in event.pull_requests:
        queue = observations.apply_pull_request(queue, pull_request, event.observed_at_revision, now)
    if any(pull_request.exceeded_limit for pull_request in event.pull_requests):
        return queue  # of these nothing is known about the tip: the read is repeated
    submissions = [each for each in map(queue.submissions.get, landing.submission_ids) if each is not None]
    unforced = [each for each in submissions if not each.forced]
    for submission in unforced:
        reason = _not_mergeable_reason(submission.pull_request)
        if reason is not None and submission.state is not PullRequestState.NOT_READY:
            queue = admission.demote_to_not_ready(queue, submission.id, reason, now)
    if not all(each.pull_request.is_mergeable for each in unforced):
        return queue
    run = queue.runs[landing.run]
    by_provider = run.landing_method is LandingMethod.PROVIDER_MERGE
    if not by_provider and merging.needs_provider_merge(queue, landing.members, run):
        # A head branch can no longer be moved, for example because it was protected during the test: the landing is
        # chosen again, because those ahead of it can still land as tested.
        run = replace(run, landing_method=LandingMethod.PROVIDER_MERGE)
        return replace(run_lifecycle.put_run(queue, run), landing=None)
    return replace(queue, landing=replace(landing, pull_requests_read=True))


def _not_mergeable_reason(pull_request: PullRequest) -> Reason | None:
    if pull_request.mergeability is Mergeability.NOT_MERGEABLE:
        return Reason.NO_LONGER_MERGEABLE
    return next((requirement.reason for requirement in pull_request.unmet_requirements), None)


def record_landing_succeeded(queue: Queue, landing: Landing, event: events.LandingSucceeded, now: Instant) -> Queue:
    return replace(_land(queue, landing, event.steps, now), landing=None) if landing.is_intended else queue


def record_landing_missed(queue: Queue, landing: Landing, event: events.LandingMissed, now: Instant) -> Queue:
    """The target branch is not as recorded: it must be read before anything else lands."""
    if not landing.is_intended:
        return queue
    if event.steps:
        queue = _land(queue, landing, event.steps, now)
    if event.test_branch_moved:
        queue = _invalidate_run(queue, landing, Reason.TEST_BRANCH_MOVED)
    queue = _note_heads_moved_back(queue, landing, event.refused_heads, now)
    return replace(observations.request_target_branch_refresh(queue), landing=None)


def _note_heads_moved_back(
    queue: Queue, landing: Landing, refused: Collection[PullRequestNumber], now: Instant
) -> Queue:
    """The Git host can still show for a moment that we had moved the head branches."""
    for move in landing.head_moves:
        submission = queue.submission_of(move.number)
        assert submission is not None  # the landing kept it in the queue
        refused_head = move.head if move.number in refused else submission.refused_head
        submission = replace(submission.with_moved_head(MovedHead(move.commit, now)), refused_head=refused_head)
        pull_request = observations.apply_refusal(submission, submission.pull_request)
        queue = entries.update_submission(queue, replace(submission, pull_request=pull_request))
    return queue


def record_landing_refused(queue: Queue, landing: Landing, event: events.LandingRefused, now: Instant) -> Queue:
    if not landing.is_intended:
        return queue
    if event.steps:
        queue = _land(queue, landing, event.steps, now)
    queue = replace(_note_heads_moved_back(queue, landing, (), now), landing=None)
    if event.submission_id is None:
        return queue_state.set_queue_state(queue, QueueState.PAUSED, Reason.LANDING_REFUSED, now, detail=event.detail)
    return conclude_submission(
        queue, event.submission_id, PullRequestState.FAILED, Reason.MERGE_REFUSED, now, detail=event.detail
    )


def record_landing_outcome_unknown(
    queue: Queue, landing: Landing, _: events.LandingOutcomeUnknown, now: Instant
) -> Queue:
    if not landing.is_intended:
        return queue
    queue = replace(observations.request_target_branch_refresh(queue), landing=None)
    for submission_id in landing.submission_ids:
        queue = conclude_submission(queue, submission_id, PullRequestState.CANCELLED, Reason.LANDING_UNKNOWN, now)
    return queue


def _invalidate_run(queue: Queue, landing: Landing, reason: Reason) -> Queue:
    run = replace(queue.runs[landing.run], invalidated=reason)
    return run_lifecycle.put_run(queue, run)


def _numbers(landing: Landing) -> set[int]:
    return {member.number for member in landing.members}


def _land(queue: Queue, landing: Landing, steps: tuple[Step, ...], now: Instant) -> Queue:
    verifies_tip = len(steps) == len(landing.members) and _is_tip_verified(queue, landing)
    connected = _connected_steps(queue.target_branch.tip, steps)
    same_trees = all(step.tree == tested.tree for step, tested in zip(steps, landing.steps, strict=False))
    as_tested = same_trees and connected == steps
    queue = _extend_history(queue, landing, connected, as_tested=as_tested)
    if connected != steps:
        queue = observations.request_target_branch_refresh(queue)
    queue = _remove_landed_batches(queue, frozenset(landing.submission_ids[: len(steps)]))
    if queue.runs[landing.run].merge_method is MergeMethod.MERGE_COMMIT:
        queue = _conclude_contained(queue, landing.members[: len(steps)], now)
    for submission_id, step in zip(landing.submission_ids, steps, strict=False):
        submission = queue.submissions[submission_id]
        submission = replace(submission, merged_sha=step.commit, verified_by=landing.run, rebased=landing.rebased)
        queue = entries.update_submission(queue, submission)
        queue = conclude_submission(
            queue, submission_id, PullRequestState.MERGED, _merge_reason(queue, landing, as_tested), now
        )
    if not as_tested:
        return queue_state.set_queue_state(queue, QueueState.PAUSED, Reason.TREE_MISMATCH, now)
    return blame.record_passed_base(queue, steps[-1].commit) if verifies_tip else queue


def _conclude_contained(queue: Queue, landed: tuple[Member, ...], now: Instant) -> Queue:
    """Concludes those whose commits landed as a part of another one: none of them can fail for a test any more. Squash
    and rebase make other commits."""
    landed_ids = _submission_ids(landed)
    for member in landed:
        for number, head in queue.submissions[member.submission_id].pull_request.contained_heads.items():
            other = queue.submission_of(number)
            if other is None or other.id in landed_ids or other.pull_request.head != head:
                continue
            cause = Cause(member.number)
            reason = Reason.MERGED_WITH_ANOTHER
            queue = conclude_submission(queue, other.id, PullRequestState.MERGED, reason, now, causes=(cause,))
    return queue


def _is_tip_verified(queue: Queue, landing: Landing) -> bool:
    """Whether all statuses required now passed on exactly the commit that becomes the tip."""
    return not landing.rebased and run_validity.outgrown_reason(queue, queue.runs[landing.run]) is None


def _merge_reason(queue: Queue, landing: Landing, as_tested: bool) -> Reason:
    if not as_tested:
        return Reason.TREE_MISMATCH
    return Reason.MERGED_DIRECTLY if queue.runs[landing.run].used_head_checks else Reason.MERGED_BY_QUEUE


def _connected_steps(tip: Sha | None, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps of which each is the child of the one before. At a gap, another push removed the commit between during
    the merge: the next read of the target branch finds what was removed."""
    parents = (tip, *(step.commit for step in steps))
    pairs = takewhile(lambda pair: pair[0] == pair[1].parent, zip(parents, steps, strict=False))
    return tuple(step for _, step in pairs)


def _extend_history(queue: Queue, landing: Landing, steps: tuple[Step, ...], *, as_tested: bool) -> Queue:
    """If the result differs from what was tested, another push may be in between: results on the earlier history then
    say nothing about the new tip."""
    landed = tuple(
        LandedCommit(step.commit, step.tree, member.submission_id, _lane_targets(queue, member.submission_id))
        for member, step in zip(landing.members, steps, strict=False)
    )
    history = (*queue.target_branch.history, *landed)
    target_branch = replace(
        queue.target_branch,
        tip=history[-1].commit,
        history=history if as_tested else history[-1:],
        recorded_at_revision=queue.counters.revision,
    )
    return replace(queue, target_branch=target_branch)


def _lane_targets(queue: Queue, submission_id: SubmissionId) -> ImpactedTargets:
    batch = entries.batch_of(queue, submission_id)
    return (
        lanes.impacted_targets_of(queue, queue.submissions[submission_id]) if batch is None else batch.impacted_targets
    )


def _remove_landed_batches(queue: Queue, submission_ids: frozenset[SubmissionId]) -> Queue:
    """Removes whole batches at once. A batch that the host merged in part loses its members one by one."""
    landed_batches = frozenset[BatchId](
        batch.id for batch in queue.active.batches if submission_ids.issuperset(batch.submission_ids)
    )
    return replace(queue, active=lanes.remove_landed(queue.active, landed_batches))


MAX_MISMATCHES_SHOWN = 3
MAX_REPORTED_MISMATCHES = 500
"""Only a rewritten history causes more."""


def record_audit_mismatches(queue: Queue, event: events.AuditMismatchFound, now: Instant) -> Queue:
    """A user who resumes the queue has seen why it paused, so known mismatches do not pause it again."""
    known = frozenset(queue.target_branch.reported_mismatches)
    new = {mismatch.key: mismatch for mismatch in event.mismatches if mismatch.key not in known}
    if not new:
        return queue
    reported = (*queue.target_branch.reported_mismatches, *new)[-MAX_REPORTED_MISMATCHES:]
    queue = replace(queue, target_branch=replace(queue.target_branch, reported_mismatches=reported))
    detail = _format_mismatches(tuple(new.values()))
    return queue_state.set_queue_state(queue, QueueState.PAUSED, Reason.AUDIT_MISMATCH, now, detail=detail)


def _format_mismatches(new: Sequence[events.Mismatch]) -> str:
    messages = [mismatch.message for mismatch in new[:MAX_MISMATCHES_SHOWN]]
    more = len(new) - len(messages)
    return " ".join([*messages, f"{more} more: run `mergeyard verify` to list them."] if more else messages)
