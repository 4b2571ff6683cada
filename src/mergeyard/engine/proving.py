"""Decides whether a base is fit to blame anyone on: seen green, seen red, or to be tested by itself."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec.structs import replace

from mergeyard.domain.ids import Sha, Ticket
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Run, RunKind
from mergeyard.domain.target_branch import Proof
from mergeyard.engine import requirements


class BaseVerdict(StrEnum):
    PROVEN = "proven"
    BROKEN = "broken"
    UNKNOWN = "unknown"


BY_ITSELF: Proof = frozenset()


def base_verdict(queue: Queue, run: Run, accused: Iterable[Ticket]) -> BaseVerdict:
    """A green run proves the base that it stood on, unless the accused were part of it: whoever repairs a
    broken base must not thereby convict the one that it repaired."""
    tickets = frozenset(accused)
    proofs = [proof for commit in (run.base, run.tested_upon) for proof in queue.target.proofs.get(commit, ())]
    if BY_ITSELF in proofs:
        return BaseVerdict.PROVEN
    if run.base in queue.target.broken:
        return BaseVerdict.BROKEN
    return BaseVerdict.PROVEN if any(map(tickets.isdisjoint, proofs)) else BaseVerdict.UNKNOWN


def record_green(queue: Queue, run: Run) -> Queue:
    """For all that is required by now, or it proves nothing."""
    if requirements.outgrown(queue, run) is not None:
        return queue
    return prove(queue, run.base, _concerned(run))


def prove(queue: Queue, base: Sha, proof: Proof) -> Queue:
    known = queue.target.proofs.get(base, ())
    if any(other <= proof for other in known):
        return queue
    proofs = {**queue.target.proofs, base: (*(other for other in known if not proof <= other), proof)}
    return replace(queue, target=replace(queue.target, proofs=proofs))


def record_broken(queue: Queue, base: Sha) -> Queue:
    return replace(queue, target=replace(queue.target, broken=queue.target.broken | {base}))


def bare_runs(queue: Queue) -> dict[Sha, Run]:
    """The latest bare run upon each base."""
    return {run.base: run for run in queue.runs.values() if run.kind is RunKind.BARE}


def being_proven(queue: Queue, base: Sha, accused: Iterable[Ticket]) -> bool:
    """Whether a run is under way whose success would prove the base."""
    tickets = frozenset(accused)
    return any(run.active and run.base == base and tickets.isdisjoint(_concerned(run)) for run in queue.runs.values())


def _concerned(run: Run) -> Proof:
    """Whom it convicts of nothing: its own, and those that it left out, for a bet against somebody blames nobody."""
    return frozenset(member.ticket for member in run.stack) | run.left_out
