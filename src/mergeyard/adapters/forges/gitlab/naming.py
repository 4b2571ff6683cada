"""The names of projects and merge requests: which ones may be, and where the API and git find them."""

import re
from urllib.parse import quote

from msgspec.structs import replace

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostTrouble

EVERY_HEAD = "refs/merge-requests/*/head"
LARGEST_NUMBER = 2**31 - 1
MOST_GROUPS = 21
"""A group, and the twenty levels below it that GitLab allows."""
PART = re.compile(r"(?!-|\.{1,2}\Z)[A-Za-z0-9._-]{1,255}(?<!\.git)(?<!\.atom)(?<!\.)", re.ASCII)
REF = re.compile(r"refs/merge-requests/([1-9][0-9]{0,9})/(?:head|meta)", re.ASCII)


def same_name(repo: Repo) -> Repo:
    return replace(repo, owner=repo.owner.lower(), name=repo.name.lower())


def is_name(repo: Repo) -> bool:
    groups = repo.owner.split("/")
    return len(groups) <= MOST_GROUPS and all(PART.fullmatch(part) for part in (*groups, repo.name))


def path_of(repo: Repo) -> str:
    """As people and git write it: `group/subgroup/name`."""
    if not is_name(repo):
        raise HostTrouble(f"GitLab has no project with the name {repo.owner}/{repo.name}: check it")
    return f"{repo.owner}/{repo.name}"


def repo_at(host: str, path: str) -> Repo:
    owner, _, name = path.rpartition("/")
    return same_name(Repo(host, owner, name))


def project_of(repo: Repo) -> str:
    """Where the API finds the project."""
    return f"/projects/{segment(path_of(repo))}"


def merge_request_of(repo: Repo, number: PrNumber) -> str:
    return f"{project_of(repo)}/merge_requests/{int(number)}"


def segment(name: str) -> str:
    """One part of an address, whatever is in it."""
    return quote(name, safe="")


def head_ref(number: PrNumber) -> str:
    return f"refs/merge-requests/{number}/head"


def meta_ref(number: PrNumber) -> str:
    """No ref that git knows: what changes with everything but the head."""
    return f"refs/merge-requests/{number}/meta"


def number_of(ref: str) -> PrNumber | None:
    found = REF.fullmatch(ref)
    return PrNumber(int(found[1])) if found and int(found[1]) <= LARGEST_NUMBER else None
