"""Opens and closes the pull requests that show test branches."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitea.places import place_of, place_of_pull
from mergeyard.adapters.forges.gitea.wire import Pull
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Draft

MARK = "WIP: "
"""A title that begins so makes it a draft."""
THERE_ALREADY = 409


async def open_draft(caller: Caller, repo: Repo, draft: Draft) -> None:
    told = {"head": draft.branch, "base": draft.base, "title": MARK + draft.title, "body": draft.text}
    reply = await caller.send("POST", f"{place_of(repo)}/pulls", told)
    reply.well_received(also=(THERE_ALREADY,))


async def close_draft(caller: Caller, repo: Repo, branch: str) -> None:
    """Mostly it is closed by then: that happens when its branch is deleted."""
    newest_first = await caller.every(f"{place_of(repo)}/pulls", list[Pull], {"state": "open", "limit": 50})
    for pull in newest_first:
        if pull.head.label == branch and pull.head.repo_id == pull.base.repo_id:
            reply = await caller.send("PATCH", place_of_pull(repo, pull.number), {"state": "closed"})
            reply.well_received()
