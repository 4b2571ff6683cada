"""Tells what a person may do in a repository."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.names import place, segment
from mergeyard.adapters.forges.github.repositories import must_be_there
from mergeyard.domain.repositories import Repo

ADMIN, MAINTAIN, WRITE = "admin", "maintain", "write"


async def may_write(caller: Caller, repo: Repo, person: str) -> bool:
    role = await _role(caller, repo, person)
    return role is not None and role.permission in (ADMIN, WRITE)


async def may_maintain(caller: Caller, repo: Repo, person: str) -> bool:
    role = await _role(caller, repo, person)
    return role is not None and (role.permission == ADMIN or role.role_name == MAINTAIN)


async def _role(caller: Caller, repo: Repo, person: str) -> wire.Role | None:
    """Whoever has left has no name, and no role."""
    if not person:
        return None
    role = await caller.get(f"{place(repo)}/collaborators/{segment(person)}/permission", wire.Role)
    if role is None:
        await must_be_there(caller, repo)
    return role
