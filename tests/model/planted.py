"""Wrong engines, each with one small bug that an engineer could make. The laws and stories must detect all of them."""

# pyright: reportPrivateUsage=false
# A bug can be in any function, also in a private one.

import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.events import ChecksObserved, LandingPullRequestsRead, PullRequestObserved, TargetBranchObserved
from mergeyard.domain.ids import BatchId, Sha, SubmissionId
from mergeyard.domain.journal import Cause, PullRequestChanged
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.queue import ActiveBatches, Batch, Bisection, LandedCommit, Landing, Queue, TargetBranch
from mergeyard.domain.runs import Run
from mergeyard.domain.states import REQUIREMENT_REASONS, CheckState, PullRequestState, Reason, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import (
    admission,
    batching,
    blame,
    decide,
    entries,
    failures,
    lanes,
    merging,
    observations,
    preemption,
    queue_state,
    results,
    run_lifecycle,
    run_validity,
    timeouts,
)
from mergeyard.engine import bisection as bisection_module
from mergeyard.engine.blame import BaseHealth, Blame
from mergeyard.engine.entries import on_member_left
from mergeyard.engine.run_lifecycle import Stack


class Planted(Struct, frozen=True):
    bug: str
    right: Callable[..., Any]
    wrong: Callable[..., Any]


@contextmanager
def planted(bug: Planted) -> Generator[None]:
    """Replace the right function in every engine module whose globals refer to it."""
    modules = [module for name, module in sys.modules.items() if name.startswith("mergeyard.engine.")]
    known = [(module, name) for module in modules for name, value in list(vars(module).items()) if value is bug.right]
    steps = decide.STEPS
    decide.STEPS = tuple(bug.wrong if step is bug.right else step for step in steps)
    for module, name in known:
        setattr(module, name, bug.wrong)
    try:
        yield
    finally:
        decide.STEPS = steps
        for module, name in known:
            setattr(module, name, bug.right)


_invalidation_reason = run_validity.invalidation_reason
_apply_pull_request = observations.apply_pull_request
_plan_stack = run_lifecycle.plan_stack
_finish_run = run_lifecycle.finish_run
_repeat_run = run_lifecycle.repeat_run
_record_checks = observations.record_checks


def blame_without_waiting(queue: Queue, batch: Batch) -> Blame | None:
    run = run_validity.failed_run(queue, batch)
    return None if run is None else Blame(run, batch.submission_ids)


def trust_stale_runs(_queue: Queue, _batch: Batch, run: Run) -> Reason | None:
    return run.invalidated


def forget_batchmates(queue: Queue, batch: Batch, run: Run) -> Reason | None:
    reason = _invalidation_reason(queue, batch, run)
    return None if reason is Reason.BATCHMATE_REMOVED else reason


def ignore_urgent(queue: Queue, batch: Batch, run: Run) -> Reason | None:
    reason = _invalidation_reason(queue, batch, run)
    return None if reason is Reason.SKIP_THE_LINE_INTERRUPTED else reason


def ignore_new_requirements(queue: Queue, batch: Batch, run: Run) -> Reason | None:
    reason = _invalidation_reason(queue, batch, run)
    return None if reason is Reason.REQUIRED_STATUSES_CHANGED else reason


def always_free(_queue: Queue) -> int:
    return 3


def only_direct_predecessors(active: ActiveBatches, batch: Batch) -> tuple[BatchId, ...]:
    direct = lanes.direct_predecessors(active, batch)
    return tuple(other for other in active.ahead if other in direct)


def no_predecessors(_active: ActiveBatches, _batch: Batch) -> tuple[BatchId, ...]:
    return ()


def assume_passing_base(_queue: Queue, _run: Run) -> BaseHealth:
    return BaseHealth.PASSING


def finish_and_trust_base(queue: Queue, run: Run, status: RunStatus, now: Instant) -> Queue:
    queue = _finish_run(queue, run, status, now)
    return blame.record_passed_base(queue, run.base) if status is RunStatus.SUCCEEDED else queue


def ignore_foreign_commits(target: TargetBranch, base: Sha) -> tuple[LandedCommit, ...]:
    commits = [landed.commit for landed in target.history]
    return target.history[commits.index(base) + 1 :] if base in commits else ()


def accept_any_target_branch_observation(queue: Queue, event: TargetBranchObserved, now: Instant) -> Queue:
    return _record_target_branch(queue, replace(event, observed_at_revision=queue.counters.revision), now)


_record_target_branch = observations.record_target_branch


def accept_any_pull_request_observation(queue: Queue, event: PullRequestObserved, now: Instant) -> Queue:
    return _apply_pull_request(queue, event.pull_request, event.observed_at_revision, now, event.impacted_targets)


def always_current(_queue: Queue, _landing: Landing) -> bool:
    return True


def land_unread(queue: Queue, now: Instant) -> Queue:
    chosen = _choose_landing(queue, now)
    if chosen.landing is None or chosen.landing.pull_requests_read or not chosen.landing.steps:
        return chosen
    return replace(chosen, landing=replace(chosen.landing, pull_requests_read=True))


_choose_landing = merging.choose_landing


def can_choose_while_paused(queue: Queue) -> bool:
    return not queue.target_branch.refresh_requested


def land_without_checking_prs_ahead(queue: Queue, batch: Batch) -> bool:
    return run_validity.has_passed(queue, batch)


def resolve_failures_while_paused(queue: Queue, now: Instant) -> Queue:
    for batch in run_validity.unlocked_batches(queue):
        found = blame.blame_for(queue, batch)
        if found is not None and len(batch.submission_ids) == 1:
            return failures._resolve_failed_batch(queue, batch, found, now)
    return _resolve_failures(queue, now)


_resolve_failures = failures.resolve_failures


def accept_every_tip(_target: TargetBranch, _run: Run) -> bool:
    return True


def retry_forever(_queue: Queue, run: Run) -> bool:
    return run.restart_requested or run.status is RunStatus.FAILED


def fail_the_one_before(queue: Queue, bisection: Bisection, reason: Reason, now: Instant) -> Queue:
    wrong = bisection.submission_ids[bisection.failed_prefix - 2]
    if wrong not in queue.submissions:
        return _fail_suspect(queue, bisection, reason, now)
    return _fail_suspect(queue, replace(bisection, failed_prefix=bisection.failed_prefix - 1), reason, now)


_fail_suspect = bisection_module._fail_suspect


def fail_suspect_at_once(queue: Queue, bisection: Bisection, now: Instant) -> Queue:
    return _resolve_suspect(queue, replace(bisection, merged_submission_ids=frozenset(bisection.submission_ids)), now)


_resolve_suspect = bisection_module.resolve_suspect


def keep_evidence(
    queue: Queue, submission_id: SubmissionId, merged: bool, now: Instant, causes: tuple[Cause, ...] = ()
) -> Queue:
    return _on_member_left(queue, submission_id, merged, now, causes) if merged else queue


_on_member_left = on_member_left


def never_release(queue: Queue, _now: Instant) -> Queue:
    return queue


def lose_submission(queue: Queue, _submission_id: SubmissionId) -> Queue:
    return queue


def newest_first(submission: Submission, _now: Instant) -> tuple[int, int]:
    return submission.priority, -submission.id


def without_aging(submission: Submission, _now: Instant) -> int:
    return submission.priority


def preempt_without_end(batch: Batch) -> Batch:
    return batch


def overdue_is_failed(queue: Queue, event: ChecksObserved, now: Instant) -> Queue:
    run = queue.runs.get(event.run)
    if run is not None and run.overdue_at_revision is not None:
        event = replace(event, observed_at_revision=max(event.observed_at_revision, run.overdue_at_revision))
    return _record_checks(queue, event, now)


def leave_out_prs_ahead(queue: Queue, batch: Batch, tip: Any, left_out: Any = frozenset()) -> Stack:
    stack = _plan_stack(queue, batch, tip, left_out)
    own = len(batch.submission_ids)
    return Stack(stack.base, stack.members[len(stack.members) - own :])


def leave_out_without_record(queue: Queue, batch: Batch, tip: Any, left_out: Any = frozenset()) -> Stack:
    return replace(_plan_stack(queue, batch, tip, left_out), excluded_submission_ids=frozenset())


def every_run_is_valid(*_: object) -> bool:
    return True


def forget_excluded(queue: Queue, run: Run) -> tuple[Queue, Any]:
    queue, again = _repeat_run(queue, run)
    return run_lifecycle.put_run(queue, replace(queue.runs[again], excluded_submission_ids=frozenset())), again


def clear_without_optimistic_merging(queue: Queue, batch: Batch) -> bool:
    return any(run_validity.has_passed(queue, other) for other in run_validity.batches_behind(queue, batch))


def forget_removed_commits(queue: Queue, event: TargetBranchObserved, now: Instant) -> Queue:
    return _record_target_branch(queue, replace(event, removed_commits=frozenset()), now)


def clock_never_stops(queue: Queue, now: Instant) -> Queue:
    return queue if queue.running_since is not None else replace(queue, running_since=now)


def always_satisfied(_: Run, __: Mapping[str, CheckState]) -> bool:
    return True


def join_any_batch(_submission: Submission, group: Any, size: int) -> bool:
    return not group.closed and len(group.members) < size


def never_full(_queue: Queue, _group: Any, _size: int, now: Instant) -> Instant:
    return Instant(now + 1)


def keep_failures(queue: Queue) -> Queue:
    return queue


def always_change(queue: Queue, _now: Instant) -> Queue:
    return replace(queue)


def clear_with_skipped_check(_queue: Queue, _run: Run, _ahead: BatchId) -> bool:
    return True


def start_without_waiting_for_answers(_queue: Queue, _members: object, _now: Instant) -> Iterator[Submission]:
    return iter(())


def land_without_requirements(queue: Queue, landing: Landing, event: LandingPullRequestsRead, now: Instant) -> Queue:
    pull_requests = tuple(replace(each, requirements=()) for each in event.pull_requests)
    return _record_landing_pull_requests_read(queue, landing, replace(event, pull_requests=pull_requests), now)


_record_landing_pull_requests_read = results.record_landing_pull_requests_read


def admit_without_requirements(queue: Queue, submission: Submission) -> Reason | None:
    reason = _not_ready_reason(queue, submission)
    return None if reason in REQUIREMENT_REASONS else reason


_not_ready_reason = admission.not_ready_reason


def keep_until_landing(_submission: Submission) -> Reason | None:
    return None


def demote_but_stay_in_the_run(queue: Queue, submission_id: SubmissionId, reason: Reason, now: Instant) -> Queue:
    queue = entries.set_state(queue, submission_id, PullRequestState.NOT_READY, reason, now)
    return entries.move_to_not_ready(queue, submission_id, entries.running_time_ms(queue, now))


def demote_but_stay_in_the_bisection(queue: Queue, submission_id: SubmissionId, reason: Reason, now: Instant) -> Queue:
    return demote_but_stay_in_the_run(entries.remove_entry(queue, submission_id), submission_id, reason, now)


def tell_it_that_it_was_overtaken(queue: Queue, submission_id: SubmissionId, now: Instant) -> Queue:
    before = queue.submissions[submission_id].state
    queue = _promote_submission(queue, submission_id, now)
    journal = queue.output.journal
    last = len(journal) - 1
    entry = journal.get(last)
    if before is queue.submissions[submission_id].state or not isinstance(entry, PullRequestChanged):
        return queue
    wrong = replace(entry, reason=Reason.SKIP_THE_LINE_INTERRUPTED)
    return replace(queue, output=replace(queue.output, journal=journal.put(last, wrong)))


_promote_submission = preemption.promote_submission


def call_every_new_one_urgent(queue: Queue, batch: Batch, run: Run) -> Reason | None:
    reason = _invalidation_reason(queue, batch, run)
    is_new = reason in (Reason.DEPENDENCIES_CHANGED, Reason.ORDER_CHANGED)
    return Reason.SKIP_THE_LINE_INTERRUPTED if is_new else reason


def call_every_change_ahead_a_leave(queue: Queue, batch: Batch, run: Run) -> Reason | None:
    reason = _invalidation_reason(queue, batch, run)
    is_other = reason in (Reason.DEPENDENCIES_CHANGED, Reason.ORDER_CHANGED, Reason.RUN_AHEAD_STOPPED)
    return Reason.PREREQUISITE_REMOVED if is_other else reason


def blame_those_ahead_for_a_clearance(_queue: Queue, _returned: object) -> tuple[Reason, tuple[Cause, ...]]:
    return Reason.PREREQUISITE_REMOVED, ()


def forget_what_a_landing_contained(queue: Queue, _landed: object, _now: Instant) -> Queue:
    return queue


def name_no_cause(*_: object) -> tuple[Cause, ...]:
    return ()


BUGS = (
    Planted("a step that is never done", admission.release_holds, always_change),
    Planted("blame without waiting for those ahead", blame.blame_for, blame_without_waiting),
    Planted("stale run trusted", run_validity.invalidation_reason, trust_stale_runs),
    Planted("cancel forgets batchmates", run_validity.invalidation_reason, forget_batchmates),
    Planted("an urgent pull request does not count as ahead", run_validity.invalidation_reason, ignore_urgent),
    Planted("a status required since does not count", run_validity.invalidation_reason, ignore_new_requirements),
    Planted("slots ignored", run_lifecycle.free_slots, always_free),
    Planted("bisection budget ignored", run_lifecycle.free_bisection_slots, always_free),
    Planted("parallel dependencies not transitive", lanes._all_ahead, only_direct_predecessors),
    Planted("lanes never depend on each other", lanes._all_ahead, no_predecessors),
    Planted("the base is always assumed to pass", blame.base_health, assume_passing_base),
    Planted("a repair proves the base it repaired", run_lifecycle.finish_run, finish_and_trust_base),
    Planted("foreign commits ignored", run_validity.landed_since, ignore_foreign_commits),
    Planted(
        "old observation of the target branch accepted",
        observations.record_target_branch,
        accept_any_target_branch_observation,
    ),
    Planted(
        "old observation of a pull request accepted",
        observations.record_pull_request,
        accept_any_pull_request_observation,
    ),
    Planted("timeout without a fresh read", observations.record_checks, overdue_is_failed),
    Planted("a chosen landing is never dropped", merging._is_landing_current, always_current),
    Planted("landing without reading the pull requests again", merging.choose_landing, land_unread),
    Planted("landing while paused", merging._can_choose_landing, can_choose_while_paused),
    Planted("landing on top of a batch that did not pass", merging.can_land, land_without_checking_prs_ahead),
    Planted("resolving failures while paused", failures.resolve_failures, resolve_failures_while_paused),
    Planted("any tip counts as the tested one", run_validity.is_on_tip, accept_every_tip),
    Planted("unlimited retries", run_validity.must_be_repeated, retry_forever),
    Planted("bisection off by one", bisection_module._fail_suspect, fail_the_one_before),
    Planted("the suspect does not wait for its prefix", bisection_module.resolve_suspect, fail_suspect_at_once),
    Planted("evidence survives the removal of a member", on_member_left, keep_evidence),
    Planted("held forever", admission.release_holds, never_release),
    Planted("a submission moved back to waiting is lost", entries.move_to_waiting, lose_submission),
    Planted("the newest goes first", batching.priority_rank, newest_first),
    Planted("priority does not age", batching.aged_priority, without_aging),
    Planted("preempted without end", preemption._count_preemption, preempt_without_end),
    Planted("tested without those ahead", run_lifecycle.plan_stack, leave_out_prs_ahead),
    Planted("excluded pull requests not recorded", run_lifecycle.plan_stack, leave_out_without_record),
    Planted("a speculative run counts before its assumption holds", run_validity.is_valid, every_run_is_valid),
    Planted("a repeated speculative run forgets what it excluded", run_lifecycle.repeat_run, forget_excluded),
    Planted("cleared without optimistic merging", run_validity.is_cleared, clear_without_optimistic_merging),
    Planted("what was removed comes back", observations.record_target_branch, forget_removed_commits),
    Planted("the not-ready clock never stops", timeouts.update_running_clock, clock_never_stops),
    Planted("merged directly without statuses", run_lifecycle.is_satisfied_by, always_satisfied),
    Planted("noBatch ignored", batching._can_join, join_any_batch),
    Planted("no batch is ever ready", batching._ready_at, never_full),
    Planted(
        "a failure while paused counts after resuming", queue_state._invalidate_failures_since_pause, keep_failures
    ),
    Planted("a skipped check clears those ahead", run_validity._can_clear, clear_with_skipped_check),
    Planted("a bisected one goes to the end", entries.return_from_bisection, entries.return_to_waiting),
    Planted(
        "requirements of the host ignored at landing",
        results.record_landing_pull_requests_read,
        land_without_requirements,
    ),
    Planted("requirements of the host ignored at admission", admission.not_ready_reason, admit_without_requirements),
    Planted("a withdrawn approval is noticed only at landing", admission.withdrawn_reason, keep_until_landing),
    Planted("demoted without leaving its run", admission.demote_to_not_ready, demote_but_stay_in_the_run),
    Planted("demoted without leaving its bisection", admission.demote_to_not_ready, demote_but_stay_in_the_bisection),
    Planted(
        "an urgent one is told that it was overtaken", preemption.promote_submission, tell_it_that_it_was_overtaken
    ),
    Planted("every new one ahead is called urgent", run_validity.invalidation_reason, call_every_new_one_urgent),
    Planted("every change ahead is a leave", run_validity.invalidation_reason, call_every_change_ahead_a_leave),
    Planted("those ahead end a clearance", failures._explain_lost_pass, blame_those_ahead_for_a_clearance),
    Planted(
        "merged outside though another one contained it", results._conclude_contained, forget_what_a_landing_contained
    ),
    Planted("the overtaken are not told by which one", failures._causes_of, name_no_cause),
    Planted("the first answer gets the slot", batching.unanswered_ahead, start_without_waiting_for_answers),
)
