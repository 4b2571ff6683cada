"""Begins, repeats and ends runs."""

from msgspec.structs import replace

from mergeyard.domain.ids import BatchId, RunId, run_id
from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import RunStatus
from mergeyard.domain.transitions import check_run
from mergeyard.engine import accusing, estimating, proving, requirements
from mergeyard.engine.stacking import Stack


def begin(queue: Queue, kind: RunKind, stack: Stack, tests: int, batch: BatchId | None = None) -> tuple[Queue, RunId]:
    count = queue.counters.runs + 1
    required = requirements.required(queue)
    run = Run(
        id=run_id(queue.id, count),
        kind=kind,
        base=stack.base,
        stack=stack.members,
        tests=tests,
        left_out=stack.left_out,
        batch=batch,
        required=required.statuses,
        required_source=required.source,
        method=queue.config.merge_method,
        landing=queue.config.landing,
        timeout=queue.config.testing_timeout_minutes * MINUTE,
        extends=stack.extends,
        chain=stack.reused,
    )
    queue = replace(queue, counters=replace(queue.counters, runs=count))
    return put(queue, run), run.id


def repeat(queue: Queue, run: Run) -> tuple[Queue, RunId]:
    """The same stack once more. Only the tip is a new commit, so that the new run's checks are its own
    and whoever stands upon the old one stands just as well upon this."""
    kept = len(run.stack) - 1 if run.method is queue.config.merge_method else len(run.beneath)
    stack = Stack(run.base, run.stack, run.left_out, run.chain[: max(0, kept)], run.extends)
    queue, again = begin(queue, run.kind, stack, run.tests, run.batch)
    attempt = 0 if run.restarted else run.attempt + 1
    return put(queue, replace(queue.runs[again], attempt=attempt)), again


def free_slots(queue: Queue) -> int:
    """Bisections have their own budget; everything else that is active takes a slot."""
    active = sum(run.active and run.kind is not RunKind.BISECTION for run in queue.runs.values())
    return max(0, queue.config.concurrency - active) if queue.may_start else 0


def bisection_room(queue: Queue) -> int:
    active = sum(run.active and run.kind is RunKind.BISECTION for run in queue.runs.values())
    return max(0, queue.config.bisection_concurrency - active) if queue.may_start else 0


def put(queue: Queue, run: Run) -> Queue:
    return replace(queue, runs={**queue.runs, run.id: run})


def decide(queue: Queue, run: Run, status: RunStatus, now: Instant) -> Queue:
    check_run(run.status, status)
    being_built = run.status is RunStatus.PREPARING and run.extends is None
    decided = replace(run, status=status, decided_at=now, pushed=run.pushed or being_built)
    queue = put(queue, decided)
    if status is RunStatus.FAILED:
        return queue
    queue = estimating.record_duration(queue, decided)
    return proving.record_green(queue, decided) if status is RunStatus.SUCCEEDED else queue


def end_unneeded(queue: Queue, now: Instant) -> Queue:
    """Stop what nobody counts on any more, and forget it once its test branch is gone."""
    needed = needed_runs(queue)
    for run in tuple(queue.runs.values()):
        if run.id in needed:
            continue
        if run.active:
            queue = decide(queue, run, RunStatus.CANCELLED, now)
        if not queue.runs[run.id].pushed:
            queue = _forget(queue, queue.runs[run.id])
    return queue


def needed_runs(queue: Queue) -> set[RunId]:
    needed = {run for batch in queue.line.batches for run in batch.runs}
    needed.update(run for bisection in queue.bisections for run in bisection.runs)
    questions = accusing.bases_in_question(queue)
    needed.update(run.id for base, run in proving.bare_runs(queue).items() if base in questions)
    if queue.landing is not None and queue.landing.run is not None:
        needed.add(queue.landing.run)
    return needed


def _forget(queue: Queue, run: Run) -> Queue:
    runs = {other: each for other, each in queue.runs.items() if other != run.id}
    news = replace(queue.news, finished=(*queue.news.finished, run))
    return replace(queue, runs=runs, news=news)
