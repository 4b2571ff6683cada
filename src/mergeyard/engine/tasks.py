"""Derives the pending tasks from the queue. The same queue gives the same tasks, in any process and however often."""

from collections.abc import Iterator
from itertools import islice
from typing import assert_never

from mergeyard.domain import tasks as t
from mergeyard.domain.config import DirectMergeMode
from mergeyard.domain.queue import LandingPhase, Queue
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.states import RunStatus
from mergeyard.engine import run_lifecycle, run_validity

MAX_READ_TASKS = 64
"""Per call: further reads follow when these are done, which bounds the cost of a call."""


def pending_tasks(queue: Queue) -> tuple[t.Task, ...]:
    return (*_landing_tasks(queue), *_read_tasks(queue), *_run_tasks(queue))


def _landing_tasks(queue: Queue) -> Iterator[t.Task]:
    landing = queue.landing
    if landing is None:
        return
    match landing.phase:
        case LandingPhase.REBASING:
            yield t.RebaseLanding(
                landing=landing.number,
                base=landing.base,
                onto=landing.expected_tip,
                members=landing.members,
                tested_steps=landing.tested_steps,
            )
        case LandingPhase.READING:
            numbers = tuple(member.number for member in landing.members)
            yield t.ReadPullRequests(landing=landing.number, numbers=numbers)
        case LandingPhase.INTENDED:
            yield t.Land(
                landing=landing.number,
                run=landing.run,
                landing_method=landing.landing_method,
                expected_tip=landing.expected_tip,
                members=landing.members,
                steps=landing.steps,
                test_branch_tip=landing.test_branch_tip,
                head_moves=landing.head_moves,
            )
        case _:
            assert_never(landing.phase)


def _read_tasks(queue: Queue) -> Iterator[t.Task]:
    is_intended = queue.landing is not None and queue.landing.is_intended
    if queue.target_branch.refresh_requested and not is_intended:
        yield t.ReadTargetBranch(known_tip=queue.target_branch.last_tip)
    for submission_id in islice(queue.refresh_requested, MAX_READ_TASKS):
        if not run_validity.is_locked_by_landing(queue, submission_id):
            yield t.ReadPullRequest(number=queue.submissions[submission_id].number)


def _run_tasks(queue: Queue) -> Iterator[t.Task]:
    needed = run_lifecycle.needed_run_ids(queue)
    for run in queue.runs.values():
        is_over = run.status in (RunStatus.FAILED, RunStatus.CANCELLED) or run.id not in needed
        if run.pushed and is_over:
            yield t.DeleteBranch(run=run.id)
        elif run.status is RunStatus.PREPARING and run.extends is None and not queue.is_paused:
            yield _build_task(queue, run)
        elif run.status is RunStatus.IN_PROGRESS and run.overdue_at_revision is not None:
            yield t.ReadChecks(run=run.id)


def _build_task(queue: Queue, run: Run) -> t.BuildRun:
    return t.BuildRun(
        run=run.id,
        onto=run.chain[-1].commit if run.chain else run.base,
        base=run.base,
        built_members=run.stack[: len(run.chain)],
        members=run.stack[len(run.chain) :],
        merge_method=run.merge_method,
        forbidden_commits=queue.target_branch.removed_commits,
        read_head_checks=_can_use_head_checks(queue, run),
    )


def _can_use_head_checks(queue: Queue, run: Run) -> bool:
    """For a pull request alone on the target branch. A run that repeats another one is tested for real."""
    return (
        queue.config.direct_merge_mode is DirectMergeMode.ALWAYS
        and run.kind is RunKind.BATCH
        and len(run.stack) == 1
        and not run.is_repetition
    )
