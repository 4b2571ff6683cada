"""Tells a repository that is empty from one that we may no longer see: Gitea says of both that nothing is there."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitea.places import place_of
from mergeyard.adapters.forges.gitea.wire import Repository
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostTrouble


async def is_there(caller: Caller, repo: Repo) -> bool:
    return await caller.get(place_of(repo), Repository) is not None


async def must_be_there(caller: Caller, repo: Repo) -> None:
    if not await is_there(caller, repo):
        raise HostTrouble(f"{repo} is gone, or our account may no longer see it: let it in again")
