"""Knows who we are at GitLab, and who may write to a project."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitlab.naming import project_of
from mergeyard.adapters.forges.gitlab.projects import settings_of
from mergeyard.adapters.forges.gitlab.wire import BranchAccess, Member, ProtectedBranch, User
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostRefused, HostTrouble

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


async def may_merge(caller: Caller, repo: Repo, person: str, branch: str) -> bool:
    """Whether GitLab would let them merge into the branch: every Developer, unless a rule protects it."""
    member = await _member(caller, repo, person)
    if member is None or member.access_level < DEVELOPER:
        return False
    accesses = await _accesses(caller, repo, branch)
    return accesses is None or any([await _grants(caller, access, member) for access in accesses])


async def may_maintain(caller: Caller, repo: Repo, person: str) -> bool:
    member = await _member(caller, repo, person)
    return member is not None and member.access_level >= MAINTAINER


async def _member(caller: Caller, repo: Repo, person: str) -> Member | None:
    """With the highest role that they have through any group."""
    if not person:
        return None
    found = await _members(caller, f"{project_of(repo)}/members/all", person)
    if not found:
        await settings_of(caller, repo)
    named = [member for member in found if member.username.lower() == person.lower() and member.state == "active"]
    return max(named, key=lambda member: member.access_level, default=None)


async def _members(caller: Caller, place: str, person: str) -> list[Member]:
    return await caller.every(place, list[Member], {"query": person, "per_page": 100})


async def _accesses(caller: Caller, repo: Repo, branch: str) -> list[BranchAccess] | None:
    """Each of them is enough; None where no rule protects the branch, or where we may not read the rules.

    Of several rules for one branch GitLab takes the most permissive, and those who may push there may merge too.
    """
    place = f"{project_of(repo)}/protected_branches"
    try:
        rules = await caller.every(place, list[ProtectedBranch], {"per_page": 100})
    except HostRefused:
        return None
    matching = [rule for rule in rules if rule.protects(branch)]
    levels = [level for rule in matching for level in (*rule.merge_access_levels, *rule.push_access_levels)]
    return levels if matching else None


async def _grants(caller: Caller, access: BranchAccess, member: Member) -> bool:
    """Level 0 is no one, and 60 administrators alone, which the API does not tell from others."""
    if access.deploy_key_id is not None:
        return False
    if access.user_id is not None:
        return access.user_id == member.id
    if access.group_id is not None:
        return await _is_in_group(caller, access.group_id, member)
    return 0 < (access.access_level or 0) <= member.access_level


async def _is_in_group(caller: Caller, group: int, member: Member) -> bool:
    """False as well where we may not see the members of the group."""
    try:
        found = await _members(caller, f"/groups/{group}/members/all", member.username)
    except HostRefused:
        return False
    return any(one.id == member.id and one.state == "active" for one in found)
