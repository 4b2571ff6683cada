"""What must be closed before a pull request is merged: Gitea names it to those who ask, and not to those who merge."""

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.gitea.places import path_of, place_of_talk
from mergeyard.adapters.forges.gitea.wire import Dependency
from mergeyard.domain.ids import PrNumber
from mergeyard.domain.repositories import Repo


async def open_dependencies(caller: Caller, repo: Repo, number: PrNumber) -> list[str]:
    """Each as people refer to it."""
    found = await caller.every_now(f"{place_of_talk(repo, number)}/dependencies", list[Dependency], {"limit": 50})
    return [_reference(each, repo) for each in found if each.state == "open"]


def _reference(found: Dependency, seen_from: Repo) -> str:
    where = "" if found.repository is None else found.repository.full_name
    return f"#{found.number}" if where.lower() == path_of(seen_from).lower() else f"{where}#{found.number}"
