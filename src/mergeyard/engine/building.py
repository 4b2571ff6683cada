"""Records what became of a test branch: built, refused because of somebody in it, or gone."""

from msgspec.structs import replace

from mergeyard.domain.events import REFUSAL_REASONS, BranchDeleted, BuildRefusal, GroundLost, RunBuilt, RunRefused
from mergeyard.domain.ids import Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Member, Run, RunKind
from mergeyard.domain.states import PrState, RunStatus
from mergeyard.domain.transitions import check_run
from mergeyard.engine import dissolving, holding, leaving, looking, naming, places, retaining, running


def record_built(queue: Queue, event: RunBuilt, now: Instant) -> Queue:
    run = queue.runs.get(event.run)
    if run is None:
        return queue
    if run.status is not RunStatus.PREPARING:
        return running.put(queue, replace(run, pushed=True)) if not run.pushed and not run.active else queue
    check_run(run.status, RunStatus.IN_PROGRESS)
    built = replace(run, status=RunStatus.IN_PROGRESS, chain=(*run.chain, *event.steps), pushed=True, started_at=now)
    return _share_chain(running.put(queue, built), built)


def record_refused(queue: Queue, event: RunRefused, now: Instant) -> Queue:
    run = queue.runs.get(event.run)
    if run is None or run.status is not RunStatus.PREPARING:
        return queue
    if any(holding.bound_by_landing(queue, member.ticket) for member in run.tested):
        return queue
    if run.kind is RunKind.BISECTION:
        return _end_bisection(queue, run, now)
    if event.refusal is BuildRefusal.CONFLICTS_WITH_STACK or event.ticket not in _tickets(run.tested):
        return _hold_for_conflict(queue, run, event, now)
    if places.batch_of(queue, event.ticket) is None:
        return queue
    if event.refusal is BuildRefusal.ALREADY_CONTAINED:
        queue = leaving.leave(queue, event.ticket, PrState.MERGED, Reason.MERGED_MANUALLY, now)
        return looking.ask_for_target(queue)
    queue = naming.set_back(queue, event.ticket, Reason.TARGET_BRANCH_MOVED, now)
    reason = REFUSAL_REASONS[event.refusal]
    return leaving.leave(queue, event.ticket, PrState.FAILED, reason, now, words=event.words)


def record_ground_lost(queue: Queue, event: GroundLost, now: Instant) -> Queue:
    """It is built anew from its base: other commits, but the same contents. Where the base itself is gone, so is
    what was found out upon it."""
    run = queue.runs.get(event.run)
    if run is None or run.status is not RunStatus.PREPARING:
        return queue
    if run.chain:
        return running.put(queue, replace(run, chain=()))
    for bisection in queue.bisections:
        if run.base in {bisection.base, bisection.red_run.base, *(queue.runs[probe].base for probe in bisection.runs)}:
            queue = dissolving.dissolve(queue, bisection, bisection.members, Reason.TARGET_BRANCH_MOVED, now)
    return looking.ask_for_target(queue)


def record_deleted(queue: Queue, event: BranchDeleted) -> Queue:
    run = queue.runs.get(event.run)
    return queue if run is None or not run.pushed else running.put(queue, replace(run, pushed=False))


def _share_chain(queue: Queue, run: Run) -> Queue:
    """Those that go on from this chain can be built now, and those that go on from them know what lies beneath."""
    growing = [run]
    for known in growing:
        for other in queue.runs.values():
            if other.extends == known.id and other.status is RunStatus.PREPARING:
                beneath = known.chain[known.stack.index(other.stack[0]) :]
                extends = known.id if known.status is RunStatus.PREPARING else None
                growing.append(replace(other, chain=beneath, extends=extends))
                queue = running.put(queue, growing[-1])
    return queue


def _end_bisection(queue: Queue, run: Run, now: Instant) -> Queue:
    """What failed cannot be put together again: it is tested anew, where the line will tell what is wrong with it."""
    bisection = next((each for each in queue.bisections if run.id in each.runs), None)
    if bisection is None:
        return queue
    return dissolving.dissolve(queue, bisection, bisection.members, Reason.TARGET_BRANCH_MOVED, now)


def _hold_for_conflict(queue: Queue, run: Run, event: RunRefused, now: Instant) -> Queue:
    """It stays out until those beneath it are gone. If something is wrong with one of those, its own run will tell,
    and all that stands upon it waits."""
    tickets, tested = _tickets(run.stack), _tickets(run.tested)
    concerned = (event.ticket,) if event.ticket in tested else tested
    held = tuple(ticket for ticket in concerned if ticket in queue.line.tickets)
    blockers = event.blockers or tickets[: tickets.index(concerned[0])]
    return retaining.hold_for_conflict(queue, held, blockers, now)


def _tickets(members: tuple[Member, ...]) -> tuple[Ticket, ...]:
    return tuple(member.ticket for member in members)
