"""Reads off the facts what must be done outside. The same facts give the same work, whoever asks and however often."""

from collections.abc import Iterator
from itertools import islice
from typing import assert_never

from mergeyard.domain import tasks as t
from mergeyard.domain.landing import Phase
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run
from mergeyard.domain.states import RunStatus
from mergeyard.engine import directing, holding, running

MOST_LOOKS = 64
"""At a time: the others follow when these are done, and asking what there is to do costs no more than that."""


def work(queue: Queue) -> tuple[t.Task, ...]:
    return (*_landing(queue), *_looks(queue), *_runs(queue), *_exam(queue))


def _landing(queue: Queue) -> Iterator[t.Task]:
    landing = queue.landing
    if landing is None:
        return
    match landing.phase:
        case Phase.COMPOSING:
            yield t.ComposeLanding(
                landing=landing.number,
                base=landing.base,
                onto=landing.expected,
                members=landing.members,
                tested=landing.tested,
            )
        case Phase.READING:
            numbers = tuple(member.number for member in landing.members)
            yield t.ReadPulls(landing=landing.number, numbers=numbers)
        case Phase.INTENDED:
            yield t.Land(
                landing=landing.number,
                run=landing.run,
                method=landing.method,
                expected=landing.expected,
                members=landing.members,
                steps=landing.steps,
                tested_tip=landing.tested_tip,
            )
        case _:
            assert_never(landing.phase)


def _looks(queue: Queue) -> Iterator[t.Task]:
    intended = queue.landing is not None and queue.landing.intended
    if queue.target.look and not intended:
        yield t.LookAtTarget(known_tip=queue.target.last_tip, removed=queue.target.removed)
    for ticket in islice(queue.looks, MOST_LOOKS):
        if not holding.bound_by_landing(queue, ticket):
            yield t.LookAtPull(number=queue.submissions[ticket].number)


def _runs(queue: Queue) -> Iterator[t.Task]:
    needed = running.needed_runs(queue)
    for run in queue.runs.values():
        over = run.status in (RunStatus.FAILED, RunStatus.CANCELLED) or run.id not in needed
        if run.pushed and over:
            yield t.DeleteBranch(run=run.id)
        elif run.status is RunStatus.PREPARING and run.extends is None:
            yield _build(queue, run)
        elif run.status is RunStatus.IN_PROGRESS and run.overdue_since is not None:
            yield t.LookAtChecks(run=run.id)


def _build(queue: Queue, run: Run) -> t.BuildRun:
    return t.BuildRun(
        run=run.id,
        onto=run.chain[-1].commit if run.chain else run.base,
        base=run.base,
        beneath=run.stack[: len(run.chain)],
        members=run.stack[len(run.chain) :],
        method=run.method,
        forbidden=queue.target.removed,
    )


def _exam(queue: Queue) -> Iterator[t.Task]:
    if queue.direct is None or queue.target.tip is None:
        return
    submission = queue.submissions[queue.direct]
    if directing.to_be_examined(queue, submission):
        yield t.ExamineHead(
            ticket=submission.ticket,
            number=submission.number,
            head=submission.pull.head,
            tip=queue.target.tip,
            forbidden=queue.target.removed,
        )
