"""Tells what is not there from what we may no longer see: GitHub answers the same to both."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.names import place
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostTrouble


async def must_be_there(caller: Caller, repo: Repo) -> None:
    """Asked where something in the repository was not found: raises when the repository is not found either."""
    if await caller.get_now(place(repo), wire.Repository) is None:
        raise lost(repo)


def lost(repo: Repo) -> HostTrouble:
    return HostTrouble(f"we do not see {repo}: give the app or the token access to it again")
