"""Reads a project itself: its settings, and that it is there at all."""

from mergeyard.adapters.forges.calling import Caller, Reply
from mergeyard.adapters.forges.gitlab.naming import project_of
from mergeyard.adapters.forges.gitlab.wire import Project
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostRefused, HostTrouble


async def knows(caller: Caller, repo: Repo) -> bool:
    try:
        place = project_of(repo)
    except HostTrouble:
        return False
    return await caller.get(place, Project) is not None


async def settings_of(caller: Caller, repo: Repo) -> Project:
    """To those who may not see a project, GitLab says that it is not there: that must not pass for an answer."""
    return _there(repo, await caller.get(project_of(repo), Project))


async def settings_now(caller: Caller, repo: Repo) -> Project:
    """Like `settings_of`, for a landing."""
    return _there(repo, await caller.get_now(project_of(repo), Project))


async def lack_of(caller: Caller, repo: Repo, what: str) -> HostRefused:
    """The trouble with something that is gone, or another trouble, if all of the project is."""
    await settings_of(caller, repo)
    return HostRefused(f"{what} of {repo} is gone")


async def trouble_with(caller: Caller, repo: Repo, reply: Reply) -> HostTrouble:
    """That something is not there is a refusal only where the project is."""
    if reply.status == 404:
        await settings_of(caller, repo)
    return reply.trouble()


def _there(repo: Repo, project: Project | None) -> Project:
    if project is None:
        raise HostTrouble(f"{repo} is not there, or no longer for us: look at the members of the project")
    return project
