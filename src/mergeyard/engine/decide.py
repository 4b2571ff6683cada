"""The entry point of the engine: `decide(queue, events, now)`.

It gets the known queue, the events since, and the time, and returns the queue as it should be. It is pure: no clock, no
I/O, no randomness.
"""

from collections.abc import Callable, Sequence
from typing import assert_never

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.events import Event
from mergeyard.domain.ids import Sha
from mergeyard.domain.queue import Decision, DecisionOutput, Landing, Obstacle, Queue
from mergeyard.domain.states import Reason, Refusal
from mergeyard.domain.timestamps import Instant
from mergeyard.engine import (
    admission,
    entries,
    failures,
    merging,
    observations,
    preemption,
    queue_state,
    requests,
    results,
    run_lifecycle,
    scheduling,
    speculation,
    timeouts,
)
from mergeyard.engine.bisection import advance_bisections

LandingEvent = (
    e.LandingRebased
    | e.LandingRebaseRefused
    | e.LandingPullRequestsRead
    | e.LandingSucceeded
    | e.LandingMissed
    | e.LandingRefused
    | e.LandingOutcomeUnknown
)


def record_event(queue: Queue, event: e.Event, now: Instant) -> Queue | Refusal:
    match event:
        case e.PullRequestSubmitted():
            return requests.submit(queue, event, now)
        case e.CancelRequested():
            return requests.cancel(queue, event, now)
        case e.RestartRequested():
            return requests.restart(queue, event, now)
        case e.PriorityRequested():
            return requests.change_priority(queue, event, now)
        case e.ImpactedTargetsUploaded():
            return requests.set_impacted_targets(queue, event, now)
        case e.SettingsSaved():
            return queue_state.save_settings(queue, event.config, now, event.actor)
        case e.StateRequested():
            return queue_state.request_queue_state(queue, event, now)
        case e.PullRequestDirty():
            return observations.request_pull_request_refresh(queue, event.number)
        case e.TargetBranchDirty():
            return observations.request_target_branch_refresh(queue)
        case e.PullRequestObserved():
            return observations.record_pull_request(queue, event, now)
        case e.TargetBranchObserved():
            return observations.record_target_branch(queue, event, now)
        case e.ChecksObserved():
            return observations.record_checks(queue, event, now)
        case e.HostUnreachable():
            return timeouts.record_obstacle(queue, Obstacle(reason=Reason.PROVIDER_UNAVAILABLE, since=now))
        case e.HostLimiting():
            found = Obstacle(reason=Reason.RATE_LIMITED, since=now, until=event.until, only_waiting=event.only_waiting)
            return timeouts.record_obstacle(queue, found)
        case e.HostRefusing():
            return timeouts.record_obstacle(
                queue,
                Obstacle(reason=Reason.PROVIDER_REFUSED, since=now, detail=event.detail, number=event.number),
            )
        case e.ServerFailing():
            return timeouts.record_obstacle(queue, Obstacle(reason=Reason.SERVER_FAILURE, since=now))
        case e.HostReachable():
            return timeouts.remove_obstacle(queue, now)
        case e.ProcessingResumed():
            return observations.request_refresh_of_unknown_mergeability(
                timeouts.extend_deadlines_after_downtime(queue, now)
            )
        case e.RunBuilt():
            return results.record_run_built(queue, event, now)
        case e.RunBuildRefused():
            return results.record_run_build_refused(queue, event, now)
        case e.RunStartRefused():
            return results.record_run_start_refused(queue, event, now)
        case e.BaseCommitMissing():
            return results.record_base_commit_missing(queue, event, now)
        case e.BranchDeleted():
            return results.record_branch_deleted(queue, event)
        case e.AuditMismatchFound():
            return results.record_audit_mismatches(queue, event, now)
        case _:
            return _record_landing_event(queue, queue.landing, event, now)


def _record_landing_event(queue: Queue, current: Landing | None, event: LandingEvent, now: Instant) -> Queue:
    if current is None or current.number != event.landing:
        return queue
    match event:
        case e.LandingRebased():
            return results.record_landing_rebased(queue, current, event)
        case e.LandingRebaseRefused():
            return results.record_landing_rebase_refused(queue, current, event)
        case e.LandingPullRequestsRead():
            return results.record_landing_pull_requests_read(queue, current, event, now)
        case e.LandingSucceeded():
            return results.record_landing_succeeded(queue, current, event, now)
        case e.LandingMissed():
            return results.record_landing_missed(queue, current, event, now)
        case e.LandingRefused():
            return results.record_landing_refused(queue, current, event, now)
        case e.LandingOutcomeUnknown():
            return results.record_landing_outcome_unknown(queue, current, event, now)
        case _:
            assert_never(event)


def prune_target_branch(queue: Queue) -> Queue:
    target_branch = queue.target_branch
    needed = _needed_bases(queue)
    history = target_branch.history
    retry = target_branch.base_retry
    oldest = next((index for index, landed in enumerate(history) if landed.commit in needed), 0)
    pruned = replace(
        target_branch,
        history=history[oldest:],
        passed_bases=target_branch.passed_bases & needed,
        broken_bases=target_branch.broken_bases & needed,
        base_retry=None if retry is None or retry.base != target_branch.tip else retry,
    )
    return queue if pruned == target_branch else replace(queue, target_branch=pruned)


def _needed_bases(queue: Queue) -> set[Sha]:
    """Every commit that a run or bisection is based on, or that a pull request could be blamed on."""
    bases = {run.base for run in queue.runs.values()}
    bases.update(step.commit for run in queue.runs.values() for step in run.chain)
    bases.update(bisection.base for bisection in queue.bisections)
    bases.update(bisection.batch_run.base for bisection in queue.bisections)
    if queue.target_branch.tip is not None:
        bases.add(queue.target_branch.tip)
    return bases


DecisionStep = Callable[[Queue, Instant], Queue]

STEPS: tuple[DecisionStep, ...] = (
    observations.expire_overdue,
    timeouts.update_running_clock,
    admission.update_admitting_mode,
    scheduling.demote_untestable,
    admission.release_holds,
    admission.hold_batches_without_prerequisite,
    failures.discard_stale_runs,
    failures.revoke_clearances,
    speculation.cancel_unlikely_runs,
    run_lifecycle.cancel_unneeded_runs,
    queue_state.finish_mode_switch,
    preemption.place_urgent_batches,
    scheduling.start_clearing_runs,
    advance_bisections,
    failures.resolve_failures,
    scheduling.start_runs,
    merging.choose_landing,
)
"""The order matters: each step relies on those before it. After every change the steps start again from the first."""


STEPS_ON_TESTED_STATE = frozenset[DecisionStep](
    {
        failures.discard_stale_runs,
        failures.revoke_clearances,
        run_lifecycle.cancel_unneeded_runs,
        advance_bisections,
        failures.resolve_failures,
    }
)
"""These steps read nothing but the parts below."""
TESTED_PARTS = (
    "config",
    "mode",
    "requested_state",
    "active",
    "bisections",
    "held",
    "runs",
    "target_branch",
    "landing",
)
"""Most events, such as a submission, change none of them. Checking all runs again would take ten times as long."""

MAX_STEPS = 10_000
"""The maximum number of changes in one decision, far above any real one. Beyond it two steps undo each other."""


class DecisionNotSettled(Exception):
    """Two steps undo each other's changes. Nothing was changed."""


def decide(queue: Queue, events: Sequence[Event], now: Instant) -> Decision:
    revision = queue.counters.revision + 1
    start = replace(queue, counters=replace(queue.counters, revision=revision), output=DecisionOutput())
    after, refusals = start, dict[int, Refusal]()
    for index, event in enumerate(events):
        result = record_event(after, event, now)
        if isinstance(result, Refusal):
            refusals[index] = result
        else:
            after = result
    after = _settle(queue, after, now)
    if after is start:
        return Decision(queue=queue, refusals=refusals, wake_at=timeouts.wake_at(queue, now))
    if not _is_tested_state_unchanged(queue, after):
        after = prune_target_branch(entries.derive_states(after, now))
    return Decision(
        queue=replace(after, output=DecisionOutput()),
        journal=tuple(after.output.journal.values()),
        concluded_submissions=tuple(after.output.concluded_submissions.values()),
        finished_runs=after.output.finished_runs,
        refusals=refusals,
        wake_at=timeouts.wake_at(after, now),
    )


def _settle(previous: Queue, queue: Queue, now: Instant) -> Queue:
    for _ in range(MAX_STEPS):
        changed = _apply_first_change(previous, queue, now)
        if changed is queue:
            return queue
        queue = changed
    raise DecisionNotSettled(f"still changing after {MAX_STEPS} steps")


def _apply_first_change(previous: Queue, queue: Queue, now: Instant) -> Queue:
    """What the previous decision left settled is skipped while it is unchanged."""
    skipped = STEPS_ON_TESTED_STATE if _is_tested_state_unchanged(previous, queue) else ()
    for step in STEPS:
        if step in skipped:
            continue
        changed = step(queue, now)
        if changed is not queue:
            return changed
    return queue


def _is_tested_state_unchanged(previous: Queue, queue: Queue) -> bool:
    return all(getattr(previous, part) is getattr(queue, part) for part in TESTED_PARTS)
