"""Shows a test branch as a draft pull request, for checks that run only there."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.names import place
from mergeyard.domain.repositories import Repo
from mergeyard.ports.forge import Draft


async def open_draft(caller: Caller, repo: Repo, draft: Draft) -> None:
    if await _opened(caller, repo, draft.branch):
        return
    body = {"head": draft.branch, "base": draft.base, "title": draft.title, "body": draft.text, "draft": True}
    reply = await caller.send("POST", f"{place(repo)}/pulls", body)
    reply.well_received()


async def close_draft(caller: Caller, repo: Repo, branch: str) -> None:
    for pull in await _opened(caller, repo, branch):
        reply = await caller.send("PATCH", f"{place(repo)}/pulls/{pull.number}", {"state": "closed"})
        reply.well_received()


async def _opened(caller: Caller, repo: Repo, branch: str) -> list[wire.Pull]:
    query = {"head": f"{repo.owner}:{branch}", "state": "open"}
    found = await caller.every(f"{place(repo)}/pulls", list[wire.Pull], query)
    return [pull for pull in found if pull.head.ref == branch and not pull.fork]
