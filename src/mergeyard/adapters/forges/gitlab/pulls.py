"""Reads a merge request, and judges whether it can be merged."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitlab.naming import merge_request_of
from mergeyard.adapters.forges.gitlab.projects import settings_now
from mergeyard.adapters.forges.gitlab.wire import Approvals, MergeRequest, name_of
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.pulls import PullRequest
from mergeyard.domain.repositories import Repo
from mergeyard.domain.states import Mergeability
from mergeyard.ports.host import Unreadable

UNDECIDED = frozenset({"unchecked", "checking", "preparing", "approvals_syncing"})
CI = frozenset({"ci_still_running", "ci_must_pass"})
"""A pipeline of the head holds nobody back: the queue tests by itself, and tests what will really be merged."""
NO_OBSTACLES = CI | {"need_rebase", "draft_status", ""}
"""The queue brings up to date what is behind; drafts have a flag of their own; old versions of GitLab say nothing."""


async def read_pull(caller: Caller, repo: Repo, number: PrNumber) -> PullRequest | None:
    shown = await caller.get_now(merge_request_of(repo, number), MergeRequest)
    if shown is None:
        await settings_now(caller, repo)
        return None
    if shown.sha is None:
        raise Unreadable(f"merge request {number} of {repo} has no head: push its source branch again, or close it")
    return PullRequest(
        number=PrNumber(shown.iid),
        head=Sha(shown.sha),
        base=shown.target_branch,
        branch=shown.source_branch,
        title=shown.title,
        author=name_of(shown.author),
        is_open=shown.state in ("opened", "locked"),
        draft=shown.draft,
        fork=shown.source_project_id != shown.target_project_id,
        mergeability=await mergeability_of(caller, repo, shown),
        merged_into=shown.target_branch if shown.state == "merged" else None,
    )


async def mergeability_of(caller: Caller, repo: Repo, shown: MergeRequest) -> Mergeability:
    """One that is locked is just being merged."""
    if shown.state == "locked" or shown.detailed_merge_status in UNDECIDED:
        return Mergeability.CHECKING
    if shown.detailed_merge_status == "mergeable":
        return Mergeability.MERGEABLE
    if shown.detailed_merge_status in NO_OBSTACLES:
        return await _behind_the_first_obstacle(caller, repo, shown)
    return Mergeability.NOT_MERGEABLE


async def _behind_the_first_obstacle(caller: Caller, repo: Repo, shown: MergeRequest) -> Mergeability:
    """GitLab names only one thing that stands in the way. When that does not count here, another one may."""
    if shown.merge_status == "cannot_be_merged" or not shown.blocking_discussions_resolved:
        return Mergeability.NOT_MERGEABLE
    if shown.merge_status != "can_be_merged":
        return Mergeability.CHECKING
    approvals = await caller.get_now(f"{merge_request_of(repo, PrNumber(shown.iid))}/approvals", Approvals)
    return Mergeability.MERGEABLE if approvals is None or approvals.approved else Mergeability.NOT_MERGEABLE
