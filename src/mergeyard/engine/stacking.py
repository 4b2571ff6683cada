"""Puts together what the next run of a batch stands upon: all that stands ahead in its lane, but those left out.

Whom to leave out is a matter of policy: `holding` judges any stack alike, so a wrong guess costs a run and nothing
else.
"""

from collections.abc import Iterator

from msgspec import Struct

from mergeyard.domain.ids import RunId, Sha, Ticket
from mergeyard.domain.line import Batch
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Member, Run, Step
from mergeyard.domain.states import RunStatus
from mergeyard.engine import holding


class Stack(Struct, frozen=True):
    base: Sha
    members: tuple[Member, ...]
    left_out: frozenset[Ticket] = frozenset()
    reused: tuple[Step, ...] = ()
    """The commits of the runs ahead that it goes on from."""
    extends: RunId | None = None
    """The run ahead whose commits it will go on from, when they are built."""


def next_stack(queue: Queue, batch: Batch, tip: Sha, left_out: frozenset[Ticket] = frozenset()) -> Stack:
    ahead = (ticket for ticket in holding.tickets_ahead(queue, batch) if ticket not in left_out)
    stack = Stack(tip, members(queue, (*ahead, *batch.tickets)), left_out)
    return _upon_the_runs_ahead(queue, batch, stack)


def members(queue: Queue, tickets: tuple[Ticket, ...]) -> tuple[Member, ...]:
    submissions = (queue.submissions[ticket] for ticket in tickets)
    return tuple(Member(each.ticket, each.number, each.pull.head) for each in submissions)


def _upon_the_runs_ahead(queue: Queue, batch: Batch, stack: Stack) -> Stack:
    """Reuse the longest chain beneath us, so that landing those first keeps ours a fast-forward."""
    for run in _latest_first(queue, holding.batches_ahead(queue, batch)):
        if run.status is RunStatus.CANCELLED:
            continue
        landed = len(run.stack) - len(holding.unlanded(queue, run.stack))
        beneath = run.stack[landed:]
        if stack.members[: len(beneath)] != beneath or not holding.stands_on_tip(queue.target, run):
            continue
        extends = run.id if run.status is RunStatus.PREPARING else None
        return Stack(stack.base, stack.members, stack.left_out, run.chain[landed:], extends)
    return stack


def _latest_first(queue: Queue, batches: tuple[Batch, ...]) -> Iterator[Run]:
    return (run for batch in reversed(batches) for run in reversed(queue.runs_of(batch)))
