"""Decides whether what a run tested is still what would merge, for any stack, however it was chosen."""

from collections.abc import Iterable, Iterator
from itertools import chain

from mergeyard.domain.config import LandingMethod, Mode
from mergeyard.domain.ids import BatchId, RunId, Sha, Ticket
from mergeyard.domain.landing import Landed
from mergeyard.domain.line import Batch
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Member, Run, Step
from mergeyard.domain.states import SATISFIED, CheckState, RunStatus
from mergeyard.domain.target_branch import TargetBranch
from mergeyard.domain.targets import Targets
from mergeyard.engine import requirements
from mergeyard.engine.remembering import once_for_the_same


def misfit(queue: Queue, batch: Batch, run: Run) -> Reason | None:
    """Why this run cannot count for its batch any more; None while it can.

    A stack may leave out some that stand ahead. That alone is no misfit: the run holds once they have left,
    and is one the moment one of them lands, because then a stranger stands beneath it.
    """
    if run.void is not None:
        return run.void
    if _lost_what_it_extends(queue, run):
        return Reason.PREREQUISITE_REMOVED
    landed = landed_since(queue.target, run.base)
    if landed is None or not run.left_out.isdisjoint(queue.target.landed):
        return Reason.TARGET_BRANCH_MOVED
    if tuple(member.ticket for member in run.tested if member.ticket not in queue.target.landed) != batch.tickets:
        return Reason.BATCHMATE_REMOVED
    if landed and not _can_still_land(queue, batch, run):
        return Reason.TARGET_BRANCH_MOVED
    return _misplaced(queue, batch, run) or requirements.outgrown(queue, run)


def _lost_what_it_extends(queue: Queue, run: Run) -> bool:
    """It was to go on from a run that was stopped before it was built, and so can never be built itself."""
    if run.extends is None:
        return False
    extended = queue.runs.get(run.extends)
    return extended is None or not extended.active


def landed_since(target: TargetBranch, base: Sha) -> tuple[Landed, ...] | None:
    """What this queue put upon the base; None when somebody else's commit lies between it and the tip."""
    place = target.places.get(base)
    return None if place is None else target.history[place + 1 :]


def unlanded(queue: Queue, members: Iterable[Member]) -> tuple[Member, ...]:
    return tuple(member for member in members if member.ticket in queue.submissions)


def stands_on_tip(target: TargetBranch, run: Run) -> bool:
    """Whether the target is the very commit that the first member that has not landed was tested on."""
    beneath = _last_landed(target, run)
    return run.base == target.tip if beneath is None else beneath.commit == target.tip


def may_land_as_it_is(target: TargetBranch, run: Run) -> bool:
    """What the provider merges are its own commits: there the contents must be the same."""
    beneath = _last_landed(target, run)
    if beneath is not None and run.landing is LandingMethod.PROVIDER_MERGE:
        return beneath.tree == target.history[-1].tree
    return stands_on_tip(target, run)


def _last_landed(target: TargetBranch, run: Run) -> Step | None:
    """The step that the target has come to, when what landed is the beginning of this stack."""
    landed = landed_since(target, run.base) or ()
    stack = tuple(member.ticket for member in run.stack[: len(landed)])
    if not landed or len(landed) > len(run.chain) or stack != tuple(commit.ticket for commit in landed):
        return None
    return run.chain[len(landed) - 1]


def _can_still_land(queue: Queue, batch: Batch, run: Run) -> bool:
    """In single mode only the very chain lands; in parallel mode it can be composed with strangers of other lanes: of
    others than its own, and than those of the batches ahead, which may land by it."""
    if queue.mode is Mode.SINGLE:
        return may_land_as_it_is(queue.target, run)
    if any(member.ticket in queue.target.landed for member in run.stack[len(run.chain) :]):
        return False
    built = {member.ticket for member in run.stack[: len(run.chain)]}
    return all(
        commit.ticket in built
        for of_its_lane in (batch, *batches_ahead(queue, batch))
        for commit in _landed_of_lane(queue.target, run.base, of_its_lane.targets)
    )


def _landed_of_lane(target: TargetBranch, base: Sha, targets: Targets) -> Iterator[Landed]:
    """What landed upon the base and shares a target, found at the cost of the smaller of the two."""
    since = target.places[base]
    if targets.everything or len(targets.names) > len(target.history):
        return (commit for commit in target.history[since + 1 :] if commit.targets.share_with(targets))
    claims = chain(target.claims_of_everything, *(target.claims.get(name, ()) for name in targets.names))
    return (target.history[place] for place in claims if place > since)


def _misplaced(queue: Queue, batch: Batch, run: Run) -> Reason | None:
    landed = queue.target.landed
    standing = tuple(member.ticket for member in run.beneath if member.ticket not in landed)
    expected = tuple(ticket for ticket in tickets_ahead(queue, batch) if ticket not in run.left_out)
    if standing == expected:
        return None
    if set(standing) <= set(expected):
        return Reason.SKIP_THE_LINE_INTERRUPTED
    return Reason.PREREQUISITE_REMOVED


def tickets_ahead(queue: Queue, batch: Batch) -> tuple[Ticket, ...]:
    return tuple(ticket for other in batches_ahead(queue, batch) for ticket in other.tickets)


def batches_ahead(queue: Queue, batch: Batch) -> tuple[Batch, ...]:
    return tuple(map(queue.line.by_id.__getitem__, queue.line.ahead[batch.id]))


def batches_behind(queue: Queue, batch: Batch) -> Iterator[Batch]:
    return (other for other in queue.line.batches if batch.id in queue.line.ahead[other.id])


def bound_by_landing(queue: Queue, ticket: Ticket) -> bool:
    """From the saved intent to the outcome nothing touches the pull requests of a landing."""
    landing = queue.landing
    return landing is not None and landing.intended and ticket in landing.tickets


def free_batches(queue: Queue) -> tuple[Batch, ...]:
    """The batches of the line that no landing is about to take."""
    if queue.landing is None or not queue.landing.intended:
        return queue.line.batches
    return tuple(batch for batch in queue.line.batches if not bound_by_landing(queue, batch.tickets[0]))


# Misfits are dropped before anything else is decided, so from here on every run of a batch fits.


def holds(queue: Queue, batch: Batch, run: Run) -> bool:
    return run.left_out.isdisjoint(tickets_ahead(queue, batch)) if run.left_out else True


def current_run(queue: Queue, batch: Batch) -> Run | None:
    """The run that it is named and judged by: the latest that holds, else the latest that may come to hold."""
    runs = queue.runs_of(batch)
    holding = [run for run in runs if holds(queue, batch, run)] if len(runs) > 1 else ()
    return (holding or runs or (None,))[-1]


def passed_run(queue: Queue, batch: Batch) -> Run | None:
    for run in queue.runs_of(batch):
        if run.status is RunStatus.SUCCEEDED and holds(queue, batch, run):
            return run
    return None


def passed(queue: Queue, batch: Batch) -> bool:
    return passed_run(queue, batch) is not None


def cleared(queue: Queue, batch: Batch) -> bool:
    """Whether a run behind it, which holds its changes too, passed and clears it by optimistic merging."""
    return queue.config.can_optimistically_merge and batch.id in _cleared_by_those_behind(queue)


def found_good(queue: Queue, batch: Batch) -> bool:
    """By a run of its own, or by one that speaks for it."""
    return passed(queue, batch) or cleared(queue, batch)


@once_for_the_same("line", "runs")
def _cleared_by_those_behind(queue: Queue) -> frozenset[BatchId]:
    return frozenset(
        other
        for batch in queue.line.batches
        if (run := passed_run(queue, batch)) is not None
        for other in queue.line.ahead[batch.id]
        if _clears(queue, run, other)
    )


def _clears(queue: Queue, run: Run, ahead: BatchId) -> bool:
    """A check that was skipped in the run behind says nothing about the changes ahead: it must be satisfied there.

    Example: A fails `unit`, and B behind it changes only documentation, so its `unit` is skipped. B passed, but
    `unit` never ran on the changes of A: B does not clear A.
    """
    unproven = [name for name in run.required if run.checks.get(name) is CheckState.NEUTRAL]
    if not unproven:
        return True
    own = current_run(queue, queue.line.by_id[ahead])
    return own is not None and all(own.checks.get(name) in SATISFIED for name in unproven)


def red_run(queue: Queue, batch: Batch) -> Run | None:
    """The failed run that it will be judged by, once nothing of it is still being tested."""
    run = current_run(queue, batch)
    return run if run is not None and failed_for_good(queue, run) else None


def failed_for_good(queue: Queue, run: Run) -> bool:
    return run.status is RunStatus.FAILED and not to_be_repeated(queue, run)


def to_be_repeated(queue: Queue, run: Run) -> bool:
    return run.restarted or (run.status is RunStatus.FAILED and run.attempt < queue.config.test_retries)


def active_runs(queue: Queue, runs: Iterable[RunId]) -> tuple[Run, ...]:
    return tuple(run for run in (queue.runs[run_id] for run_id in runs) if run.active)
