"""Whether a merge brought the whole change of its pull request, by merging the tested head once more."""

from collections.abc import Iterable

import structlog

from mergeyard.domain.ids import SubmissionId
from mergeyard.domain.runs import Step
from mergeyard.ports.git import LimitExceededError, MissingObject
from mergeyard.service import landed_heads
from mergeyard.service.merge_audit.records import BranchHistory, LandingForm, RecordedMerge
from mergeyard.service.repositories import RepositoryContext

log = structlog.get_logger()


async def find_incomplete_merges(
    context: RepositoryContext, landings: Iterable[RecordedMerge], history: BranchHistory
) -> frozenset[SubmissionId]:
    """Without those whose commits the mirror no longer has, and those that take git more than it may now: the
    other merges are audited all the same."""
    found = set[SubmissionId]()
    for landing in landings:
        try:
            if not await _is_whole(context, landing, history):
                found.add(landing.submission.id)
        except MissingObject:
            continue
        except LimitExceededError as error:
            number = landing.submission.number
            log.warning("git_limit_exceeded", repo=str(context.repo), number=number, error=str(error))
    return frozenset(found)


async def _is_whole(context: RepositoryContext, landing: RecordedMerge, history: BranchHistory) -> bool:
    run = landing.run
    tested = landing.tested_step
    head = landing.tested_head
    if run is None or tested is None or head is None:
        return True  # reported as untested
    if landing.form is not LandingForm.REBASED:
        # Whether the tested commit is what merged, the other comparisons find.
        return await landed_heads.is_whole(context, run.base, run.merge_method, head, tested)
    merged = _read_rebased_step(landing, history)
    if merged is None:
        return True  # reported as missing, or removed by a push
    # The target branch can have lost since the test what it had of the change.
    return await landed_heads.is_whole(context, merged.parent, run.merge_method, head, merged)


def _read_rebased_step(landing: RecordedMerge, history: BranchHistory) -> Step | None:
    parent = history.find_parent(landing)
    if landing.commit is None or parent is None:
        return None
    return Step(landing.commit, parent, history[landing.commit].tree)
