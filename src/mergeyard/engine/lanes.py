"""Finds whom a batch depends on: those ahead that share a target with it, and whom those depend on.

An index from target to the last batch that claimed it gives the direct predecessors without comparing pairs:
whoever claimed the target earlier is a predecessor of that last one.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import BatchId, Ticket
from mergeyard.domain.line import Batch, LaneIndex, Line
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.targets import ALL, Targets, union

MANY_CLAIMS = 1000


def targets_of(queue: Queue, submission: Submission) -> Targets:
    """In single mode everybody shares; unknown targets may be any."""
    if queue.mode is Mode.SINGLE or submission.targets is None:
        return ALL
    return submission.targets


def targets_of_all(queue: Queue, tickets: Iterable[Ticket]) -> Targets:
    return union(targets_of(queue, queue.submissions[ticket]) for ticket in tickets)


def contained_by(queue: Queue, tickets: tuple[Ticket, ...]) -> frozenset[Ticket]:
    """The live ones whose commits these bring along; of two with the same head the younger stands behind."""
    contained = (other for ticket in tickets for other in _contained(queue, queue.submissions[ticket]))
    return frozenset(contained).difference(tickets)


def _contained(queue: Queue, submission: Submission) -> Iterator[Ticket]:
    for number, head in submission.pull.contains.items():
        other = queue.submission_of(number)
        if other is None or other.pull.head != head:
            continue
        if head != submission.pull.head or other.ticket < submission.ticket:
            yield other.ticket


def append(line: Line, batch: Batch) -> Line:
    return Line(
        batches=(*line.batches, batch),
        ahead={**line.ahead, batch.id: _all_ahead(line, batch)},
        index=claim(line.index, batch),
    )


def arrange(batches: Iterable[Batch]) -> Line:
    """The line anew from its batches, when it changed elsewhere than at its ends."""
    line = Line()
    for batch in batches:
        line = append(line, batch)
    return line


def without_landed(line: Line, landed: frozenset[BatchId]) -> Line:
    """Whoever lands mostly depends on nobody left in the line, so those behind only lose a predecessor. One whose lane
    was changed while it landed may: then those behind find whom it hid from them."""
    remaining = tuple(batch for batch in line.batches if batch.id not in landed)
    hid_somebody = any(not landed.issuperset(line.ahead[batch]) for batch in landed)
    if hid_somebody or _mostly_forgotten(line.index, remaining):
        return arrange(remaining)
    return replace(
        line,
        batches=remaining,
        ahead={
            batch: tuple(other for other in ahead if other not in landed)
            for batch, ahead in line.ahead.items()
            if batch not in landed
        },
    )


def direct_predecessors(line: Line, batch: Batch) -> set[BatchId]:
    claimed = last_claims(line.index, batch.targets.names)
    return {other for other in claimed if other in line.ahead} | holders(line, batch.behind)


def last_claims(index: LaneIndex, names: frozenset[str]) -> set[BatchId]:
    """Who last claimed any of these targets; newest segments first, so that each target is answered once."""
    found = set[BatchId]() if index.last_of_all is None else {index.last_of_all}
    for segment in reversed(index.segments):
        known = names & segment.keys()
        found.update(map(segment.__getitem__, known))
        names -= known
    return found


def claim(index: LaneIndex, batch: Batch) -> LaneIndex:
    if batch.targets.everything:
        return LaneIndex(last_of_all=batch.id)
    segments = [*index.segments, dict.fromkeys(batch.targets.names, batch.id)]
    while len(segments) > 1 and len(segments[-2]) <= 2 * len(segments[-1]):
        newer = segments.pop()
        segments[-1] = {**segments[-1], **newer}
    return LaneIndex(tuple(segments), index.last_of_all)


def _all_ahead(line: Line, batch: Batch) -> tuple[BatchId, ...]:
    if batch.targets.everything:
        return tuple(line.ahead)
    direct = direct_predecessors(line, batch)
    reached = direct.union(chain.from_iterable(line.ahead[other] for other in direct))
    return tuple(other for other in line.ahead if other in reached)


def _mostly_forgotten(index: LaneIndex, remaining: tuple[Batch, ...]) -> bool:
    """Claims of those that landed stay in the index until they are most of it."""
    claims = sum(map(len, index.segments))
    return claims > MANY_CLAIMS + 4 * sum(len(batch.targets.names) for batch in remaining)


def holders(line: Line, tickets: frozenset[Ticket]) -> set[BatchId]:
    if not tickets:
        return set()
    return {batch.id for batch in line.batches if not tickets.isdisjoint(batch.tickets)}
