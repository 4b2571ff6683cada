"""Opens and closes the draft merge requests that show test branches."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitlab.comments import harmless
from mergeyard.adapters.forges.gitlab.naming import merge_request_of, project_of
from mergeyard.adapters.forges.gitlab.projects import settings_of, trouble_with
from mergeyard.adapters.forges.gitlab.wire import MergeRequest
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Draft

PREFIX = "Draft: "
"""What makes a merge request a draft is how its title begins."""


async def open_draft(caller: Caller, repo: Repo, draft: Draft) -> None:
    body = {
        "source_branch": draft.branch,
        "target_branch": draft.base,
        "title": f"{PREFIX}{draft.title}",
        "description": harmless(draft.text),
        "remove_source_branch": False,
    }
    reply = await caller.send("POST", f"{project_of(repo)}/merge_requests", body)
    is_there_already = reply.status == 409
    if not (reply.fine or is_there_already):
        raise await trouble_with(caller, repo, reply)


async def close_draft(caller: Caller, repo: Repo, branch: str) -> None:
    """It is found by the name of the branch, also when that is gone."""
    query = {"source_branch": branch, "state": "opened", "scope": "all", "per_page": 100}
    found = await caller.every(f"{project_of(repo)}/merge_requests", list[MergeRequest], query)
    if not found:
        await settings_of(caller, repo)
    for shown in found:
        if shown.source_project_id == shown.target_project_id:
            place = merge_request_of(repo, PrNumber(shown.iid))
            reply = await caller.send("PUT", place, {"state_event": "close"})
            reply.well_received(also=(404,))
