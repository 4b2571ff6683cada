"""Knows who we are at GitLab, and who may write to a project."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitlab.naming import project_of
from mergeyard.adapters.forges.gitlab.projects import settings_of
from mergeyard.adapters.forges.gitlab.wire import Member, User
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostTrouble

DEVELOPER = 30
MAINTAINER = 40


class Ourselves:
    """Asked for once: a token belongs to one account for good."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._user: User | None = None

    async def known(self) -> User:
        if self._user is None:
            self._user = await self._caller.get("/user", User)
        if self._user is None:
            raise HostTrouble("GitLab does not say whose token we have")
        return self._user


async def may_write(caller: Caller, repo: Repo, person: str) -> bool:
    return await _level(caller, repo, person) >= DEVELOPER


async def may_maintain(caller: Caller, repo: Repo, person: str) -> bool:
    return await _level(caller, repo, person) >= MAINTAINER


async def _level(caller: Caller, repo: Repo, person: str) -> int:
    """Through whichever group; what branches are protected from is not looked at."""
    if not person:
        return 0
    query = {"query": person, "per_page": 100}
    found = await caller.every(f"{project_of(repo)}/members/all", list[Member], query)
    if not found:
        await settings_of(caller, repo)
    named = [member for member in found if member.username.lower() == person.lower() and member.state == "active"]
    return max((member.access_level for member in named), default=0)
