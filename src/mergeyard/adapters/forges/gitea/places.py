"""Where things stand in the API. Names come from strangers: only those that Gitea itself allows go into an address."""

import re
from urllib.parse import quote

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostTrouble

ALLOWED = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}")


def is_name(repo: Repo) -> bool:
    return ALLOWED.fullmatch(repo.owner) is not None and ALLOWED.fullmatch(repo.name) is not None


def path_of(repo: Repo) -> str:
    """As people write it, `owner/name`."""
    if not is_name(repo):
        raise HostTrouble(f"{repo} cannot be the name of a repository there")
    return f"{repo.owner}/{repo.name}"


def place_of(repo: Repo) -> str:
    return f"/repos/{path_of(repo)}"


def place_of_pull(repo: Repo, number: PrNumber) -> str:
    return f"{place_of(repo)}/pulls/{number}"


def place_of_talk(repo: Repo, number: PrNumber) -> str:
    """What people put on a pull request lies where that of issues does."""
    return f"{place_of(repo)}/issues/{number}"


def place_of_branch(repo: Repo, branch: str) -> str:
    return f"{place_of(repo)}/branches/{segment(branch)}"


def segment(word: str) -> str:
    """A word that stays within its place in a path, whatever it is."""
    return quote(word, safe="").replace(".", "%2E") if word in (".", "..") else quote(word, safe="")
