"""Reads merge requests and their mergeability from GitLab, manages drafts for test branches, and lists refs."""

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from mergeyard.adapters.forges.gitlab import wire
from mergeyard.adapters.forges.host import ForgeHost, PolledPullRequest
from mergeyard.adapters.forges.http import ForgeClient, Query, quote_segment
from mergeyard.domain import ids
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.domain.states import Mergeability
from mergeyard.ports.forge import (
    DraftPullRequest,
    HostUnavailable,
    OpenPullRequest,
    UnexpectedHostResponse,
    select_newest,
)

UNDECIDED_STATUSES = frozenset({"unchecked", "checking", "preparing", "approvals_syncing"})
PIPELINE_STATUSES = frozenset({"ci_still_running", "ci_must_pass"})
"""The pipeline of the head does not block a merge request: the queue tests the commit that will be merged."""
IGNORED_OBSTACLES = PIPELINE_STATUSES | {"need_rebase", "draft_status", ""}
"""The queue rebases by itself, drafts are reported in a field of their own, and old GitLab versions return nothing."""


async def derive_mergeability(client: ForgeClient, payload: wire.MergeRequest) -> Mergeability:
    """GitLab locks a merge request while it merges it."""
    if payload.state == "locked" or payload.detailed_merge_status in UNDECIDED_STATUSES:
        return Mergeability.CHECKING
    if payload.detailed_merge_status == "mergeable":
        return Mergeability.MERGEABLE
    if payload.detailed_merge_status in IGNORED_OBSTACLES:
        return await _check_other_obstacles(client, payload)
    return Mergeability.NOT_MERGEABLE


async def _check_other_obstacles(client: ForgeClient, payload: wire.MergeRequest) -> Mergeability:
    """GitLab reports only the first obstacle. If the queue ignores that one, there can still be another."""
    if payload.merge_status == "cannot_be_merged" or not payload.blocking_discussions_resolved:
        return Mergeability.NOT_MERGEABLE
    if payload.merge_status != "can_be_merged":
        return Mergeability.CHECKING
    approvals = await client.get(f"/merge_requests/{payload.iid}/approvals", wire.Approvals, urgent=True)
    return Mergeability.MERGEABLE if approvals is None or approvals.approved else Mergeability.NOT_MERGEABLE


DRAFT_PREFIX = "Draft: "
"""GitLab marks a merge request as a draft by its title."""
ALREADY_OPEN_STATUS = 409
LATEST_QUERY = {"state": "all", "scope": "all", "order_by": "updated_at", "sort": "desc", "per_page": 100}
NEWEST_QUERY = {"state": "opened", "scope": "all", "order_by": "created_at", "sort": "desc", "per_page": 100}
QUICK_ACTION_PATTERN = re.compile(r"((?:^|[\r\n])[ \t]*)/")


class MergeRequests(ForgeHost):
    def _escape(self, text: str) -> str:
        """GitLab executes lines like `/merge` or `/close` with our permissions, also in text that we only quote."""
        return QUICK_ACTION_PATTERN.sub(r"\1\\/", text)

    async def read_pull_request(self, repo: Repo, number: PullRequestNumber) -> PullRequest | None:
        client = await self._client_for(repo)
        payload = await client.get(f"/merge_requests/{number}", wire.MergeRequest, urgent=True)
        if payload is None:
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
            mergeability=await derive_mergeability(client, payload),
            merged_into=payload.target_branch if payload.state == "merged" else None,
        )

    async def open_pull_requests(self, repo: Repo, branch: str) -> Sequence[OpenPullRequest]:
        """Without merge requests that have no head: the queue cannot read them either."""
        query = {**NEWEST_QUERY, "target_branch": branch}
        return select_newest(
            OpenPullRequest(
                number=PullRequestNumber(payload.iid),
                title=payload.title,
                author=wire.get_username(payload.author),
                head=Sha(payload.sha),
                head_branch=payload.source_branch,
                draft=payload.draft,
            )
            for payload in await self._list_merge_requests(await self._client_for(repo), repo, query)
            if payload.target_branch == branch and payload.sha is not None
        )

    async def open_draft(self, repo: Repo, draft: DraftPullRequest) -> None:
        """Idempotent: GitLab answers 409 if the test branch has an open merge request."""
        body = {
            "source_branch": draft.branch,
            "target_branch": draft.base_branch,
            "title": f"{DRAFT_PREFIX}{draft.title}",
            "description": self._escape(draft.text),
            "remove_source_branch": False,
        }
        reply = await (await self._client_for(repo)).send("POST", "/merge_requests", body)
        reply.raise_for_status(allowed=(ALREADY_OPEN_STATUS,))

    async def close_draft(self, repo: Repo, branch: str) -> None:
        """Finds the merge request by its branch name, which works after the branch was deleted, too."""
        client = await self._client_for(repo)
        query = {"source_branch": branch, "state": "opened", "scope": "all", "per_page": 100}
        for payload in await client.get_all("/merge_requests", list[wire.MergeRequest], query):
            if payload.source_project_id == payload.target_project_id:
                reply = await client.send("PUT", f"/merge_requests/{payload.iid}", {"state_event": "close"})
                reply.raise_for_status(allowed=(404,))

    async def _read_branch_tip(self, client: ForgeClient, branch: str) -> str | None:
        found = await client.get(f"/repository/branches/{quote_segment(branch)}", wire.Branch)
        return found and found.commit.id

    async def _list_latest(self, client: ForgeClient, repo: Repo) -> Iterable[PolledPullRequest]:
        return [
            PolledPullRequest(payload.iid, payload.sha, _select_metadata(payload))
            for payload in await self._list_merge_requests(client, repo, LATEST_QUERY)
        ]

    async def _list_merge_requests(self, client: ForgeClient, repo: Repo, query: Query) -> list[wire.MergeRequest]:
        """The first page, without merge requests that show a test branch."""
        listed = await client.get("/merge_requests", list[wire.MergeRequest], query)
        if listed is None:
            raise HostUnavailable(f"the merge requests of {repo} are not visible to us: enable them in its settings")
        return [payload for payload in listed if not payload.source_branch.startswith(ids.TEST_BRANCH_PREFIX)]


def _select_metadata(payload: wire.MergeRequest) -> wire.MergeRequest:
    """Without the merge status: GitLab recomputes it for all merge requests whenever their target branch moves."""
    return replace(payload, merge_status="", detailed_merge_status="", merge_error=None, user=wire.UserPermissions())
