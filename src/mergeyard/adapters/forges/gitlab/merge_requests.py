"""Reads merge requests and their mergeability from GitLab, manages drafts for test branches, and lists refs."""

from collections.abc import Collection
from hashlib import sha1

import msgspec
from msgspec.structs import replace

from mergeyard.adapters.forges.gitlab import wire
from mergeyard.adapters.forges.gitlab.comments import escape_quick_actions
from mergeyard.adapters.forges.http import ForgeClient
from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.domain.states import Mergeability
from mergeyard.ports.forge import DraftPullRequest, HostUnavailable, UnexpectedHostResponse

UNDECIDED_STATUSES = frozenset({"unchecked", "checking", "preparing", "approvals_syncing"})
PIPELINE_STATUSES = frozenset({"ci_still_running", "ci_must_pass"})
"""The pipeline of the head does not block a merge request: the queue tests the commit that will be merged."""
IGNORED_OBSTACLES = PIPELINE_STATUSES | {"need_rebase", "draft_status", ""}
"""The queue rebases by itself, drafts are reported in a field of their own, and old GitLab versions return nothing."""


async def read_pull_request(client: ForgeClient, repo: Repo, number: PullRequestNumber) -> PullRequest | None:
    payload = await client.get_urgent(wire.merge_request_api_path(repo, number), wire.MergeRequest)
    if payload is None:
        await wire.read_project_urgent(client, repo)
        return None
    if payload.sha is None:
        raise UnexpectedHostResponse(
            f"merge request {number} of {repo} has no head: push its source branch again, or close it"
        )
    return PullRequest(
        number=PullRequestNumber(payload.iid),
        head=Sha(payload.sha),
        base_branch=payload.target_branch,
        head_branch=payload.source_branch,
        title=payload.title,
        author=wire.get_username(payload.author),
        is_open=payload.state in ("opened", "locked"),
        draft=payload.draft,
        fork=payload.source_project_id != payload.target_project_id,
        mergeability=await derive_mergeability(client, repo, payload),
        merged_into=payload.target_branch if payload.state == "merged" else None,
    )


async def derive_mergeability(client: ForgeClient, repo: Repo, payload: wire.MergeRequest) -> Mergeability:
    """GitLab locks a merge request while it merges it."""
    if payload.state == "locked" or payload.detailed_merge_status in UNDECIDED_STATUSES:
        return Mergeability.CHECKING
    if payload.detailed_merge_status == "mergeable":
        return Mergeability.MERGEABLE
    if payload.detailed_merge_status in IGNORED_OBSTACLES:
        return await _check_other_obstacles(client, repo, payload)
    return Mergeability.NOT_MERGEABLE


async def _check_other_obstacles(client: ForgeClient, repo: Repo, payload: wire.MergeRequest) -> Mergeability:
    """GitLab reports only the first obstacle. If the queue ignores that one, there can still be another."""
    if payload.merge_status == "cannot_be_merged" or not payload.blocking_discussions_resolved:
        return Mergeability.NOT_MERGEABLE
    if payload.merge_status != "can_be_merged":
        return Mergeability.CHECKING
    approvals = await client.get_urgent(
        f"{wire.merge_request_api_path(repo, PullRequestNumber(payload.iid))}/approvals", wire.Approvals
    )
    return Mergeability.MERGEABLE if approvals is None or approvals.approved else Mergeability.NOT_MERGEABLE


DRAFT_PREFIX = "Draft: "
"""GitLab marks a merge request as a draft by its title."""


async def open_draft(client: ForgeClient, repo: Repo, draft: DraftPullRequest) -> None:
    """Idempotent: GitLab answers 409 if the test branch has an open merge request."""
    body = {
        "source_branch": draft.branch,
        "target_branch": draft.base_branch,
        "title": f"{DRAFT_PREFIX}{draft.title}",
        "description": escape_quick_actions(draft.text),
        "remove_source_branch": False,
    }
    reply = await client.send("POST", f"{wire.repo_api_path(repo)}/merge_requests", body)
    is_already_open = reply.status == 409
    if not (reply.is_success or is_already_open):
        raise await wire.build_reply_error(client, repo, reply)


async def close_draft(client: ForgeClient, repo: Repo, branch: str) -> None:
    """Finds the merge request by its branch name, which works after the branch was deleted, too."""
    query = {"source_branch": branch, "state": "opened", "scope": "all", "per_page": 100}
    found = await client.get_all(f"{wire.repo_api_path(repo)}/merge_requests", list[wire.MergeRequest], query)
    if not found:
        await wire.read_project(client, repo)
    for payload in found:
        if payload.source_project_id == payload.target_project_id:
            path = wire.merge_request_api_path(repo, PullRequestNumber(payload.iid))
            reply = await client.send("PUT", path, {"state_event": "close"})
            reply.raise_for_status(allowed=(404,))


LATEST_QUERY = {"state": "all", "scope": "all", "order_by": "updated_at", "sort": "desc", "per_page": 100}


async def read_refs(client: ForgeClient, repo: Repo, branches: Collection[str]) -> dict[str, Sha]:
    project, found = wire.repo_api_path(repo), dict[str, Sha]()
    for name in branches:
        branch = await client.get(f"{project}/repository/branches/{wire.quote_segment(name)}", wire.Branch)
        if branch is not None:
            found[f"refs/heads/{name}"] = Sha(branch.commit.id)
    merge_requests = await client.get(f"{project}/merge_requests", list[wire.MergeRequest], LATEST_QUERY)
    if merge_requests is None:
        raise HostUnavailable(f"the merge requests of {repo} are not visible to us")
    for payload in merge_requests:
        if not payload.source_branch.startswith(ids.TEST_BRANCH_PREFIX):
            found |= _to_refs(payload)
    return found


def _to_refs(payload: wire.MergeRequest) -> dict[str, Sha]:
    number = PullRequestNumber(payload.iid)
    head = {} if payload.sha is None else {wire.head_ref(number): Sha(payload.sha)}
    return head | {wire.meta_ref(number): _metadata_digest(payload)}


def _metadata_digest(payload: wire.MergeRequest) -> Sha:
    """Without the merge status: GitLab recomputes it for all merge requests whenever their target branch moves."""
    metadata = replace(
        payload, merge_status="", detailed_merge_status="", merge_error=None, user=wire.UserPermissions()
    )
    return Sha(sha1(msgspec.json.encode(metadata), usedforsecurity=False).hexdigest())
