"""Records what became of a landing: the host's answer, never a guess."""

from itertools import takewhile

from msgspec.structs import replace

from mergeyard.domain.events import (
    CompositionRefused,
    LandingComposed,
    LandingLost,
    LandingMissed,
    LandingRead,
    LandingRefused,
    LandingSucceeded,
)
from mergeyard.domain.ids import BatchId, Sha, Ticket
from mergeyard.domain.instants import Instant
from mergeyard.domain.landing import Landed, Landing, Phase
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.runs import Run, Step
from mergeyard.domain.states import Mergeability, PrState, QueueState
from mergeyard.domain.targets import Targets
from mergeyard.engine import (
    lanes,
    leaving,
    looking,
    merging,
    operating,
    places,
    proving,
    readiness,
    requirements,
    running,
)
from mergeyard.engine.proving import BY_ITSELF


def record_composed(queue: Queue, landing: Landing, event: LandingComposed) -> Queue:
    if landing.phase is not Phase.COMPOSING:
        return queue
    steps = merging.prefer_what_others_stand_on(queue, landing.members, event.steps)
    return replace(queue, landing=replace(landing, phase=Phase.READING, steps=steps))


def record_composition_refused(queue: Queue, landing: Landing, _: CompositionRefused) -> Queue:
    """Somebody changed the same paths: it is tested again on the new tip."""
    if landing.phase is not Phase.COMPOSING or _run_of(queue, landing) is None:
        return queue
    return replace(_void_run(queue, landing), landing=None)


def record_read(queue: Queue, landing: Landing, event: LandingRead, now: Instant) -> Queue:
    """Every pull request of the landing as it is now. Whoever changed leaves, and the landing with it."""
    if landing.phase is not Phase.READING or {pull.number for pull in event.pulls} != _numbers(landing):
        return queue
    if any(queue.submissions[ticket].seen > event.as_of for ticket in landing.tickets if ticket in queue.submissions):
        return queue
    for pull in event.pulls:
        queue = looking.record_pull(queue, pull, event.as_of, now)
    stays = [each for each in map(queue.submissions.get, landing.tickets) if each is not None]
    doubtful = [each for each in stays if not each.forced]
    for submission in doubtful:
        if submission.pull.mergeability is Mergeability.NOT_MERGEABLE and submission.state is not PrState.NOT_READY:
            queue = readiness.demote(queue, submission.ticket, Reason.NO_LONGER_MERGEABLE, now)
    if any(each.pull.mergeability is not Mergeability.MERGEABLE for each in doubtful):
        return queue
    return replace(queue, landing=replace(landing, read=True))


def record_success(queue: Queue, landing: Landing, event: LandingSucceeded, now: Instant) -> Queue:
    return replace(_land(queue, landing, event.steps, now), landing=None) if landing.intended else queue


def record_missed(queue: Queue, landing: Landing, event: LandingMissed, now: Instant) -> Queue:
    """The target is not what we thought: look before anything else lands."""
    if not landing.intended:
        return queue
    if event.steps:
        queue = _land(queue, landing, event.steps, now)
    if event.withdrawn:
        queue = _void_run(queue, landing)
    return replace(looking.ask_for_target(queue), landing=None)


def record_refused(queue: Queue, landing: Landing, event: LandingRefused, now: Instant) -> Queue:
    if not landing.intended:
        return queue
    if event.steps:
        queue = _land(queue, landing, event.steps, now)
    queue = replace(queue, landing=None)
    if event.ticket is None:
        return operating.set_state(queue, QueueState.PAUSED, Reason.LANDING_REFUSED, now, words=event.words)
    if landing.run is None:
        return _never_directly(queue, event.ticket)
    return leaving.leave(queue, event.ticket, PrState.FAILED, Reason.MERGE_REFUSED, now, words=event.words)


def record_lost(queue: Queue, landing: Landing, _: LandingLost, now: Instant) -> Queue:
    if not landing.intended:
        return queue
    queue = replace(looking.ask_for_target(queue), landing=None)
    for ticket in landing.tickets:
        queue = leaving.leave(queue, ticket, PrState.CANCELLED, Reason.LANDING_UNKNOWN, now)
    return queue


def _run_of(queue: Queue, landing: Landing) -> Run | None:
    return None if landing.run is None else queue.runs.get(landing.run)


def _void_run(queue: Queue, landing: Landing) -> Queue:
    run = _run_of(queue, landing)
    return queue if run is None else running.put(queue, replace(run, void=Reason.TARGET_BRANCH_MOVED))


def _numbers(landing: Landing) -> set[int]:
    return {member.number for member in landing.members}


def _never_directly(queue: Queue, ticket: Ticket) -> Queue:
    """The host refuses it without a run: it takes the way that everybody takes."""
    submission = queue.submissions[ticket]
    exam = None if submission.exam is None else replace(submission.exam, contains_tip=False)
    return places.update(queue, replace(submission, exam=exam))


def _land(queue: Queue, landing: Landing, steps: tuple[Step, ...], now: Instant) -> Queue:
    proves_its_tip = len(steps) == len(landing.members) and _proves_its_tip(queue, landing)
    standing = _standing(queue.target.tip, steps)
    same_trees = all(step.tree == tested.tree for step, tested in zip(steps, landing.steps, strict=False))
    as_tested = same_trees and standing == steps
    queue = _extend_history(queue, landing, standing, as_tested=as_tested)
    if standing != steps:
        queue = looking.ask_for_target(queue)
    queue = _out_of_the_line(queue, frozenset(landing.tickets[: len(steps)]))
    for ticket, step in zip(landing.tickets, steps, strict=False):
        stay = queue.submissions[ticket]
        stay = replace(stay, merged_sha=step.commit, verified_by=landing.run, composed=landing.composed)
        queue = places.update(queue, stay)
        queue = leaving.leave(queue, ticket, PrState.MERGED, _merge_reason(landing, as_tested), now)
    if not as_tested:
        return operating.set_state(queue, QueueState.PAUSED, Reason.TREE_MISMATCH, now)
    return proving.prove(queue, steps[-1].commit, BY_ITSELF) if proves_its_tip else queue


def _proves_its_tip(queue: Queue, landing: Landing) -> bool:
    """Whether all that is required by now was seen to pass on the very commit that it puts there."""
    if landing.run is None:
        exam = queue.submissions[landing.tickets[0]].exam
        return exam is not None and exam.passed.issuperset(requirements.required(queue).statuses)
    run = _run_of(queue, landing)
    return run is not None and not landing.composed and requirements.outgrown(queue, run) is None


def _merge_reason(landing: Landing, as_tested: bool) -> Reason:
    if landing.run is None:
        return Reason.MERGED_DIRECTLY
    return Reason.MERGED_BY_QUEUE if as_tested else Reason.TREE_MISMATCH


def _standing(tip: Sha | None, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Those that stand each upon the one before. Where one does not, somebody took off what lay there in the moment of
    the merge: what that was is told by a look from the last tip that had it."""
    beneath = (tip, *(step.commit for step in steps))
    pairs = takewhile(lambda pair: pair[0] == pair[1].parent, zip(beneath, steps, strict=False))
    return tuple(step for _, step in pairs)


def _extend_history(queue: Queue, landing: Landing, steps: tuple[Step, ...], *, as_tested: bool) -> Queue:
    """Where something else came of it than was tested, somebody else's commit may lie beneath: nothing tested upon what
    was there before speaks for what is there now."""
    landed = tuple(
        Landed(step.commit, step.tree, member.ticket, _lane_targets(queue, member.ticket))
        for member, step in zip(landing.members, steps, strict=False)
    )
    history = (*queue.target.history, *landed)
    target = replace(
        queue.target,
        tip=history[-1].commit,
        history=history if as_tested else history[-1:],
        seen=queue.counters.turns,
    )
    return replace(queue, target=target)


def _lane_targets(queue: Queue, ticket: Ticket) -> Targets:
    batch = places.batch_of(queue, ticket)
    return lanes.targets_of(queue, queue.submissions[ticket]) if batch is None else batch.targets


def _out_of_the_line(queue: Queue, tickets: frozenset[Ticket]) -> Queue:
    """Whole batches at once; one that the provider merged in part loses its members one by one."""
    whole = frozenset[BatchId](batch.id for batch in queue.line.batches if tickets.issuperset(batch.tickets))
    return replace(queue, line=lanes.without_landed(queue.line, whole))
