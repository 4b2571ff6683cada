"""Which commits of a pull request the target branch contains as a squash or rebase, under other SHAs.

A squashed or rebased pull request leaves a commit that does not contain its head. For a pull request that was built on
that head git then finds an old merge base, and applies the change of the lower one again. So the queue merges it onto a
commit that has the landed heads as further parents.

The commit names its head in a trailer, and a trailer is a claim of the author of the commit. A head counts only if

1. this queue recorded the commit as the landing of that head, or built it below the commit that is built now, and
2. the change is still there: merging the head alone changes nothing. After a revert it is missing, and has to land
   again with the pull request that has its commits.

Example: #1 adds `a` and lands as a squash, #2 has the commits of #1 and adds `b`. Only the commits after the head of #1
are applied. If `a` is reverted first, all of #2 is applied, and both files land.
"""

from collections.abc import AsyncIterator, Sequence

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import QueueId, Sha
from mergeyard.domain.pull_requests import Submission
from mergeyard.domain.runs import Step
from mergeyard.ports.git import Commit, Conflict, Mirror
from mergeyard.ports.store import Store
from mergeyard.service import git_names, persistence
from mergeyard.service.repositories import RepositoryContext

MAX_SEARCHED_COMMITS = 500
"""Commits of the target branch that are searched for trailers, newest first."""
MAX_SUBMISSIONS = 100
"""The last ones of a pull request in which the landing of a commit is searched."""


async def list_own_commits(mirror: Mirror, head: Sha, base: Sha, limit: int | None = None) -> tuple[Sha, ...]:
    """The commits of a pull request, its head last. `base` is the tip of the target branch."""
    return await mirror.commit_shas(head, without=[base], limit=limit)


async def merge(context: RepositoryContext, onto: Sha, head: Sha, landed: Sequence[Sha]) -> Sha | Conflict:
    """The tree of the head merged into `onto`, without the changes up to the landed heads."""
    if not landed:
        return await context.mirror.merge(onto, head)
    return await context.mirror.merge(await _commit_merge_base(context.mirror, onto, landed), head)


async def find_landed_heads(
    context: RepositoryContext, base: Sha, onto: Sha, commits: Sequence[Sha]
) -> tuple[Sha, ...]:
    """Those of a pull request's commits (its head last) that `onto` contains as a squash or rebase.

    `base` is the tip of the target branch, and `onto` is `base` or a commit that is built on it.
    """
    # The head alone needs no other merge base: merged with the right one it would change nothing.
    if len(commits) < 2:
        return ()
    landed = [
        head async for head in _find_claimed_heads(context, base, onto, commits) if await _is_there(context, onto, head)
    ]
    if not landed:
        return ()
    # A conflict is visible to the author, but one that git itself does not find is our fault.
    head = commits[-1]
    if isinstance(await merge(context, onto, head, landed), Conflict):
        plain = await context.mirror.merge(onto, head)
        if not isinstance(plain, Conflict):
            return ()
    return tuple(landed)


async def is_whole(context: RepositoryContext, base: Sha, method: MergeMethod, head: Sha, step: Step) -> bool:
    """Whether a step brings the whole change of a head: it has the tree of git's merge, without what landed before.

    `base` is the tip of the target branch that the step was built on.
    """
    if await context.mirror.merge(step.parent, head) == step.tree:
        return True
    if method is MergeMethod.MERGE_COMMIT:
        return False
    commits = await list_own_commits(context.mirror, head, base)
    landed = await find_landed_heads(context, base, step.parent, commits)
    return await merge(context, step.parent, head, landed) == step.tree


async def find_landing(store: Store, queue: QueueId, commit: Commit) -> Submission | None:
    """The submission that this queue recorded as merged with this commit."""
    number = git_names.parse_pull_request_trailer(commit.message)
    if number is None:
        return None
    for body in await store.submissions_of(queue, number, MAX_SUBMISSIONS):
        submission = persistence.decode_submission(body)
        if submission.merged_sha == commit.sha:
            return submission
    return None


async def _find_claimed_heads(
    context: RepositoryContext, base: Sha, onto: Sha, commits: Sequence[Sha]
) -> AsyncIterator[Sha]:
    """The heads among `commits` that a commit below `onto` names, if this queue made that commit."""
    possible = set(commits)
    is_built_now = onto != base
    # Only the first parents: a commit that was merged from a pull request can have any trailer in its message.
    for commit in await context.mirror.last_first_parents(onto, limit=MAX_SEARCHED_COMMITS):
        # What stands between `base` and `onto` was built by this queue, and is not recorded before it lands.
        is_built_now = is_built_now and commit.sha != base
        head = git_names.parse_head_trailer(commit.message)
        if head is None or head not in possible:
            continue
        if is_built_now or await _has_landed(context, commit, head):
            possible.remove(head)
            yield head


async def _has_landed(context: RepositoryContext, commit: Commit, head: Sha) -> bool:
    queue_actor = context.queue_actor
    submission = await find_landing(queue_actor.store, queue_actor.id, commit)
    return submission is not None and submission.pull_request.head == head


async def _is_there(context: RepositoryContext, onto: Sha, head: Sha) -> bool:
    return await context.mirror.merge(onto, head) == await context.mirror.tree(onto)


async def _commit_merge_base(mirror: Mirror, onto: Sha, landed: Sequence[Sha]) -> Sha:
    """A commit with the tree of `onto` and the landed heads as further parents. It is never pushed."""
    return await mirror.commit(await mirror.tree(onto), (onto, *landed), git_names.SYNTHETIC_PARENT_MESSAGE)
