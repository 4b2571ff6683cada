"""Plans the stack of a run; starts, repeats and ends runs."""

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import LandingMethod
from mergeyard.domain.ids import BatchId, RunId, Sha, SubmissionId, derive_run_id
from mergeyard.domain.queue import Batch, Queue
from mergeyard.domain.runs import Member, Run, RunKind, Step
from mergeyard.domain.states import SATISFIED_CHECK_STATES, CheckState, RunStatus, check_run_transition
from mergeyard.domain.timestamps import MINUTE, Instant
from mergeyard.engine import blame, estimates, merging, run_validity


class Stack(Struct, frozen=True):
    base: Sha
    members: tuple[Member, ...]
    excluded_submission_ids: frozenset[SubmissionId] = frozenset()
    reused_steps: tuple[Step, ...] = ()
    """The steps of runs ahead that it continues."""
    extends: RunId | None = None
    """The run ahead whose steps it will continue once they are built."""


def plan_stack(queue: Queue, batch: Batch, tip: Sha, excluded: frozenset[SubmissionId] = frozenset()) -> Stack:
    ahead = (
        submission_id
        for submission_id in run_validity.submission_ids_ahead(queue, batch)
        if submission_id not in excluded
    )
    stack = Stack(tip, stack_members(queue, (*ahead, *batch.submission_ids)), excluded)
    return _reuse_chain_ahead(queue, batch, stack)


def stack_members(queue: Queue, submission_ids: tuple[SubmissionId, ...]) -> tuple[Member, ...]:
    submissions = (queue.submissions[submission_id] for submission_id in submission_ids)
    return tuple(Member(each.id, each.number, each.pull_request.head) for each in submissions)


def _reuse_chain_ahead(queue: Queue, batch: Batch, stack: Stack) -> Stack:
    """Reuses the longest chain ahead, so that landing those first keeps ours a fast-forward. One that was built by
    another merge method is not continued: all commits of a landing are of one method."""
    for run in _runs_latest_first(queue, run_validity.batches_ahead(queue, batch)):
        if run.status is RunStatus.CANCELLED or run.merge_method is not queue.config.merge_method:
            continue
        landed_count = len(run.stack) - len(run_validity.unlanded_members(queue, run.stack))
        members_ahead = run.stack[landed_count:]
        if stack.members[: len(members_ahead)] != members_ahead or not run_validity.is_on_tip(queue.target_branch, run):
            continue
        extends = run.id if run.status is RunStatus.PREPARING else None
        return Stack(stack.base, stack.members, stack.excluded_submission_ids, run.chain[landed_count:], extends)
    return stack


def _runs_latest_first(queue: Queue, batches: tuple[Batch, ...]) -> Iterator[Run]:
    return (run for batch in reversed(batches) for run in reversed(queue.runs_of(batch)))


def start_run(
    queue: Queue, kind: RunKind, stack: Stack, tested_count: int, batch: BatchId | None = None
) -> tuple[Queue, RunId]:
    count = queue.counters.runs + 1
    required = run_validity.required_statuses(queue)
    by_provider = merging.needs_provider_merge(queue, stack.members)
    run = Run(
        id=derive_run_id(queue.id, count),
        kind=kind,
        base=stack.base,
        stack=stack.members,
        tested_count=tested_count,
        excluded_submission_ids=stack.excluded_submission_ids,
        batch=batch,
        required_statuses=required.statuses,
        required_statuses_source=required.source,
        merge_method=queue.config.merge_method,
        landing_method=LandingMethod.PROVIDER_MERGE if by_provider else queue.config.landing,
        timeout_ms=queue.config.testing_timeout_minutes * MINUTE,
        extends=stack.extends,
        chain=stack.reused_steps,
    )
    queue = replace(queue, counters=replace(queue.counters, runs=count))
    return put_run(queue, run), run.id


def repeat_run(queue: Queue, run: Run) -> tuple[Queue, RunId]:
    """The same stack again. Only the tip is a new commit, so that the checks belong to the new run, and runs stacked on
    the old one are equally valid on this one. If the merge method was changed, all commits are new."""
    stack = Stack(run.base, run.stack, run.excluded_submission_ids)
    if run.merge_method is queue.config.merge_method:
        stack = replace(stack, reused_steps=run.chain[: max(0, len(run.stack) - 1)], extends=run.extends)
    queue, new_run_id = start_run(queue, run.kind, stack, run.tested_count, run.batch)
    attempt = 0 if run.restart_requested else run.attempt + 1
    return put_run(queue, replace(queue.runs[new_run_id], attempt=attempt, is_repetition=True)), new_run_id


def free_slots(queue: Queue) -> int:
    """Bisections have their own budget; every other active run takes a slot."""
    active = sum(run.is_active and run.kind is not RunKind.BISECTION for run in queue.runs.values())
    return max(0, queue.config.concurrency - active) if queue.can_start_runs else 0


def free_bisection_slots(queue: Queue) -> int:
    active = sum(run.is_active and run.kind is RunKind.BISECTION for run in queue.runs.values())
    return max(0, queue.config.bisection_concurrency - active) if queue.can_start_runs else 0


def put_run(queue: Queue, run: Run) -> Queue:
    return replace(queue, runs={**queue.runs, run.id: run})


def finish_run(queue: Queue, run: Run, status: RunStatus, now: Instant) -> Queue:
    check_run_transition(run.status, status)
    is_building = run.status is RunStatus.PREPARING and run.extends is None
    decided = replace(run, status=status, decided_at=now, pushed=run.pushed or is_building)
    queue = put_run(queue, decided)
    if status is RunStatus.FAILED:
        return queue
    if not run.used_head_checks:
        queue = estimates.record_run_duration(queue, decided)
    is_base_passed = status is RunStatus.SUCCEEDED and run.kind is RunKind.BASE
    return blame.record_passed_base_run(queue, decided) if is_base_passed else queue


def drop_required_statuses(queue: Queue, dropped: Collection[str], now: Instant) -> Queue:
    """What is not required any more keeps no run waiting. What is required in addition invalidates it instead."""
    for run in queue.runs.values():
        kept = tuple(name for name in run.required_statuses if name not in dropped)
        if run.is_active and kept and kept != run.required_statuses:
            eased = replace(run, required_statuses=kept)
            queue = pass_if_complete(put_run(queue, eased), eased, now)
    return queue


def pass_if_complete(queue: Queue, run: Run, now: Instant) -> Queue:
    """The run passes once all that is required of it has."""
    if run.status is not RunStatus.IN_PROGRESS or not is_satisfied_by(run, run.checks):
        return queue
    return finish_run(queue, run, RunStatus.SUCCEEDED, now)


def is_satisfied_by(run: Run, checks: Mapping[str, CheckState]) -> bool:
    """Where nothing is required, nothing passes."""
    states = [checks.get(name) for name in run.required_statuses]
    return bool(states) and all(state in SATISFIED_CHECK_STATES for state in states)


def cancel_unneeded_runs(queue: Queue, now: Instant) -> Queue:
    """Cancels runs that nothing depends on, and drops them once their test branch is deleted."""
    needed = needed_run_ids(queue)
    for run in tuple(queue.runs.values()):
        if run.id in needed:
            continue
        if run.is_active:
            queue = finish_run(queue, run, RunStatus.CANCELLED, now)
        if not queue.runs[run.id].pushed:
            queue = _drop_run(queue, queue.runs[run.id])
    return queue


def needed_run_ids(queue: Queue) -> set[RunId]:
    needed = {run for batch in queue.active.batches for run in batch.runs}
    needed.update(run for bisection in queue.bisections for run in bisection.runs)
    untested = blame.untested_bases(queue)
    needed.update(run.id for base, run in blame.base_runs(queue).items() if base in untested)
    if queue.landing is not None:
        needed.add(queue.landing.run)
    return needed


def _drop_run(queue: Queue, run: Run) -> Queue:
    runs = {other: each for other, each in queue.runs.items() if other != run.id}
    output = replace(queue.output, finished_runs=(*queue.output.finished_runs, run))
    return replace(queue, runs=runs, output=output)
