"""Which names GitHub gives, and where it shows what bears them."""

import re
from urllib.parse import quote

from mergeyard.domain.ids import PrNumber
from mergeyard.domain.repositories import Repo
from mergeyard.ports.host import HostTrouble

OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
NAME = re.compile(r"(?!\.{1,2}\Z)(?!.*\.git\Z)[A-Za-z0-9._-]{1,100}")
PULL_REF = re.compile(r"refs/pull/([1-9][0-9]{0,17})/(?:head|meta)")
EVERY_HEAD = "refs/pull/*/head"


def is_name(repo: Repo) -> bool:
    return OWNER.fullmatch(repo.owner) is not None and NAME.fullmatch(repo.name) is not None


def place(repo: Repo) -> str:
    """What every path about a repository begins with."""
    if not is_name(repo):
        raise HostTrouble(f"{repo} is not a name that a repository can have here")
    return f"/repos/{repo.owner}/{repo.name}"


def segment(word: str) -> str:
    """A word that others chose, as one part of a path."""
    if word in ("", ".", ".."):
        raise HostTrouble(f"{word!r} is not a name that anything can have here")
    return quote(word, safe="")


def same_name(repo: Repo) -> Repo:
    return Repo(repo.host, repo.owner.lower(), repo.name.lower())


def head_ref(number: PrNumber) -> str:
    return f"refs/pull/{number}/head"


def meta_ref(number: PrNumber) -> str:
    """Git knows nothing of it: it changes when anything about the pull request does."""
    return f"refs/pull/{number}/meta"


def number_of(ref: str) -> PrNumber | None:
    found = PULL_REF.fullmatch(ref)
    return PrNumber(int(found[1])) if found else None
