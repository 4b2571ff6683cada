"""Finds which batches a batch depends on: batches ahead that share an impacted target, and transitively theirs.

An index from target to the last batch that claimed it gives the direct predecessors without comparing pairs: a batch
that claimed the target earlier is a predecessor of that last one.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from msgspec.structs import replace

from mergeyard.domain.config import Mode
from mergeyard.domain.ids import BatchId, SubmissionId
from mergeyard.domain.pull_requests import ALL_TARGETS, ImpactedTargets, Submission, union_impacted_targets
from mergeyard.domain.queue import ActiveBatches, Batch, LaneIndex, Queue

MIN_CLAIMS_BEFORE_REBUILD = 1000


def impacted_targets_of(queue: Queue, submission: Submission) -> ImpactedTargets:
    """In single mode all pull requests share a lane. Unknown targets count as ALL."""
    if queue.mode is Mode.SINGLE or submission.impacted_targets is None:
        return ALL_TARGETS
    return submission.impacted_targets


def union_of_impacted_targets(queue: Queue, submission_ids: Iterable[SubmissionId]) -> ImpactedTargets:
    return union_impacted_targets(
        impacted_targets_of(queue, queue.submissions[submission_id]) for submission_id in submission_ids
    )


def contained_submission_ids(queue: Queue, submission_ids: tuple[SubmissionId, ...]) -> frozenset[SubmissionId]:
    """The live submissions whose commits these contain. Of two with the same head, the later one depends on the
    earlier."""
    contained = (
        other for submission_id in submission_ids for other in _contained(queue, queue.submissions[submission_id])
    )
    return frozenset(contained).difference(submission_ids)


def _contained(queue: Queue, submission: Submission) -> Iterator[SubmissionId]:
    for number, head in submission.pull_request.contained_heads.items():
        other = queue.submission_of(number)
        if other is None or other.pull_request.head != head:
            continue
        if head != submission.pull_request.head or other.id < submission.id:
            yield other.id


def append_to_active(active: ActiveBatches, batch: Batch) -> ActiveBatches:
    return ActiveBatches(
        batches=(*active.batches, batch),
        ahead={**active.ahead, batch.id: _all_ahead(active, batch)},
        index=add_claims(active.index, batch),
    )


def build_active(batches: Iterable[Batch]) -> ActiveBatches:
    """Rebuilds the index and the dependencies, after a change elsewhere than at the ends."""
    active = ActiveBatches()
    for batch in batches:
        active = append_to_active(active, batch)
    return active


def remove_landed(active: ActiveBatches, landed: frozenset[BatchId]) -> ActiveBatches:
    """A landed batch usually depends on no remaining batch, so those behind it only lose a predecessor. If its lane was
    recomputed during the landing it can, and hides predecessors from those behind: then the dependencies are
    rebuilt."""
    remaining = tuple(batch for batch in active.batches if batch.id not in landed)
    hid_predecessors = any(not landed.issuperset(active.ahead[batch]) for batch in landed)
    if hid_predecessors or _is_mostly_stale(active.index, remaining):
        return build_active(remaining)
    return replace(
        active,
        batches=remaining,
        ahead={
            batch: tuple(other for other in ahead if other not in landed)
            for batch, ahead in active.ahead.items()
            if batch not in landed
        },
    )


def direct_predecessors(active: ActiveBatches, batch: Batch) -> set[BatchId]:
    claimed = last_claiming_batches(active.index, batch.impacted_targets.names)
    return {other for other in claimed if other in active.ahead} | batches_with(active, batch.prerequisites)


def last_claiming_batches(index: LaneIndex, names: frozenset[str]) -> set[BatchId]:
    """The batches that last claimed any of these targets. Newest segments first, so that each target
    is looked up once."""
    found = set[BatchId]() if index.last_impacting_all is None else {index.last_impacting_all}
    for segment in reversed(index.segments):
        known = names & segment.keys()
        found.update(map(segment.__getitem__, known))
        names -= known
    return found


def add_claims(index: LaneIndex, batch: Batch) -> LaneIndex:
    if batch.impacted_targets.everything:
        return LaneIndex(last_impacting_all=batch.id)
    segments = [*index.segments, dict.fromkeys(batch.impacted_targets.names, batch.id)]
    while len(segments) > 1 and len(segments[-2]) <= 2 * len(segments[-1]):
        newer = segments.pop()
        segments[-1] = {**segments[-1], **newer}
    return LaneIndex(tuple(segments), index.last_impacting_all)


def _all_ahead(active: ActiveBatches, batch: Batch) -> tuple[BatchId, ...]:
    if batch.impacted_targets.everything:
        return tuple(active.ahead)
    direct = direct_predecessors(active, batch)
    reached = direct.union(chain.from_iterable(active.ahead[other] for other in direct))
    return tuple(other for other in active.ahead if other in reached)


def _is_mostly_stale(index: LaneIndex, remaining: tuple[Batch, ...]) -> bool:
    """Claims of landed batches stay in the index until most of it is stale."""
    claims = sum(map(len, index.segments))
    return claims > MIN_CLAIMS_BEFORE_REBUILD + 4 * sum(len(batch.impacted_targets.names) for batch in remaining)


def batches_with(active: ActiveBatches, submission_ids: frozenset[SubmissionId]) -> set[BatchId]:
    if not submission_ids:
        return set()
    return {batch.id for batch in active.batches if not submission_ids.isdisjoint(batch.submission_ids)}
