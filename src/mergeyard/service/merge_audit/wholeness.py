"""Whether a merge brought the whole change of its pull request, by merging the tested head once more."""

from collections.abc import Iterable

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import SubmissionId
from mergeyard.ports.git import MissingObject
from mergeyard.service import landed_heads
from mergeyard.service.merge_audit.records import RecordedMerge
from mergeyard.service.repositories import RepositoryContext


async def find_incomplete_merges(
    context: RepositoryContext, landings: Iterable[RecordedMerge]
) -> frozenset[SubmissionId]:
    """Without those whose tested commits the mirror no longer has."""
    found = set[SubmissionId]()
    for landing in landings:
        try:
            if not await _is_whole(context, landing):
                found.add(landing.submission.id)
        except MissingObject:
            continue
    return frozenset(found)


async def _is_whole(context: RepositoryContext, landing: RecordedMerge) -> bool:
    """Compares the tested commit. Whether that is what merged, the other comparisons find."""
    run = landing.run
    tested = landing.tested_step
    head = landing.tested_head
    if run is None or tested is None or head is None:
        return True  # reported as untested
    if await context.mirror.merge(tested.parent, head) == tested.tree:
        return True
    if run.merge_method is MergeMethod.MERGE_COMMIT:
        return False
    # A pull request that merged earlier can contain a part of the change: then only the rest was applied.
    commits = await landed_heads.list_own_commits(context.mirror, head, run.base)
    landed = await landed_heads.find_landed_heads(context, run.base, tested.parent, commits)
    return await landed_heads.merge(context, tested.parent, head, landed) == tested.tree
