"""Chooses what the next run of a batch stands upon: the one place where a policy of speculation lives.

The policy here is the chain: everything ahead in the lane, as if it will all merge. Another policy may leave
out whom it expects to fail; `holding` judges any stack alike, so a wrong guess costs a run and nothing else.
"""

from msgspec import Struct

from mergeyard.domain.ids import RunId, Sha, Ticket
from mergeyard.domain.line import Batch
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Member, Step
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


def next_stack(queue: Queue, batch: Batch, tip: Sha) -> Stack:
    ahead = members(queue, holding.tickets_ahead(queue, batch))
    stack = Stack(tip, (*ahead, *members(queue, batch.tickets)))
    return _upon_the_runs_ahead(queue, batch, stack)


def members(queue: Queue, tickets: tuple[Ticket, ...]) -> tuple[Member, ...]:
    submissions = (queue.submissions[ticket] for ticket in tickets)
    return tuple(Member(each.ticket, each.number, each.pull.head) for each in submissions)


def _upon_the_runs_ahead(queue: Queue, batch: Batch, stack: Stack) -> Stack:
    """Reuse the longest chain beneath us, so that landing those first keeps ours a fast-forward."""
    for other in reversed(holding.batches_ahead(queue, batch)):
        run = holding.current_run(queue, other)
        if run is None or run.status is RunStatus.CANCELLED:
            continue
        landed = len(run.stack) - len(holding.unlanded(queue, run.stack))
        beneath = run.stack[landed:]
        if stack.members[: len(beneath)] != beneath or not holding.stands_on_tip(queue.target, run):
            continue
        extends = run.id if run.status is RunStatus.PREPARING else None
        return Stack(stack.base, stack.members, stack.left_out, run.chain[landed:], extends)
    return stack
